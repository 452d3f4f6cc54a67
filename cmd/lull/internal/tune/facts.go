package tune

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// facts are what a learned world says about the calls of one fleet to one service.
type facts struct {
	scenario       sim.Scenario
	learned        *scenario.Learned
	fleet, service int // of the scenario

	times    scenario.Sample // of attempts while all was well
	network  time.Duration   // what the network adds to them at most
	seenP99  time.Duration   // of what succeeded while all was well, with waits in line; 0: not known
	patience time.Duration   // the callers' attempt timeout; 0: not known
	from, to time.Duration   // of the incident; both 0: there was none
	busiest  float64         // calls/s of the fleet in the busiest moment outside of the incident; 0: they have no rate
	load     float64         // of all fleets, likewise
	errors   float64         // the upper bound of the share of attempts that fail while all is well
	least    int             // workers that the service has at least, if its capacity is not known; 0: nothing is known
	capacity float64         // the lower bound of what the service can do, attempts/s; 0: not known
}

// factsOf returns the facts of the first fleet whose policy is compared.
func factsOf(s sim.Scenario, l *scenario.Learned) (facts, error) {
	f := facts{scenario: s, learned: l}
	f.fleet = slices.IndexFunc(s.Fleets, func(x sim.Fleet) bool { return x.Policy == "" })
	switch {
	case l == nil:
		return f, errors.New("learned is missing: want a world that lull learn wrote")
	case f.fleet < 0 || len(s.Topics) > 0:
		return f, errors.New("fleets: want one without a policy of its own, and no topics: tune is about the policy of callers")
	}
	f.scenario.Fleets = slices.Clone(s.Fleets)
	fleet := &f.scenario.Fleets[f.fleet]
	f.patience = cmp.Or(fleet.AttemptTimeout, l.Time("attempt timeout"))
	for i := range f.scenario.Fleets {
		if s.Fleets[i].Policy == "" {
			f.scenario.Fleets[i].AttemptTimeout = 0 // the policy has it
		}
	}
	fleet.Deadline = cmp.Or(fleet.Deadline, l.Time("deadline of calls"))
	delay := fleet.Network.Latency
	f.network = max(2*delay.Max, choice.Either[time.Duration](delay.Kind == sim.Fixed, 2, 6)*delay.Mean)
	f.service = slices.IndexFunc(s.Services, func(v sim.Service) bool { return v.Name == fleet.Calls })
	service := &s.Services[f.service]
	if len(service.Calls) == 0 { // else an attempt takes longer than the service's own time
		f.times = scenario.SampleOf(service.Time)
		for _, q := range l.Unknown { // each is about times that were not seen, for which the world has a bar at the end
			f.times.Assumed += choice.Either(q.Path == f.of("time"), 1, 0)
		}
	}
	if from, to := s.Disturbance(); from < s.Horizon {
		f.from, f.to = from, cmp.Or(to, s.Horizon)
	}
	_, high, _ := l.Interval(f.of("errors"))
	f.errors = max(service.Errors, high)
	if mean := f.times.Mean(); service.Workers > 0 && mean > 0 && l.Asks(f.of("workers")) == "" {
		workers := float64(service.Workers)
		if low, _, ok := l.Interval(f.of("workers")); ok {
			workers = min(workers, low)
		}
		f.capacity = workers * float64(max(service.Hosts, 1)) / mean.Seconds()
	} else if seen := l.Fact("capacity, at least"); seen != nil {
		answers, _ := scenario.Number(seen.Low)
		f.least = int(math.Ceil(answers * mean.Seconds()))
	}
	for i := range s.Fleets {
		if s.Fleets[i].Calls == service.Name {
			f.load += f.busiestOf(&s.Fleets[i].Arrivals)
		}
	}
	f.busiest = f.busiestOf(&fleet.Arrivals)
	if _, high, ok := l.Interval(fmt.Sprintf("fleets.%d.arrivals.rate", f.fleet)); ok && fleet.Arrivals.Rate > 0 {
		f.busiest *= max(high/fleet.Arrivals.Rate, 1)
		f.load *= max(high/fleet.Arrivals.Rate, 1)
	}
	f.seenP99 = f.usualP99()
	return f, nil
}

// lasted is how long the incident lasted, 0 if there was none.
func (f *facts) lasted() time.Duration { return f.to - f.from }

