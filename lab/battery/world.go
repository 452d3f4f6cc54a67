package battery

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// A World is one scenario, and what is demanded of a policy in it.
type World struct {
	Family, Name string
	Scenario     sim.Scenario
	// From and To are when the outage begins and ends; both zero: there is none.
	From, To time.Duration
	// Stationary: nothing changes, or it repeats itself from the beginning to the end.
	Stationary bool
	// Total: there is one outage, in which no attempt succeeds, and nothing else goes wrong:
	// no errors, lost requests or rate limit, and no timeout that cuts off healthy answers, which
	// may have waited in line.
	Total bool
	// Hangs: attempts get no answer in the outage, or an error that takes longer than an answer does.
	Hangs bool
	// Floor is the least share of calls that has to succeed. Zero: none is asked.
	Floor float64
	// Within is how soon the zero Policy has to be back. Zero: no sooner than the other demands ask.
	Within time.Duration
	// Peace is the same world without its outage, with a few errors. Stationary worlds
	// have none: they are their own peace.
	Peace []sim.Scenario
}

func (w World) String() string { return w.Name }

// Slack is how much later than another a policy may be back and still be level: two seconds,
// or 2 % of the outage. In a stationary world all are level.
func (w World) Slack() time.Duration {
	if w.Stationary {
		return math.MaxInt64
	}
	return max(2*time.Second, (w.To-w.From)/50)
}

// A Size is how long worlds last, and which are left out because they are too large.
type Size struct {
	Before, After, Peace time.Duration
	Processes            int     // at most
	Rate                 float64 // calls/s, at most
	Whole                bool    // every cell of the grid: a thousand worlds
}

var (
	// Full is the battery as it decides about defaults.
	Full = Size{Before: time.Minute, After: 5 * time.Minute, Peace: 10 * time.Minute, Processes: 100_000, Rate: 10_000}
	// Quick is shorter, and without the largest fleets: for a first look.
	Quick = Size{Before: 20 * time.Second, After: 100 * time.Second, Peace: 2 * time.Minute, Processes: 1_000, Rate: 2_000}
)

// peaceErrors are the shares of attempts that fail in the peace of each world.
var peaceErrors = []float64{0.01, 0.1}

// Worlds returns every world of that size, in the order of the families.
func Worlds(z Size) []World {
	var all []World
	for _, f := range Families {
		all = append(all, f.worlds(z)...)
	}
	return all
}

func (f Family) worlds(z Size) []World {
	var all []World
	f.build(z, func(name string, parts ...part) {
		w := World{Family: f.Name, Name: name}
		for _, p := range parts {
			p(z, &w)
		}
		if w.Scenario.Fleets[0].Processes > z.Processes || w.Scenario.Fleets[0].Arrivals.Rate > z.Rate {
			return
		}
		w.finish(z)
		all = append(all, w)
	})
	return all
}

// finish fills in what follows from the scenario.
func (w *World) finish(z Size) {
	s := &w.Scenario
	s.Name, s.Step = w.Name, time.Second
	for _, service := range s.Services {
		for _, f := range service.Faults {
			w.outage(f.At, f.At+f.For)
			late := f.Kind == sim.Errors && f.After > service.Time.Mean
			w.Hangs = w.Hangs || late || f.Kind == sim.Stall || f.Silent
		}
	}
	w.Stationary = w.Stationary || w.To == 0
	w.Total = total(s)
	s.Horizon = cmp.Or(s.Horizon, w.To+z.After)
	if w.To == 0 {
		s.Horizon = max(s.Horizon, z.Peace)
		return
	}
	for _, share := range peaceErrors {
		p := *s
		p.Services, p.Fleets = slices.Clone(s.Services), slices.Clone(s.Fleets)
		for i := range p.Services {
			p.Services[i].Faults = nil
		}
		for i := range p.Fleets {
			p.Fleets[i].Arrivals.Ramp = nil
		}
		last := &p.Services[len(p.Services)-1]
		last.Errors = max(last.Errors, share)
		p.Name, p.Horizon = fmt.Sprintf("%v %% errors", 100*share), min(z.Peace, s.Horizon)
		w.Peace = append(w.Peace, p)
	}
}

// total reports whether the scenario is of the kind that World.Total describes.
func total(s *sim.Scenario) bool {
	v, f := &s.Services[0], &s.Fleets[0]
	if len(s.Services) != 1 || len(s.Fleets) != 1 || len(v.Faults) != 1 {
		return false
	}
	switch fault := &v.Faults[0]; {
	case fault.Every > 0 || fault.Hosts > 0:
		return false
	case fault.Kind == sim.Stall && fault.For <= f.AttemptTimeout: // attempts wait for its end, and succeed
		return false
	case fault.Kind != sim.Stall && fault.Kind != sim.Crash && (fault.Kind != sim.Errors || fault.Share > 0):
		return false
	}
	quiet := v.Errors == 0 && v.Rate.PerSecond == 0 && f.Network.Loss == 0
	return quiet && f.AttemptTimeout.Seconds() > 4*answer(v, f) // of exponential times, 2 % take longer than four times the mean
}

// answer is how many seconds an answer takes on average while all is well, with the wait in line: exactly
// where a host has one worker, and at most where it has more. (Of the calls to c workers with a load of l
// a share waits, by Erlang's formula C, that is at most l, and is l where c is 1. These wait for 1/(c(1-l))
// times the time of a call.)
func answer(v *sim.Service, f *sim.Fleet) float64 {
	mean, c := v.Time.Mean.Seconds(), float64(v.Workers)
	if c == 0 { // no limit: nobody waits
		return mean
	}
	load := f.Arrivals.Rate * mean / (c * float64(max(v.Hosts, 1)))
	if load >= 1 {
		return math.Inf(1)
	}
	return mean + load*mean/(c*(1-load))
}

func (w *World) outage(from, to time.Duration) {
	if w.To == 0 {
		w.From = from
	}
	w.From, w.To = min(w.From, from), max(w.To, to)
}
