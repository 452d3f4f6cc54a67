package battery

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

func shop() sim.Scenario {
	return sim.Scenario{
		Horizon:  time.Minute,
		Services: []sim.Service{{Name: "shop", Workers: 10, Queue: sim.Queue{Limit: 100}, Time: exponential(20 * ms)}},
		Fleets:   []sim.Fleet{{Name: "clients", Calls: "shop", Processes: 10, Arrivals: sim.Arrivals{Rate: 50}}},
	}
}

// A part of a world has the arrivals and the faults that the world has in that time.
func TestPartOfKeepsArrivalsAndFaults(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		s := shop()
		s.Horizon = 1000 * time.Second
		var at []int
		for range r.IntN(6) {
			at = append(at, r.IntN(999))
		}
		slices.Sort(at)
		for _, sec := range at {
			s.Fleets[0].Arrivals.Ramp = append(s.Fleets[0].Arrivals.Ramp, sim.RampPoint{At: time.Duration(sec) * time.Second, Factor: 0.1 + r.Float64()})
		}
		from := time.Duration(r.IntN(500)) * time.Second
		to := from + time.Duration(1+r.IntN(499))*time.Second
		s.Services[0].Faults = []sim.Fault{{Kind: sim.Stall, At: from + (to-from)/4, For: (to - from) / 4}, {Kind: sim.Errors, At: 0, For: from + (to-from)/8}}
		mass := func(s *sim.Scenario, until time.Duration) float64 {
			a := &s.Fleets[0].Arrivals
			return a.Rate * meanFactor(a.Ramp, until) * until.Seconds()
		}
		want := mass(&s, to) - mass(&s, max(from, 1))
		whole := s
		whole.Services, whole.Fleets = slices.Clone(s.Services), slices.Clone(s.Fleets)
		part := partOf(whole, from, to)
		if err := part.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := mass(&part, to-from); math.Abs(got-want) > 1e-6*want+1e-3 {
			t.Fatalf("%v calls from %v to %v, want %v: %v of %v", got, from, to, want, part.Fleets[0].Arrivals, s.Fleets[0].Arrivals)
		}
		if x := part.Services[0].Faults; x[0].At != (to-from)/4 || x[0].For != (to-from)/4 || x[1].At != 0 || x[1].For != (to-from)/8 {
			t.Fatalf("from %v to %v: %+v", from, to, x)
		}
	}
}

// A smaller world has the same load, and each process calls as often.
func TestScaledKeepsTheLoad(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	smaller := 0
	for range 300 {
		s := shop()
		v, f := &s.Services[0], &s.Fleets[0]
		v.Workers, v.Hosts, f.Processes, f.Arrivals.Rate = 1+r.IntN(1000), 1+r.IntN(5), 1+r.IntN(5000), math.Exp(r.Float64()*12)
		small, by := scaled(s)
		if by < 1 || small.Validate() != nil {
			t.Fatalf("by %v: %v", by, small.Validate())
		}
		load := func(s *sim.Scenario) float64 { return s.Fleets[0].Arrivals.Rate / float64(s.Services[0].Workers) }
		if math.Abs(load(&small)/load(&s)-1) > 1e-9 {
			t.Fatalf("1/%v: the load is %v instead of %v", by, load(&small), load(&s))
		}
		each := func(s *sim.Scenario) float64 { return s.Fleets[0].Arrivals.Rate / float64(s.Fleets[0].Processes) }
		if n := small.Fleets[0].Processes; n > 20 && math.Abs(each(&small)/each(&s)-1) > 0.5/float64(n)+1e-9 {
			t.Fatalf("1/%v: a process makes %v calls/s instead of %v", by, each(&small), each(&s))
		}
		if by > 1 {
			smaller++
			if small.Services[0].Workers*v.Hosts < 10 && v.Workers*v.Hosts >= 10 {
				t.Fatalf("%d workers are left of %d", small.Services[0].Workers*v.Hosts, v.Workers*v.Hosts)
			}
		}
	}
	if smaller < 50 {
		t.Errorf("only %d worlds were scaled", smaller)
	}
}

