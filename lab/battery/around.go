package battery

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// An Incident is a world in which something went wrong, as it was measured or made by hand.
type Incident struct {
	Scenario sim.Scenario
	// Fleet is the index of the one whose policies are compared, Service of the one that it calls.
	Fleet, Service int
	// From and To are when it went wrong; both zero: it did not.
	From, To time.Duration
	// Capacity is how many attempts a second the service can do. Zero: not known.
	Capacity float64
	// LeastWorkers is how many workers it has at least, if its capacity is not known. Zero: nothing is known.
	LeastWorkers int
}

const (
	mostCalls    = 60_000 // of one flight; larger worlds are scaled down
	usualFault   = 30 * time.Second
	longestFault = 2 * time.Minute
	watched      = 10 * time.Minute // of a world without an incident
)

// Around returns the world of the incident, its peace, and its peace with each of the battery's faults that fits, as long as the
// incident: the neighbourhood in which a policy for it is judged. There is as much time before and after a fault as in the
// battery, and a flight has 60,000 calls at most: rates, processes and workers are divided by the same number. The notes are
// sentences about what was changed or left out.
func (i Incident) Around() (all []World, notes []string) {
	learned := i.Scenario
	learned.Services, learned.Fleets = slices.Clone(learned.Services), slices.Clone(learned.Fleets)
	learned.Step = time.Second
	from, to := i.window()
	if learned.Horizon < to {
		notes = append(notes, fmt.Sprintf("The world ends %v after the incident. It is flown for %v, at the rate at its end.", learned.Horizon-i.To, Full.After))
		learned.Horizon = to
	}
	if to-from < learned.Horizon*3/4 {
		notes = append(notes, fmt.Sprintf("Only %v to %v of the world is flown.", from, to))
		learned = partOf(learned, from, to)
	}
	add := func(name string, s sim.Scenario, long time.Duration) {
		w := World{Family: "around", Name: name, From: Full.Before, To: Full.Before + long, Stationary: long == 0}
		var by float64
		if w.Scenario, by = scaled(s); by > 1 && len(all) == 0 {
			notes = append(notes, fmt.Sprintf("The world is flown at 1/%.0f of its rate, with as many fewer processes and workers.", by))
		}
		all = append(all, w)
	}
	long := i.To - i.From
	if i.repeats() { // there is no end to come back from
		long = 0
	}
	add("learned", learned, long)

	peace := learned
	peace.Warmup, peace.Horizon = 0, min(max(learned.Horizon, Quick.Peace), Full.After)
	peace.Services, peace.Fleets = slices.Clone(peace.Services), slices.Clone(peace.Fleets)
	for k := range peace.Services {
		peace.Services[k].Faults = nil
	}
	for k := range peace.Fleets {
		a := &peace.Fleets[k].Arrivals
		a.Rate *= meanFactor(a.Ramp, learned.Horizon)
		a.Ramp = nil
	}
	add("peace", peace, 0)

	long = min(max(i.To-i.From, 5*time.Second), longestFault)
	if i.To == 0 {
		long = usualFault
		notes = append(notes, fmt.Sprintf("There is no incident in the data: the faults last %v.", long))
	}
	with := func(name string, long time.Duration, change func(*sim.Service, *sim.Fleet)) {
		s := peace
		s.Services, s.Fleets = slices.Clone(s.Services), slices.Clone(s.Fleets)
		s.Horizon = Full.Before + long + Full.After
		change(&s.Services[i.Service], &s.Fleets[i.Fleet])
		add(name, s, long)
	}
	fault := func(name string, x sim.Fault) {
		x.At = Full.Before
		with(name, long, func(v *sim.Service, _ *sim.Fleet) { v.Faults = []sim.Fault{x} })
	}
	with("errors 10 %", 0, func(v *sim.Service, _ *sim.Fleet) { v.Errors = max(v.Errors, 0.1) })
	fault("stall", sim.Fault{Kind: sim.Stall, For: long})
	fault("errors", sim.Fault{Kind: sim.Errors, For: long})
	fault("slow-down", sim.Fault{Kind: sim.SlowDown, For: long, Share: 0.3})
	fault("crash, cold", sim.Fault{Kind: sim.Crash, For: max(long/4, 2*time.Second), Warmup: long, Cold: 5})
	v, rate := &peace.Services[i.Service], peace.Fleets[i.Fleet].Arrivals.Rate
	if v.Hosts > 1 {
		fault("sick host", sim.Fault{Kind: sim.Stall, For: long, Hosts: 1})
	}
	if rate == 0 || v.Workers == 0 && i.LeastWorkers == 0 {
		return all, append(notes, "Without a known capacity and a rate there is no brown-out and no spike.")
	}
	if v.Workers == 0 { // of this copy: it is what the next worlds are made of
		v.Workers, v.Queue.Limit = i.LeastWorkers, 1000
		notes = append(notes, fmt.Sprintf("The capacity is not known. Brown-out and spike are flown with the least that was seen: %d workers, with a line of 1000.", i.LeastWorkers))
	}
	fault("brown-out", sim.Fault{Kind: sim.BrownOut, For: long, Share: 0.3})
	with("spike", long, func(v *sim.Service, fleet *sim.Fleet) {
		factor := 3.0
		if i.Capacity > 0 {
			factor = max(1.5*i.Capacity/rate, 1.5)
		}
		from, to := Full.Before, Full.Before+long
		fleet.Arrivals.Ramp = []sim.RampPoint{{At: from, Factor: 1}, {At: from, Factor: factor}, {At: to, Factor: factor}, {At: to, Factor: 1}}
	})
	return all, notes
}