func (f *facts) processes() int { return max(f.scenario.Fleets[f.fleet].Processes, 1) }

// asks returns the question about a field of the fleet, "" if there is none.
func (f *facts) asks(field string) string {
	return f.learned.Asks(fmt.Sprintf("fleets.%d.%s", f.fleet, field))
}

// of returns the path of a field of the service.
func (f *facts) of(field string) string { return fmt.Sprintf("services.%d.%s", f.service, field) }

// busiestOf is the rate of the busiest moment outside of the incident, 0 of arrivals that have no rate.
func (f *facts) busiestOf(a *sim.Arrivals) float64 {
	if a.Kind != sim.Poisson && a.Kind != sim.Constant {
		return 0
	}
	most := 0.0
	for i, p := range a.Ramp {
		within := f.to > 0 && p.At >= f.from && p.At <= f.to
		before := p.At == f.from && (i == 0 || a.Ramp[i-1].At < f.from) // the first of two at the same time
		after := p.At == f.to && (i+1 == len(a.Ramp) || a.Ramp[i+1].At > f.to)
		if !within || before || after {
			most = max(most, p.Factor)
		}
	}
	return a.Rate * cmp.Or(most, 1)
}

// usualP99 is the 95th percentile of the p99s of the steps outside of the incident: some have a few attempts only.
func (f *facts) usualP99() time.Duration {
	o := &f.learned.Observed
	all := []float64{0} // if there are none
	for i, v := range o.P99 {
		at := time.Duration(i) * o.Step
		if v > 0 && !math.IsInf(v, 0) && (f.to == 0 || at+o.Step <= f.from || at >= f.to+f.lasted()) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return time.Duration(all[len(all)*95/100] * float64(time.Second))
}

// draws is how many draws of the uncertain values are flown beside the world.
const draws = 4

// around returns the worlds of the comparison: first its own ones, around the values of the file, then some with draws
// of what is not known exactly, in which each fault is flown once more. The notes are sentences about them.
func (f *facts) around() (all []battery.World, own int, notes []string, err error) {
	all, notes = f.neighbours()
	own = len(all)
	if paths := choice.Each(f.learned.Unknown, func(q scenario.Question) string { return q.Path }); len(paths) > 0 {
		slices.Sort(paths)
		notes = append(notes, fmt.Sprintf("The world has open questions: %s. It is flown as it assumes; lull learn --ask asks them.", strings.Join(slices.Compact(paths), ", ")))
	}
	drawn, err := f.learned.Draws(f.scenario, draws, firstSeeds[0])
	for i, d := range drawn {
		d.Scenario.Fleets = slices.Clone(d.Scenario.Fleets)
		fleet := &d.Scenario.Fleets[f.fleet]
		if f.asks("processes") != "" { // from few to so many that each calls once in ten seconds
			fleet.Processes = max(int(math.Pow(10*f.busiest, float64(i+1)/draws)), 1)
		}
		if f.lasted() > 0 && !f.learned.Observed.OfCalls() { // circuit breakers may have refused as many as called before it
			fleet.Arrivals.Ramp = slices.Clone(fleet.Arrivals.Ramp)
			usual := 0.0
			for k := range fleet.Arrivals.Ramp {
				if p := &fleet.Arrivals.Ramp[k]; k == 0 || p.At < f.from {
					usual = p.Factor
				} else {
					p.Factor = max(p.Factor, usual)
				}
			}
		}
		if battery.Digest(d.Scenario) == battery.Digest(f.scenario) {
			continue
		}
		of, err := factsOf(d.Scenario, f.learned)
		if err != nil {
			return nil, 0, nil, err
		}
		worlds, _ := of.neighbours()
		for k, w := range worlds {
			if w.Name = fmt.Sprintf("%s, draw %d", w.Name, i+1); k == 0 || k%draws == i {
				all = append(all, w)
			}
		}
	}
	return all, own, notes, err
}

// neighbours returns the world, its peace, and its peace with other faults.
func (f *facts) neighbours() ([]battery.World, []string) {
	return battery.Incident{Scenario: f.scenario, Fleet: f.fleet, Service: f.service, From: f.from, To: f.to,
		Capacity: f.capacity, LeastWorkers: f.least}.Around()
}
