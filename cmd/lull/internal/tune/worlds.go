package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
)

// A world is one in which policies are compared.
type world struct {
	name     string
	scenario sim.Scenario
	slack    time.Duration // how much later one may be back and still be level
}

const (
	mostCalls    = 60_000 // of one flight; larger worlds are scaled down
	usualFault   = 30 * time.Second
	longestFault = 2 * time.Minute
	watched      = 10 * time.Minute // of a world without an incident
)

// before and after are how long things are well around a fault: what counts as a difference is made for worlds of that length.
var before, after = battery.Full.Before, battery.Full.After

// worlds returns the learned world, its peace, and its peace with each of the battery's faults that fits, with sentences
// about what was changed or left out.
func (f *facts) worlds() (all []world, notes []string) {
	learned := f.scenario
	learned.Services, learned.Fleets = slices.Clone(learned.Services), slices.Clone(learned.Fleets)
	for i := range learned.Fleets {
		if learned.Fleets[i].Policy == "" {
			learned.Fleets[i].AttemptTimeout = 0 // the policy has it
		}
	}
	learned.Step = time.Second
	if n := len(f.learned.Unknown); n > 0 {
		var paths []string
		for _, q := range f.learned.Unknown {
			paths = append(paths, q.Path)
		}
		slices.Sort(paths)
		notes = append(notes, fmt.Sprintf("The world has open questions, and is flown as it assumes: %s.", strings.Join(slices.Compact(paths), ", ")))
	}
	from, to := f.window()
	if learned.Horizon < to {
		notes = append(notes, fmt.Sprintf("The world ends %v after the incident. It is flown for %v, at the rate at its end.", learned.Horizon-f.to, after))
		learned.Horizon = to
	}
	if to-from < learned.Horizon*3/4 {
		notes = append(notes, fmt.Sprintf("Only %v to %v of the world is flown.", from, to))
		learned = cut(learned, from, to)
	}
	add := func(name string, s sim.Scenario, long time.Duration) {
		w := world{name: name, scenario: s, slack: math.MaxInt64}
		if long > 0 {
			w.slack = max(2*time.Second, long/50)
		}
		var by float64
		w.scenario, by = scaled(s)
		if by > 1 && name == "learned" {
			notes = append(notes, fmt.Sprintf("The world is flown at 1/%.0f of its rate, with as many fewer processes and workers.", by))
		}
		all = append(all, w)
	}
	add("learned", learned, f.lasted())
	if f.repeats() {
		all[0].slack = math.MaxInt64 // there is no end to come back from
	}

	peace := learned
	peace.Services, peace.Fleets = slices.Clone(peace.Services), slices.Clone(peace.Fleets)
	for i := range peace.Services {
		peace.Services[i].Faults = nil
	}
	for i := range peace.Fleets {
		a := &peace.Fleets[i].Arrivals
		a.Rate *= meanFactor(a.Ramp, learned.Horizon)
		a.Ramp = nil
	}
	peace.Horizon = min(max(learned.Horizon, 2*time.Minute), 5*time.Minute)
	peace.Warmup = 0
	add("peace", peace, 0)

	long := min(max(f.lasted(), 5*time.Second), longestFault)
	if f.lasted() == 0 {
		long = usualFault
		notes = append(notes, fmt.Sprintf("There is no incident in the data: the faults last %v.", long))
	}
	v := &peace.Services[f.service]
	with := func(name string, during time.Duration, change func(v *sim.Service, fleet *sim.Fleet)) {
		s := peace
		s.Services, s.Fleets = slices.Clone(s.Services), slices.Clone(s.Fleets)
		s.Horizon = before + during + after
		change(&s.Services[f.service], &s.Fleets[f.fleet])
		add(name, s, during)
	}
	fault := func(x sim.Fault) func(*sim.Service, *sim.Fleet) {
		x.At = before
		return func(v *sim.Service, _ *sim.Fleet) { v.Faults = []sim.Fault{x} }
	}
	with("errors 10 %", long, func(v *sim.Service, _ *sim.Fleet) { v.Errors = max(v.Errors, 0.1) })
	all[len(all)-1].slack = math.MaxInt64
	with("stall", long, fault(sim.Fault{Kind: sim.Stall, For: long}))
	with("errors", long, fault(sim.Fault{Kind: sim.Errors, For: long}))
	with("slow-down", long, fault(sim.Fault{Kind: sim.SlowDown, For: long, Share: 0.3}))
	with("crash, cold", long, fault(sim.Fault{Kind: sim.Crash, For: max(long/4, 2*time.Second), Warmup: long, Cold: 5}))
	if v.Hosts > 1 {
		with("sick host", long, fault(sim.Fault{Kind: sim.Stall, For: long, Hosts: 1}))
	}
	rate := peace.Fleets[f.fleet].Arrivals.Rate
	if v.Workers == 0 || rate == 0 {
		notes = append(notes, "Without a known capacity and a rate there is no brown-out and no spike.")
		return all, notes
	}
	with("brown-out", long, fault(sim.Fault{Kind: sim.BrownOut, For: long, Share: 0.3}))
	with("spike", long, func(v *sim.Service, fleet *sim.Fleet) {
		factor := 3.0
		if f.capacity > 0 {
			factor = max(1.5*f.capacity/rate, 1.5)
		}
		fleet.Arrivals.Ramp = []sim.RampPoint{{At: before, Factor: 1}, {At: before, Factor: factor}, {At: before + long, Factor: factor}, {At: before + long, Factor: 1}}
	})
	return all, notes
}

// window returns the part of the world that is flown: around the incident, or around the busiest moment.
func (f *facts) window() (from, to time.Duration) {
	horizon := f.scenario.Horizon
	if f.to == 0 {
		if horizon <= watched {
			return 0, horizon
		}
		peak := time.Duration(0)
		most := 0.0
		for _, p := range f.scenario.Fleets[f.fleet].Arrivals.Ramp {
			if p.Factor > most {
				peak, most = p.At, p.Factor
			}
		}
		from = min(max(peak-watched/2, 0), horizon-watched)
		return from, from + watched
	}
	before, after := max(before, f.lasted()/2), max(after, f.lasted())
	if f.repeats() {
		return max(f.from-before, 0), min(f.to+after, horizon)
	}
	return max(f.from-before, 0), f.to + after
}

// repeats reports whether there are incidents again and again.
func (f *facts) repeats() bool {
	return slices.ContainsFunc(f.scenario.Services, func(v sim.Service) bool {
		return slices.ContainsFunc(v.Faults, func(x sim.Fault) bool { return x.Every > 0 })
	})
}

// cut returns the part of s between two times.
func cut(s sim.Scenario, from, to time.Duration) sim.Scenario {
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
