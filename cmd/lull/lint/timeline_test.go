package lint

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// The lines of a sum add up to lull's own WorstCase.
func TestSumsOfTimesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(seed.Fresh(t), 1))
	for range 2000 {
		p := randomPolicy(r)
		steps := newTimeline(p).explain()
		var sum time.Duration
		for i, s := range steps {
			if s.Value == "" && s.Total == "" {
				continue
			}
			if s.Value != "" {
				if v := parse(t, s.Value); v == math.MaxInt64 || sum > math.MaxInt64-v {
					sum = math.MaxInt64
				} else {
					sum += v
				}
			} else {
				sum = min(sum, parse(t, s.Total)) // the deadline cuts it
			}
			if got := parse(t, s.Total); got != sum {
				t.Fatalf("%+v\nline %d says %v, it is %v: %+v", p, i, got, sum, steps)
			}
		}
		if want := p.WorstCase(); sum != want {
			t.Fatalf("%+v\nthe sum is %v, WorstCase %v: %+v", p, sum, want, steps)
		}
	}
}

func parse(t *testing.T, s string) time.Duration {
	t.Helper()
	if s == "for ever" {
		return math.MaxInt64
	}
	d := must.Have(time.ParseDuration(s))
	return d
}

func TestDurationsAreRounded(t *testing.T) {
	check.Equal(t, pretty(math.MaxInt64), "for ever", "pretty(math.MaxInt64)")
	for d, want := range map[time.Duration][2]time.Duration{
		0: {0, 0}, 7: {7, 7}, 99: {99, 99}, 101: {100, 110}, 666 * time.Millisecond: {660 * time.Millisecond, 670 * time.Millisecond},
		2 * time.Second: {2 * time.Second, 2 * time.Second},
	} {
		check.Equal(t, [2]time.Duration{down(d), up(d)}, want, "%d", d)
	}
	check.Equal(t, rough(2*time.Second/3), "667ms", "rough(2 * time.Second / 3)")
}

// A long sum is cut short, and adds up all the same.
func TestLongSumsAreShort(t *testing.T) {
	p := lull.Policy{Attempts: 1000, AttemptTimeout: time.Second, Deadline: lull.NoTimeout}
	steps := newTimeline(p).explain()
	if len(steps) > 20 {
		t.Errorf("%d lines", len(steps))
	}
	if !strings.Contains(steps[len(steps)-2].What, "attempt 1000") {
		t.Errorf("%+v", steps)
	}
}
