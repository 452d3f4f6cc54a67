package main

import (
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// The world of the tables is that of the family grid in lab/battery: a service that does not know
// when its callers have gone, so that it may stay down long after the cause of an outage is over.
// lab/battery/TABLES.md describes it.

const (
	capacity  = 1000        // requests/s
	spikeRate = 2500        // calls/s
	before    = 60 * second // how long all is well before the outage
	// after is how long a policy is watched after it: who has not recovered by then
	// never does.
	after          = 600 * second
	peaceTime      = 600 * second // how long peace is watched
	attemptTimeout = second
)

var fleets = []int{1, 100, 1_000, 10_000, 100_000}

// A cell is one outage that befalls one fleet.
type cell struct {
	load      float64 // share of what the service can do
	processes int
	outage    sim.FaultKind
	spike     bool // instead of the outage, more calls arrive
	length    time.Duration
}

func (c cell) scenario() sim.Scenario {
	s := world(c.load, c.processes)
	end := before + c.length
	s.Horizon = end + after
	if !c.spike {
		s.Services[0].Faults = []sim.Fault{{Kind: c.outage, At: before, For: c.length}}
		return s
	}
	more := spikeRate / (c.load * capacity)
	s.Fleets[0].Arrivals.Ramp = []sim.RampPoint{{At: before, Factor: 1}, {At: before, Factor: more}, {At: end, Factor: more}, {At: end, Factor: 1}}
	return s
}

// A quiet is a time without an outage, in which a share of attempts fails.
type quiet struct {
	processes int
	errors    float64
	late      time.Duration // how soon they fail, if not within 5 ms
}

func (q quiet) scenario() sim.Scenario {
	s := world(0.8, q.processes)
	s.Horizon = peaceTime
	s.Services[0].Errors = q.errors
	if q.late > 0 {
		s.Services[0].ErrorTime = q.late
	}
	return s
}

func world(load float64, processes int) sim.Scenario {
	return sim.Scenario{
		Name: "grid",
		Step: second,
		Services: []sim.Service{{
			Name: "api", Workers: 100, Queue: sim.Queue{Limit: 10_000},
			Time:      sim.Distribution{Kind: sim.Exponential, Mean: 100 * time.Millisecond},
			ErrorTime: 5 * time.Millisecond,
		}},
		Fleets: []sim.Fleet{{
			Calls: "api", Processes: processes,
			Arrivals:       sim.Arrivals{Rate: load * capacity},
			AttemptTimeout: attemptTimeout,
		}},
	}
}
