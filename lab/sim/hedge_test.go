package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
)

// tail is a service of which one answer in fifty takes fifty times as long as others.
func tail(faults ...Fault) Scenario {
	return Scenario{
		Horizon:  2 * time.Minute,
		Services: []Service{{Name: "api", Time: Distribution{Kind: Bimodal, Mean: 20 * millisecond, Slow: 0.02, SlowMean: time.Second}, Faults: faults}},
		Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: Poisson, Rate: 1000}}},
	}
}

// Hedging with its defaults takes the tail off for one attempt in twenty.
func TestHedgingCutsTheTail(t *testing.T) {
	alone := play(t, tail(), lull.Policy{})
	hedged := play(t, tail(), lull.Policy{Hedge: hedge.Config{Attempts: 2}})
	t.Logf("p99 %v, hedged %v; %.3f attempts a call, %d hedges, %d lost", alone.Latency.P99, hedged.Latency.P99, hedged.Totals.Amplification, hedged.Totals.Hedges, hedged.Totals.Lost)
	if alone.Latency.P99 < 5*hedged.Latency.P99 {
		t.Errorf("p99 %v, hedged %v: want a fifth", alone.Latency.P99, hedged.Latency.P99)
	}
	if a := hedged.Totals.Amplification; a < 1.03 || a > 1.06 {
		t.Errorf("%.3f attempts a call", a)
	}
	// But for one whose call had not ended with the run.
	if cut := hedged.Totals.Hedges - hedged.Totals.Lost; cut < 0 || cut > 1 || hedged.Totals.Hedges != hedged.Totals.Retries {
		t.Errorf("%d hedges, %d attempts lost, %d after the first", hedged.Totals.Hedges, hedged.Totals.Lost, hedged.Totals.Retries)
	}
}

// A first attempt in 100 ms, a hedge after 30 ms in the same time: the call ends
// with the first, and the order of what happens is that of the clock.
func TestHedgesBeginWhenTheyShould(t *testing.T) {
	s := Scenario{
		Horizon:  time.Second,
		Services: []Service{{Name: "api", Time: Distribution{Mean: 100 * millisecond}}},
		Fleets:   []Fleet{{Calls: "api", Processes: 1, Arrivals: Arrivals{Kind: AtOnce}}},
	}
	r := play(t, s, lull.Policy{Hedge: hedge.Config{Attempts: 4, Delay: 30 * millisecond, Share: -1}})
	if got := r.Totals; got.Calls != 1 || got.Succeeded != 1 || got.Attempts != 4 || got.Last != 100*millisecond {
		t.Errorf("%+v", got)
	}
	wantTimes(t, "hedges", moments(r.Series, r.Series.Retries), 30*millisecond, 60*millisecond, 90*millisecond)
}

// When every answer is slow, hedges stop: at no time is the load more than what the
// budget allows.
func TestHedgesStopWhenAllIsSlow(t *testing.T) {
	s := tail(Fault{Kind: SlowDown, At: time.Minute, For: 30 * time.Second, Share: 0.02})
	r := play(t, s, lull.Policy{Hedge: hedge.Config{Attempts: 2}})
	for i := range r.Series.Calls {
		at := time.Duration(i) * r.Series.Step
		if first, extra := r.Series.First[i], r.Series.Retries[i]; extra > 0.12*first && at > 2*time.Second {
			t.Errorf("at %v %.0f attempts a second and %.0f hedges", at, first, extra)
		}
	}
}
