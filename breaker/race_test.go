package breaker

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// Everything at once, on one clock that all read. What must hold: while
// the breaker is open nobody is admitted, and of probes at most so many are out.
func TestRaceEverythingAtOnce(t *testing.T) {
	t.Run("all rules", func(t *testing.T) {
		raceEverything(t, Config{
			Window: 100 * time.Millisecond, MinCalls: 10, FailureRate: 0.5, Consecutive: 50, SlowRate: 0.9, SlowCall: 5 * time.Millisecond,
			OpenFor: time.Millisecond, OpenMax: 10 * time.Millisecond, Probes: 2, ProbeTimeout: 50 * time.Millisecond,
		})
	})
	t.Run("failures in a row", func(t *testing.T) {
		raceEverything(t, Config{ConsecutiveFor: 100 * time.Microsecond, ProbeTimeout: 50 * time.Millisecond})
	})
}

func raceEverything(t *testing.T, c Config) {
	var changes atomic.Int64
	b := must.Have(New(c, func(c Change) {
		changes.Add(1)
		if c.From == c.To {
			t.Errorf("no change: %v", c)
		}
	}))
	var clock atomic.Int64
	var out atomic.Int64 // probes
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 10))
			for range 20000 {
				now := time.Duration(clock.Add(int64(r.IntN(20_000))))
				switch r.IntN(200) {
				case 0:
					b.ForceOpen(now)
					b.Auto(now)
				case 1:
					b.ForceClosed(now)
					b.Auto(now)
				case 2:
					b.State(now)
					b.RetryAt(now)
					b.Counts(now)
				default:
					tok, ok := b.Start(now)
					if !ok {
						continue
					}
					if tok.Probe() {
						out.Add(1)
					}
					o := Success
					if x := r.IntN(10); x < 5 {
						o = Failure
					} else if x == 5 {
						o = Neutral
					}
					b.Done(now+time.Duration(r.IntN(10_000_000)), tok, o, r.Uint64)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d changes, %d probes", changes.Load(), out.Load())
	if changes.Load() < 100 || out.Load() < 100 {
		t.Errorf("%d changes and %d probes: the test does not stir", changes.Load(), out.Load())
	}
	now := time.Duration(clock.Load()) + time.Hour
	b.ForceClosed(now)
	b.Auto(now)
	check.Equal(t, run(b, now, 9, Success), 9, "calls admitted at the end")
	if calls, failures, _ := b.Counts(now); !c.CanStartLate() && (calls != 9 || failures != 0) {
		t.Errorf("at the end: Counts %d, %d, want 9, 0", calls, failures)
	}
}

// Starts and neutral ends on all sides must add up: nothing is lost.
func TestRaceCountsAddUp(t *testing.T) {
	const goroutines, rounds = 4, 9999
	b := must.Have(New(Config{Consecutive: -1, FailureRate: 1, MinCalls: math.MaxInt}))
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := range rounds {
				now := time.Duration(i) * 100 * time.Microsecond
				tok, _ := b.Start(now)
				b.Done(now, tok, Evidence(i%3), nil) // a third of each
			}
		})
	}
	wg.Wait()
	calls, failures, _ := b.Counts(time.Second)
	if want := int64(goroutines * rounds / 3); calls != 2*want || failures != want {
		t.Errorf("Counts %d, %d, want %d, %d", calls, failures, 2*want, want)
	}
}
