package sim

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
)

func wantSeconds(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*max(want, 1) {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

// Ten calls a second are made for 19 s, and answered after 100 ms. From 5 to 11 s each attempt fails at once, and another
// follows after half a second: the last five of those succeed, after 0.6 s.
func TestHeldTimeIsOfAttemptsAndWaits(t *testing.T) {
	s := Scenario{
		Horizon: 20 * time.Second, Step: 100 * millisecond,
		Services: []Service{{Name: "api", Time: fixed(100 * millisecond), Faults: []Fault{{Kind: Errors, At: 5*time.Second - millisecond, For: 6 * time.Second}}}},
		Fleets: []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: Constant, Rate: 10, At: 50 * millisecond,
			Ramp: []RampPoint{{Factor: 1}, {At: 19 * time.Second, Factor: 1}, {At: 19 * time.Second}}}}},
	}
	r := play(t, s, retrying(2, 500*millisecond))
	h, retried := r.Totals.Held, float64(r.Totals.Retries)
	wantSeconds(t, "in attempts", h.Attempts, 0.1*float64(r.Totals.Succeeded))
	wantSeconds(t, "in waits", h.Waits(), 0.5*retried)
	wantSeconds(t, "in all", h.Seconds, h.Attempts+0.5*retried)
	wantSeconds(t, "of calls in the disturbance", h.Disturbed, 0.5*retried+5*0.1)
	wantSeconds(t, "calls in progress", r.HeldRate(), h.Seconds/20)
	want(t, "longest", h.Max, 600*millisecond)
	want(t, "most at once", h.Most, 7)
	if retried != 60 || h.P50 < 100*millisecond || h.P50 > 101*millisecond || h.P99 < 600*millisecond || h.MostAt < 11*time.Second {
		t.Errorf("%v retries, %+v", retried, h)
	}
	// Little's law: the mean of what is in progress, taken at the ends of steps.
	sum := 0.0
	for _, n := range r.Series.Held {
		sum += n
	}
	if mean := sum / float64(len(r.Series.Held)); math.Abs(mean-r.HeldRate()) > 0.02*mean {
		t.Errorf("%g calls in progress at the ends of steps, %g by their times", mean, r.HeldRate())
	}
}

// What began in the warm-up is not counted.
func TestHeldTimeBeginsAfterTheWarmup(t *testing.T) {
	s := Scenario{
		Horizon: 20 * time.Second, Warmup: 10 * time.Second,
		Services: []Service{{Name: "api", Time: fixed(100 * millisecond)}},
		Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: Constant, Rate: 10}}},
	}
	r := play(t, s, once())
	ended := r.Totals.Calls - r.Totals.Unfinished
	wantSeconds(t, "in all", r.Totals.Held.Seconds, 0.1*float64(ended))
	wantSeconds(t, "calls in progress", r.HeldRate(), 0.01*float64(ended))
}

// Attempts of a call that run beside one another hold it once: 100 ms, although they take 220 ms together.
func TestHedgesHoldACallOnce(t *testing.T) {
	s := Scenario{
		Horizon:  time.Second,
		Services: []Service{{Name: "api", Time: fixed(100 * millisecond)}},
		Fleets:   []Fleet{{Calls: "api", Processes: 1, Arrivals: Arrivals{Kind: AtOnce}}},
	}
	r := play(t, s, lull.Policy{Hedge: hedge.Config{Attempts: 4, Delay: 30 * millisecond, Share: -1}})
	want(t, "attempts", r.Totals.Attempts, 4)
	wantSeconds(t, "in all", r.Totals.Held.Seconds, 0.1)
	wantSeconds(t, "in attempts", r.Totals.Held.Attempts, 0.1)
}

// A timeout holds its call for as long as it is, and each fleet has its own figures.
func TestHeldTimeOfFleets(t *testing.T) {
	s := Scenario{
		Horizon:  10 * time.Second,
		Services: []Service{{Name: "api", Time: fixed(time.Hour)}},
		Fleets: []Fleet{
			{Name: "patient", Calls: "api", AttemptTimeout: 2 * time.Second, Arrivals: Arrivals{Kind: AtOnce}},
			{Name: "hasty", Calls: "api", AttemptTimeout: time.Second, Arrivals: Arrivals{Kind: AtOnce, Each: 3}},
		},
	}
	r := play(t, s, once())
	wantSeconds(t, "patient", r.Fleets[0].Totals.Held.Attempts, 2)
	wantSeconds(t, "hasty", r.Fleets[1].Totals.Held.Seconds, 3)
	want(t, "hasty, most", r.Fleets[1].Totals.Held.Most, 3)
	wantSeconds(t, "all", r.Totals.Held.Seconds, 5)
	want(t, "most", r.Totals.Held.Most, 4)
}

// From the first fault on each call makes three attempts; before it and without it, one.
func TestWorstTenSeconds(t *testing.T) {
	s := Scenario{
		Horizon:  time.Minute,
		Services: []Service{{Name: "api", Time: fixed(millisecond), Faults: []Fault{{Kind: Errors, At: 20 * time.Second, For: 20 * time.Second}}}},
		Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: Constant, Rate: 10}}},
	}
	r := play(t, s, retrying(3, 10*millisecond))
	wantSeconds(t, "of three attempts", r.Totals.WorstTenSeconds, 3)
	s.Services[0].Faults[0].For = time.Second // ten calls of a hundred
	wantSeconds(t, "a second of errors", play(t, s, retrying(3, 10*millisecond)).Totals.WorstTenSeconds, 1.2)
	s.Services[0].Faults = nil
	wantSeconds(t, "without a fault", play(t, s, retrying(3, 10*millisecond)).Totals.WorstTenSeconds, 1)
}

// In an outage of a minute callers with another answer for each call get one. The dependency gets the attempts that it gets
// without one, at the same times. With one for a half of the calls, a half of those that fail has it.
func TestCallersWithAnotherAnswer(t *testing.T) {
	fly := func(share float64) Result {
		s := Scenario{
			Horizon:  3 * time.Minute,
			Services: []Service{{Name: "api", Time: fixed(10 * millisecond), Faults: []Fault{{Kind: Errors, At: time.Minute, For: time.Minute}}}},
			Fleets:   []Fleet{{Calls: "api", Processes: 10, Fallback: share, Arrivals: Arrivals{Rate: 100}}},
		}
		return play(t, s, lull.Policy{})
	}
	none, half, all := fly(0), fly(0.5), fly(1)
	failed := none.Totals.Calls - none.Totals.Unfinished - none.Totals.Succeeded
	want(t, "degraded without another answer", none.Totals.Degraded, 0)
	want(t, "degraded", all.Totals.Degraded, failed)
	if share := float64(half.Totals.Degraded) / float64(failed); failed < 1000 || share < 0.45 || share > 0.55 {
		t.Errorf("%d calls failed, and %.3f of them had another answer", failed, share)
	}
	want(t, "attempts", all.Totals.Attempts, none.Totals.Attempts)
	for i, n := range none.Series.Retries {
		if n != all.Series.Retries[i] || none.Series.First[i] != all.Series.First[i] {
			t.Fatalf("step %d: other attempts", i)
		}
	}
}
