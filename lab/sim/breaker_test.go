package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
)

// The breakers of three processes open while everything fails, from 2 to 4 s, and
// are closed again in the end; the result shows them, and what they refuse.
func TestOpenBreakersAreCounted(t *testing.T) {
	p := once()
	p.Breaker = breaker.Config{Consecutive: -1, FailureRate: 0.5, MinCalls: 5, Window: time.Second, OpenFor: 500 * millisecond, OpenJitter: -1}
	s := Scenario{
		Horizon: 10 * time.Second, Step: 100 * millisecond,
		Services: []Service{{Name: "api", Faults: []Fault{{Kind: Errors, At: 2 * time.Second, For: 2 * time.Second}}}},
		Fleets:   []Fleet{{Calls: "api", Processes: 3, Arrivals: Arrivals{Kind: Constant, Rate: 60}}},
	}
	w, r := playWorld(t, s, Contender{Policy: p}, Options{})
	open := r.Series.Open
	want(t, "open before", slices.Max(open[:20]), 0)
	want(t, "open at most", slices.Max(open), 3)
	want(t, "open at the end", open[len(open)-1], 0)
	want(t, "open now", w.openBreakers, 0)
	if n := r.reason(engine.CircuitOpen); n < 60 || n != r.Totals.Refused {
		t.Errorf("%d refused by the breaker, %d refused", n, r.Totals.Refused)
	}
	// MetricsOnly opens nothing.
	p.Breaker.MetricsOnly = true
	r = play(t, s, p)
	want(t, "open at most", slices.Max(r.Series.Open), 0)
	want(t, "refused", r.Totals.Refused, 0)
	conserved(t, &s, r)
}

// Amplification, peak and normal rate of a service whose errors double its load.
func TestRates(t *testing.T) {
	s := Scenario{
		Horizon: 60 * time.Second, Step: time.Second, Window: time.Second, Warmup: 10 * time.Second,
		Services: []Service{{Name: "api", Faults: []Fault{{Kind: Errors, At: 20 * time.Second, For: 10 * time.Second}}}},
		Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: Constant, At: 5 * millisecond, Rate: 100}}},
	}
	r := play(t, s, retrying(2, millisecond))
	// A call every 10 ms at 5 ms past: 5,000 after the warm-up, of which 1,000 fail.
	want(t, "calls", r.Totals.Calls, 5000)
	want(t, "attempts", r.Totals.Attempts, 6000)
	want(t, "amplification", r.Totals.Amplification, 1.2)
	want(t, "normal rate", r.Totals.NormalRate, 100)
	want(t, "peak rate", r.Totals.PeakRate, 200)
	want(t, "peak at", r.Totals.PeakAt, 21*time.Second)
	want(t, "peak over normal", r.Totals.PeakOverNormal, 2)
	want(t, "success rate", r.Totals.SuccessRate(), 0.8)
	// Over the minute: 5,999 calls, since the first comes at 15 ms.
	want(t, "worst minute", r.Totals.WorstMinute, 6999./5999)
	// With a fault that never ends, what went before is normal, too.
	s.Services[0].Faults[0].For = time.Hour
	want(t, "normal rate", play(t, s, retrying(2, millisecond)).Totals.NormalRate, 100)
}
