package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

func large() sim.Scenario {
	return sim.Scenario{
		Horizon: time.Minute,
		Services: []sim.Service{{
			Name: "api", Workers: 400, Queue: sim.Queue{Limit: 4000}, Time: sim.Distribution{Kind: sim.Exponential, Mean: 100 * ms},
			Faults: []sim.Fault{{Kind: sim.Stall, At: 20 * time.Second, For: 5 * time.Second}},
		}},
		Fleets: []sim.Fleet{{Calls: "api", Processes: 160, AttemptTimeout: time.Second, Arrivals: sim.Arrivals{Rate: 3200}}},
	}
}

// A policy does in a smaller world what it does in the large one.
func TestSmaller(t *testing.T) {
	small, ok := large().Smaller(8)
	v, f := small.Services[0], small.Fleets[0]
	if !ok || v.Workers != 50 || v.Queue.Limit != 500 || f.Arrivals.Rate != 400 || f.Processes != 20 {
		t.Fatalf("an eighth, %v: %+v", ok, small)
	}
	for _, c := range []sim.Contender{{Name: "lull"}, sim.None()} {
		of := func(s sim.Scenario) sim.Result { return must.Have(sim.Run(t.Context(), s, c, sim.Options{Seed: 1})) }
		a, b := of(large()), of(small)
		near := func(what string, x, y, by float64) {
			if math.Abs(x-y) > by {
				t.Errorf("%s: %s is %v in the large world and %v in the small one", c.Name, what, x, y)
			}
		}
		near("the share of successes", a.Totals.SuccessRate(), b.Totals.SuccessRate(), 0.01)
		near("attempts for each call", a.Totals.Amplification, b.Totals.Amplification, 0.02)
		near("time back", a.Recovery.Time.Seconds(), b.Recovery.Time.Seconds(), 2)
		near("calls held", a.HeldRate(), 8*b.HeldRate(), 0.05*a.HeldRate())
	}
	if again := large(); again.Services[0].Workers != 400 {
		t.Error("the large world has changed")
	}
}

// There is no smaller world where something would not be the same.
func TestNotSmaller(t *testing.T) {
	for name, change := range map[string]func(s *sim.Scenario){
		"too few workers":          func(s *sim.Scenario) { s.Services[0].Workers = 392 },
		"a short queue":            func(s *sim.Scenario) { s.Services[0].Queue.Limit = 12 },
		"too few processes":        func(s *sim.Scenario) { s.Fleets[0].Processes = 100 },
		"memory":                   func(s *sim.Scenario) { s.Services[0].Heap.Size = 1 << 30 },
		"connections":              func(s *sim.Scenario) { s.Services[0].Connections.Limit = 800 },
		"admission control":        func(s *sim.Scenario) { s.Services[0].Admission.On = true },
		"calls that begin at once": func(s *sim.Scenario) { s.Fleets[0].Arrivals = sim.Arrivals{Kind: sim.AtOnce} },
	} {
		s := large()
		change(&s)
		if _, ok := s.Smaller(8); ok {
			t.Errorf("%s: it is said to be the same world", name)
		}
	}
	s := large()
	s.Fleets[0].Processes = 4
	small, ok := s.Smaller(8)
	check.Equal(t, ok, true, "few processes, with 100 calls a second each even in the smaller world")
	check.Equal(t, small.Fleets[0].Processes, 4, "processes")
}
