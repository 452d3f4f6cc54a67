package sim

import (
	"testing"
	"time"
)

// metastableStall is the scenario of that name, with a load of 0.8.
func metastableStall() Scenario {
	return Scenario{
		Horizon: 120 * time.Second, Step: time.Second,
		Services: []Service{{
			Name: "api", Workers: 100, Queue: Queue{Limit: 10000}, Time: Distribution{Kind: Exponential, Mean: 100 * millisecond},
			Faults: []Fault{{Kind: Stall, At: 60 * time.Second, For: 10 * time.Second}},
		}},
		Fleets: []Fleet{{Calls: "api", Processes: 100, Arrivals: Arrivals{Rate: 800}, AttemptTimeout: time.Second}},
	}
}

// An estimate is there to refuse what is impossible: a factor of three is enough.
func TestCost(t *testing.T) {
	flat := metastableStall()
	flat.Services[0].Faults = nil
	endless := metastableStall()
	endless.Services[0].Faults[0].For = time.Hour
	deep := layers("", "")
	deep.Services[2].Errors = 0
	deep.Fleets[0].Arrivals = Arrivals{Rate: 1000}
	closed := flat
	closed.Fleets = []Fleet{{Calls: "api", Processes: 100, Arrivals: Arrivals{Kind: Closed, Think: fixed(time.Second)}}}
	for name, c := range map[string]struct {
		s        Scenario
		attempts int
	}{
		"metastable stall, 3 retries": {metastableStall(), 4},
		"metastable stall, none":      {metastableStall(), 1},
		"no fault":                    {flat, 4},
		"a stall without end":         {endless, 4},
		"three layers":                {deep, 2},
		"a closed loop":               {closed, 3},
		"admission control":           {overloaded(true), 4},
		"what it keeps out":           {overloaded(false), 4},
	} {
		p := retrying(c.attempts, 100*millisecond)
		cost, real := c.s.Cost(Contender{Policy: p}), play(t, c.s, p).Totals.Events
		if ratio := float64(cost.Events) / float64(real); ratio < 1./3 || ratio > 3 {
			t.Errorf("%s: expected %d events, there were %d", name, cost.Events, real)
		}
	}
	// A long series of many services is not free.
	s := Scenario{Horizon: time.Hour, Step: 10 * millisecond, Window: 10 * millisecond, Services: make([]Service, 1000)}
	if m := s.Cost(Contender{}).Memory; m < 1e9 {
		t.Errorf("expected %d bytes", m)
	}
	gates := overloaded(true)
	gates.Services[0].Hosts = 1 << 20
	if m := gates.Cost(Contender{}).Memory; m < 1e9 {
		t.Errorf("expected %d bytes for a million gates", m)
	}
	// An estimate is made of what does not validate, too.
	s = layers("", "")
	s.Services[2].Calls = []Hop{{Service: "api"}, {Service: "nobody"}}
	s.Cost(Contender{})
	Scenario{}.Cost(Contender{})
}

func TestWithProcesses(t *testing.T) {
	for _, have := range [][]int{{1}, {0}, {100}, {1, 1}, {1000, 1, 1}, {1, 1000, 1}, {1, 1, 1000}, {0, 0, 7}, {3, 3, 3}, {1 << 27, 1 << 27}} {
		for _, n := range []int{1, 2, 3, 4, 10, 99, 1000, 1 << 20} {
			s := Scenario{}
			for _, k := range have {
				s.Fleets = append(s.Fleets, Fleet{Processes: k})
			}
			before := s.Fleets[0].Processes
			sum := 0
			for i, f := range s.WithProcesses(n).Fleets {
				if f.Processes < 1 {
					t.Errorf("%v scaled to %d: fleet %d has %d", have, n, i, f.Processes)
				}
				sum += f.Processes
			}
			want(t, "sum", sum, max(n, len(have)))
			want(t, "the original", s.Fleets[0].Processes, before)
		}
	}
	s := Scenario{Fleets: []Fleet{{Processes: 30}, {Processes: 10}}}.WithProcesses(1000)
	want(t, "in proportion", s.Fleets[0].Processes, 750)
}
