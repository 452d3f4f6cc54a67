package battery

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/sim"
)

// seconds is n seconds in which that share of the calls succeeds.
func seconds(n int, share float64) []float64 { return slices.Repeat([]float64{share}, n) }

func TestSettled(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to time.Duration
		calls    float64 // a second
		good     []float64
		want     time.Duration // negative: never
	}{
		{"at once", 5 * s, 10 * s, 100, slices.Concat(seconds(5, 1), seconds(5, 0), seconds(40, 1)), 0},
		{"after three seconds", 5 * s, 10 * s, 100, slices.Concat(seconds(5, 1), seconds(8, 0), seconds(40, 1)), 3 * s},
		{"an end within a second", 5 * s, 9500 * ms, 100, slices.Concat(seconds(5, 1), seconds(8, 0), seconds(40, 1)), 3500 * ms},
		{"a dip counts", 5 * s, 10 * s, 100, slices.Concat(seconds(5, 1), seconds(5, 0), seconds(20, 1), seconds(2, 0), seconds(40, 1)), 22 * s},
		{"a small one does not", 5 * s, 10 * s, 100, slices.Concat(seconds(5, 1), seconds(5, 0), seconds(20, 1), seconds(1, 0.8), seconds(40, 1)), 0},
		{"never", 5 * s, 10 * s, 100, slices.Concat(seconds(5, 1), seconds(60, 0.9)), -1},
		{"as before", 60 * s, 70 * s, 100, slices.Concat(seconds(60, 0.9), seconds(10, 0), seconds(60, 0.9)), 0},
		{"too late to tell", 5 * s, 10 * s, 100, slices.Concat(seconds(5, 1), seconds(35, 0), seconds(18, 1)), -1},
		{"a single failure of few calls", 60 * s, 70 * s, 0.2, slices.Concat(seconds(60, 1), seconds(10, 0), seconds(20, 1), seconds(1, 0), seconds(60, 1)), 0},
	} {
		series := sim.Series{Step: time.Second, Good: c.good, Calls: slices.Repeat([]float64{c.calls}, len(c.good))}
		got, ok := settled(&series, c.from, c.to)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A minute's attempts above the ratio are found wherever the minute begins.
func TestWorstMinute(t *testing.T) {
	s := sim.Series{Step: time.Second}
	for i := range 200 {
		s.Calls = append(s.Calls, 100)
		s.First = append(s.First, 100)
		retries := 10.0 // just the ratio
		if i >= 77 && i < 87 {
			retries = 30 // 200 more in ten seconds
		}
		if i == 150 {
			retries = 0
		}
		s.Retries = append(s.Retries, retries)
	}
	if got := worstMinute(&s, 1.1); math.Abs(got-200) > 1e-6 {
		t.Errorf("%v attempts more than 1.1 times the calls, want 200", got)
	}
}