// Around a world there are its peace and faults of its own length, each a valid scenario with as much time around it as in the
// battery. Nothing that the world is made of is changed.
func TestAround(t *testing.T) {
	s := shop()
	s.Services[0].Hosts = 2
	s.Services[0].Faults = []sim.Fault{{Kind: sim.Stall, At: 30 * time.Second, For: 12 * time.Second}}
	for _, workers := range []int{0, 10} {
		s.Services[0].Workers, s.Services[0].Queue.Limit = workers, 10*workers
		digest := Digest(s)
		worlds, notes := Incident{Scenario: s, From: 30 * time.Second, To: 42 * time.Second, LeastWorkers: 4}.Around()
		if Digest(s) != digest {
			t.Fatal("the scenario has changed")
		}
		var names []string
		for _, w := range worlds {
			names = append(names, w.Name)
			if err := w.Scenario.Validate(); err != nil {
				t.Errorf("%s: %v", w.Name, err)
			}
			faults := w.Scenario.Services[0].Faults
			if w.Stationary != (len(faults) == 0 && len(w.Scenario.Fleets[0].Arrivals.Ramp) == 0) {
				t.Errorf("%s: stationary %v with %v", w.Name, w.Stationary, faults)
			}
			if w.Name != "learned" && len(faults) > 0 && (faults[0].At != Full.Before || w.Scenario.Horizon != Full.Before+12*time.Second+Full.After) {
				t.Errorf("%s: %v to %v", w.Name, faults, w.Scenario.Horizon)
			}
		}
		want := []string{"learned", "peace", "errors 10 %", "stall", "errors", "slow-down", "crash, cold", "sick host", "brown-out", "spike"}
		if !slices.Equal(names, want) {
			t.Errorf("worlds %q, want %q", names, want)
		}
		if len(notes) != 2-workers/10 { // that it goes on after its end, and what is assumed of the capacity
			t.Errorf("%d workers: %q", workers, notes)
		}
	}
}

// A sure loss of success counts as it would in a shorter world. What may be chance is flown with more seeds.
func TestTrialOfLongWorlds(t *testing.T) {
	s := shop()
	s.Horizon = 400 * time.Second
	s.Services[0].Faults = []sim.Fault{{Kind: sim.Errors, At: time.Minute, For: 20 * time.Second, Share: 0.05}}
	trial := Trial{Worlds: []World{{Scenario: s, From: time.Minute, To: 80 * time.Second}}, Seeds: 3}
	none := sim.None().Policy
	d := must.Have(trial.Differences(t.Context(), none, lull.Policy{}, 0, 1))[0]
	if want := leastSuccess * 140 / 400; math.Abs(d.LeastSure-want) > 1e-9 || d.Least != leastSuccess {
		t.Errorf("the least that counts is %v, and %v if it is sure: want %v", d.Least, d.LeastSure, want)
	}
	for _, c := range []struct {
		by, half        float64
		worse, doubtful bool
	}{{-0.001, 0.0005, true, false}, {-0.001, 0.0015, false, false}, {-0.003, 0.001, true, false}, {-0.003, 0.004, true, true}, {-0.0005, 0, false, false}} {
		d.By, d.Half = c.by, c.half
		if d.Worse() != c.worse || d.doubtful() != c.doubtful {
			t.Errorf("%v ± %v: worse %v, doubtful %v", c.by, c.half, d.Worse(), d.doubtful())
		}
	}
	if trial.Flights != 6 && trial.Flights != 12 && trial.Flights != 24 {
		t.Errorf("%d flights", trial.Flights)
	}
}

// A policy is as good as itself, and one that makes no attempts again is worse where attempts fail.
func TestTrial(t *testing.T) {
	s := shop()
	s.Services[0].Errors = 0.2
	trial := Trial{Worlds: []World{{Name: "errors", Scenario: s, Stationary: true}}, Seeds: 3}
	none := sim.None().Policy
	for _, d := range must.Have(trial.Differences(t.Context(), none, none, 0, 1)) {
		if d.By != 0 || d.Better() || d.Worse() || d.SurelyWorse() {
			t.Errorf("against itself: %+v", d)
		}
	}
	d := must.Have(trial.Differences(t.Context(), lull.Policy{}, none, 0, 1))
	if d[0].Figure != "success" || !d[0].Better() || d[3].Figure != "attempts" || !d[3].SurelyWorse() {
		t.Errorf("against no retries: %+v", d)
	}
	if trial.Flights != 6 {
		t.Errorf("%d flights", trial.Flights)
	}
	// A success that comes too late is none.
	trial = Trial{Worlds: trial.Worlds, Seeds: 3, InTime: time.Nanosecond}
	for _, f := range must.Have(trial.Fly(t.Context(), none, 0, 1)) {
		if f.Good != 0 {
			t.Errorf("%d in time", f.Good)
		}
	}
}
