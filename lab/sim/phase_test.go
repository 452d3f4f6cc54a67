package sim

import (
	"math"
	"testing"
	"time"
)

// Millions of processes in a short round: each gap is a few nanoseconds, and what is
// cut off of it must not add up. Half of them come in the first half.
func TestPhasesOfMillionsAreUniform(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	const n = 2_000_000
	s := Scenario{
		Horizon: 70 * time.Millisecond, Step: 35 * time.Millisecond, Window: 35 * time.Millisecond,
		Services: []Service{{Name: "api"}},
		Fleets:   []Fleet{{Calls: "api", Processes: n, Arrivals: Arrivals{Kind: AtOnce, Within: 70 * time.Millisecond}}},
	}
	r := play(t, s, once())
	if first := r.Series.Calls[0] * 0.035; math.Abs(first-n/2) > 5*math.Sqrt(n/4) {
		t.Errorf("%.0f of %d come in the first half", first, n)
	}
}