// window returns the part of the world that is flown: around the incident, or around the busiest moment.
func (i *Incident) window() (from, to time.Duration) {
	horizon, long := i.Scenario.Horizon, i.To-i.From
	if i.To > 0 {
		from, to = max(i.From-max(Full.Before, long/2), 0), i.To+max(Full.After, long)
		if i.repeats() {
			to = min(to, horizon)
		}
		return from, to
	}
	if horizon <= watched {
		return 0, horizon
	}
	var peak sim.RampPoint
	for _, p := range i.Scenario.Fleets[i.Fleet].Arrivals.Ramp {
		if p.Factor > peak.Factor {
			peak = p
		}
	}
	from = min(max(peak.At-watched/2, 0), horizon-watched)
	return from, from + watched
}

// repeats reports whether a fault comes again and again.
func (i *Incident) repeats() bool {
	return slices.ContainsFunc(i.Scenario.Services, func(v sim.Service) bool {
		return slices.ContainsFunc(v.Faults, func(x sim.Fault) bool { return x.Every > 0 })
	})
}

// partOf returns the part of s between two times.
func partOf(s sim.Scenario, from, to time.Duration) sim.Scenario {
	s.Horizon, s.Warmup = to-from, max(s.Warmup-from, 0)
	for i := range s.Services {
		var faults []sim.Fault
		for _, x := range s.Services[i].Faults {
			if x.Every > 0 && x.At < from {
				x.At += (from - x.At + x.Every - 1) / x.Every * x.Every
			}
			end := x.At + x.For
			x.At = max(x.At, from)
			if x.Every == 0 {
				x.For = end - x.At
			}
			if x.At -= from; x.For > 0 && x.At < s.Horizon {
				faults = append(faults, x)
			}
		}
		s.Services[i].Faults = faults
	}
	for i := range s.Fleets {
		a := &s.Fleets[i].Arrivals
		a.At = max(a.At-from, 0)
		var ramp []sim.RampPoint
		add := func(p sim.RampPoint) {
			p.At -= from
			ramp = append(ramp, p)
		}
		for k, p := range a.Ramp {
			for _, edge := range []time.Duration{from, to} { // a line that is cut has a point there
				if k > 0 && a.Ramp[k-1].At < edge && p.At > edge {
					add(between(a.Ramp[k-1], p, edge))
				}
			}
			if p.At >= from && p.At <= to {
				add(p)
			}
		}
		if n := len(a.Ramp); len(ramp) == 0 && n > 0 { // all points are before it, or after it
			last := a.Ramp[n-1]
			if a.Ramp[0].At > to {
				last = a.Ramp[0]
			}
			add(sim.RampPoint{At: from, Factor: last.Factor})
		}
		a.Ramp = ramp
	}
	return s
}

// meanFactor is the mean of a ramp up to the horizon, 1 without one.
func meanFactor(ramp []sim.RampPoint, horizon time.Duration) float64 {
	if len(ramp) == 0 {
		return 1
	}
	sum := ramp[0].Factor * min(ramp[0].At, horizon).Seconds()
	for i, p := range ramp {
		if p.At >= horizon {
			break
		}
		next := sim.RampPoint{At: horizon, Factor: p.Factor}
		if i+1 < len(ramp) {
			next = ramp[i+1]
		}
		if next.At > horizon {
			next = between(p, next, horizon)
		}
		sum += (p.Factor + next.Factor) / 2 * (next.At - p.At).Seconds()
	}
	return sum / horizon.Seconds()
}

// between is the point of the line from a to b at a time.
func between(a, b sim.RampPoint, at time.Duration) sim.RampPoint {
	return sim.RampPoint{At: at, Factor: a.Factor + (b.Factor-a.Factor)*float64(at-a.At)/float64(b.At-a.At)}
}

// scaled returns s with its rates, processes and workers divided by the same number, which it returns, so that one flight has
// mostCalls if that is possible. Each host keeps a worker, and all of them ten: fewer wait for each other more than many do.
func scaled(s sim.Scenario) (sim.Scenario, float64) {
	calls := 0.0
	for i := range s.Fleets {
		a := &s.Fleets[i].Arrivals
		if a.Kind != sim.Poisson && a.Kind != sim.Constant {
			return s, 1 // what arrives per process cannot be divided
		}
		calls += a.Rate * meanFactor(a.Ramp, s.Horizon) * s.Horizon.Seconds()
	}
	by := calls / mostCalls
	for _, v := range s.Services { // exactly, where there are workers: it is the load that matters
		if v.Workers > 0 && by > 1 {
			hosts := float64(max(v.Hosts, 1))
			workers := float64(v.Workers)
			by = workers / max(math.Round(workers/by), math.Ceil(min(10, workers*hosts)/hosts), 1)
		}
	}
	if by <= 1 {
		return s, 1
	}
	part := func(n *int) {
		if *n > 0 {
			*n = max(int(math.Round(float64(*n)/by)), 1)
		}
	}
	s.Services, s.Fleets = slices.Clone(s.Services), slices.Clone(s.Fleets)
	for i := range s.Fleets {
		part(&s.Fleets[i].Processes)
		s.Fleets[i].Arrivals.Rate /= by
	}
	for i := range s.Services {
		v := &s.Services[i]
		part(&v.Workers)
		part(&v.Queue.Limit)
		part(&v.Rate.Burst)
		v.Rate.PerSecond /= by
		v.Congestion = time.Duration(float64(v.Congestion) * by)
	}
	return s, by
}
