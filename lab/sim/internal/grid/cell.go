package grid

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// An Outage is what goes wrong.
type Outage string

const (
	Stall    Outage = "stall"     // the workers stand still
	BrownOut Outage = "brown-out" // a tenth of the workers is left
	Spike    Outage = "spike"     // 2,500 calls/s arrive
	Errors   Outage = "errors"    // every attempt fails within 5 ms
)

const (
	capacity  = 1000 // requests/s
	spikeRate = 2500 // calls/s
	// Before is how long all is well before the outage.
	Before = 60 * time.Second
	// After is how long a policy is watched after it: who has not recovered by then
	// never does.
	After = 600 * time.Second
	// Tie is how far apart two times to recover may be and still be equal.
	Tie = 2 * time.Second
)

// A Cell is one outage that befalls one fleet.
type Cell struct {
	Load      float64 // share of what the service can do
	Processes int
	Outage    Outage
	Length    time.Duration
}

// What the whole grid is made of.
var (
	Loads   = []float64{0.2, 0.5, 0.8, 0.9, 0.95}
	Fleets  = []int{1, 100, 1_000, 10_000, 100_000}
	Outages = []Outage{Stall, BrownOut, Spike, Errors}
	Lengths = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second}
	// Edges are lengths about as long as an attempt may take: an outage that fills
	// the line just so far that the answers come too late. Half of
	// the calls may go on failing for ever then, with retries that keep it so.
	Edges       = []time.Duration{800 * time.Millisecond, 1200 * time.Millisecond, 1500 * time.Millisecond}
	PeaceErrors = []float64{0.001, 0.01, 0.05, 0.1}
)

// Cells is every combination of what it is given.
func Cells(loads []float64, fleets []int, outages []Outage, lengths []time.Duration) []Cell {
	var all []Cell
	for _, n := range fleets {
		for _, load := range loads {
			for _, o := range outages {
				for _, d := range lengths {
					all = append(all, Cell{load, n, o, d})
				}
			}
		}
	}
	return all
}

// String is the cell in words.
func (c Cell) String() string {
	return fmt.Sprintf("%s of %v, load %v, %s", c.Outage, c.Length, c.Load, processes(c.Processes))
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

// Scenario is the world of the cell, watched for the given time after the outage.
func (c Cell) Scenario(after time.Duration) sim.Scenario {
	s := world(c.Load, c.Processes)
	s.Horizon = Before + c.Length + after
	fault := sim.Fault{At: Before, For: c.Length}
	switch c.Outage {
	case Stall:
		fault.Kind = sim.Stall
	case BrownOut:
		fault.Kind = sim.BrownOut
	case Errors:
		fault.Kind = sim.Errors
	case Spike:
		more := spikeRate / (c.Load * capacity)
		s.Fleets[0].Arrivals.Ramp = []sim.RampPoint{
			{At: Before, Factor: 1}, {At: Before, Factor: more},
			{At: Before + c.Length, Factor: more}, {At: Before + c.Length, Factor: 1},
		}
		return s
	}
	s.Services[0].Faults = []sim.Fault{fault}
	return s
}

// Peace is a time without an outage, in which a share of attempts fails.
type Peace struct {
	Load      float64
	Processes int
	Errors    float64
	// After is how soon they fail. Longer than the second that an attempt may take
	// makes them time-outs.
	After time.Duration
	// For is how long it is watched.
	For time.Duration
}

// PeaceTime is how long peace is watched.
const PeaceTime = 600 * time.Second

// String is the peace in words.
func (p Peace) String() string {
	return fmt.Sprintf("peace with %v %% errors, load %v, %s", 100*p.Errors, p.Load, processes(p.Processes))
}

// Scenario is the world in peace.
func (p Peace) Scenario() sim.Scenario {
	s := world(p.Load, p.Processes)
	s.Horizon = p.For
	s.Services[0].Errors = p.Errors
	if p.After > 0 {
		s.Services[0].ErrorTime = p.After
	}
	return s
}

func world(load float64, processes int) sim.Scenario {
	return sim.Scenario{
		Name: "grid",
		Step: time.Second,
		Services: []sim.Service{{
			Name: "api", Workers: 100, Queue: sim.Queue{Limit: 10_000},
			Time:      sim.Distribution{Kind: sim.Exponential, Mean: 100 * time.Millisecond},
			ErrorTime: 5 * time.Millisecond,
		}},
		Fleets: []sim.Fleet{{
			Calls: "api", Processes: processes,
			Arrivals:       sim.Arrivals{Rate: load * capacity},
			AttemptTimeout: time.Second,
		}},
	}
}
