package sim_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lab/sim"
)

// Callers that fail together. A base load of 500 calls a second, evenly spaced,
// and M callers more that all call at the same moment, while the service is down
// for 200 ms. What of the M comes back together makes the peak after recovery.
func synchronised(m int, capacity float64) sim.Scenario {
	s := sim.Scenario{
		Horizon: 15 * time.Second, Step: 50 * ms, Window: 50 * ms,
		Services: []sim.Service{{Name: "api", Faults: []sim.Fault{{Kind: sim.Errors, For: 200 * ms}}}},
		Fleets: []sim.Fleet{
			// A millisecond off, so that it does not compete with those who come back at
			// a round time.
			{Name: "base load", Calls: "api", Arrivals: sim.Arrivals{Kind: sim.Constant, Rate: 500, At: ms}, Policy: "never pays"},
			{Name: "together", Calls: "api", Processes: m, Arrivals: sim.Arrivals{Kind: sim.AtOnce}},
		},
	}
	if capacity > 0 { // counted in slots of 10 ms
		s.Services[0].Rate = sim.Rate{PerSecond: capacity, Burst: int(capacity / 100)}
	}
	return s
}

// neverPays makes one attempt, and its calls end for a reason of their own, so
// that they can be distinguished from the others.
var neverPays = sim.Contender{Name: "never pays", Policy: bare(2, atOnce), Options: paidBy(func() budget.Budget { return idle{} })}

// peakOver is the busiest 50 ms from the recovery on, over the base load.
func peakOver(r *sim.Result) float64 {
	most := 0.0
	for i := int(200 * ms / r.Series.Step); i < len(r.Series.First); i++ {
		most = max(most, r.Series.First[i]+r.Series.Retries[i])
	}
	return most / 500
}

func TestAgreeSynchronisedCallers(t *testing.T) {
	// peak over base load, and the share of the M that give up; from five runs of
	// a model that shares nothing with this one.
	type row struct{ none, equal, full float64 }
	tab := newTable("M", "base", "capacity/s", "policy", "peak over base load", "there", "z", "gave up", "there")
	for _, c := range []struct {
		m        int
		base     time.Duration
		capacity float64
		peak     row
		gaveUp   row
	}{
		{25, 100 * ms, 0, row{2.00, 1.46, 1.33}, row{}},
		{50, 100 * ms, 0, row{3.00, 1.97, 1.60}, row{}},
		{194, 100 * ms, 0, row{8.76, 4.90, 3.30}, row{}},
		{194, 500 * ms, 0, row{8.76, 2.85, 2.15}, row{}},
		{194, time.Second, 0, row{8.76, 2.00, 1.66}, row{}},
		{194, 2 * time.Second, 0, row{8.76, 1.62, 1.40}, row{}},
		{1000, 2 * time.Second, 0, row{41, 3.59, 2.50}, row{}},
		{194, 100 * ms, 600, row{8.76, 4.90, 3.39}, row{0.88, 0, 0.01}},
		{194, 100 * ms, 1000, row{8.76, 4.90, 3.34}, row{0.79, 0, 0}},
		{500, 100 * ms, 600, row{21, 10.86, 7.06}, row{0.95, 0.06, 0.08}},
		{1000, 100 * ms, 600, row{41, 21.50, 13.36}, row{0.98, 0.26, 0.25}},
	} {
		for _, p := range []struct {
			name         string
			jitter       backoff.Jitter
			peak, gaveUp float64
		}{
			{"none", backoff.None, c.peak.none, c.gaveUp.none},
			{"equal", backoff.Equal, c.peak.equal, c.gaveUp.equal},
			{"full", backoff.Full, c.peak.full, c.gaveUp.full},
		} {
			policy := bare(6, backoff.Schedule{Jitter: p.jitter, Base: c.base})
			policy.RateLimitedBase = ms // over the limit is as bad as down, and no worse
			rs := fly(t, synchronised(c.m, c.capacity), sim.Contender{Name: p.name, Policy: policy}, some(10))
			peak := over(rs, peakOver)
			gaveUp := over(rs, func(r *sim.Result) float64 {
				return float64(r.Totals.Reasons[engine.AttemptsExhausted.String()]) / float64(c.m)
			})
			// Their mean of five deviates as ours of five would. It is printed to a
			// hundredth.
			z := peak.apart(p.peak, math.Hypot(peak.deviates/math.Sqrt(5), 0.005))
			tab.row(c.m, c.base, c.capacity, p.name, peak, p.peak, z, gaveUp, p.gaveUp)
			name := fmt.Sprintf("%d callers, base %v, capacity %v, %s", c.m, c.base, c.capacity, p.name)
			if math.Abs(z) > sigmas {
				t.Errorf("%s: peak %v times the base load, want %v", name, peak, p.peak)
			}
			if p.jitter == backoff.None && math.Abs(peak.mean-(500+20*float64(c.m))/500) > 1e-9 {
				t.Errorf("%s: peak %v times the base load, want (500 + 20 M)/500 exactly", name, peak)
			}
			// There the capacity is given out in slots of 10 ms, here by a token bucket
			// of that depth. Where most of what comes is turned away, it matters who
			// is there when a slot begins: with 500 callers and more it is the shape
			// that is compared, with 194 the figure.
			give := 0.025
			if c.m > 194 {
				give = 0.1
			}
			if math.Abs(gaveUp.mean-p.gaveUp) > give {
				t.Errorf("%s: %v gave up, want %v", name, gaveUp, p.gaveUp)
			}
		}
	}
	tab.log(t)
}

// v-code01/retrystorm publishes the most retries in any 20 ms of 100,000 callers
// that fail together and go on failing, base 1 s. (With full jitter it is just
// before 1 s, where the first four retries overlap: 2000 (1 + 1/2 + 1/16 + 1/384)
// are 3130, and the busiest bin is a little above its expectation.)
func TestAgreeRetriesPer20ms(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: a million retries on one goroutine")
	}
	s := sim.Scenario{
		Horizon: 6 * time.Second, Step: 20 * ms,
		Services: []sim.Service{{Name: "api", Errors: 1}},
		Fleets:   []sim.Fleet{{Calls: "api", Processes: 100_000, Arrivals: sim.Arrivals{Kind: sim.AtOnce}}},
	}
	tab := newTable("jitter", "most retries in 20 ms", "published", "an earlier reproduction")
	for _, c := range []struct {
		jitter          backoff.Jitter
		published, ours float64
	}{{backoff.None, 100_000, 100_000}, {backoff.Full, 3148, 3141}, {backoff.Equal, 4111, 4129}, {backoff.Decorrelated, 1347, 1344}} {
		rs := fly(t, s, sim.Contender{Policy: bare(5, backoff.Schedule{Jitter: c.jitter, Base: time.Second, Cap: 30 * time.Second})}, 1)
		most := over(rs, func(r *sim.Result) float64 {
			most := 0.0
			for _, x := range r.Series.Retries {
				most = max(most, x*r.Series.Step.Seconds())
			}
			return most
		})
		tab.row(c.jitter, most, c.published, c.ours)
		// The count of a bin deviates by its square root; the largest of many similar
		// ones by less than that.
		if give := 3 * math.Sqrt(c.published); c.jitter != backoff.None && math.Abs(most.mean-c.published) > give || c.jitter == backoff.None && most.mean != c.published {
			t.Errorf("%v: %v retries in the busiest 20 ms, want %v", c.jitter, most, c.published)
		}
	}
	tab.log(t)
}
