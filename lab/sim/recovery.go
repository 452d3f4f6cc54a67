package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

const (
	recoveredShare = 0.95 // of the normal share of successes
	recoveredFor   = 5    // windows: a group
	// byChance is how many standard deviations a group may be below that: in a thousand groups
	// one is, once in thirty runs.
	byChance = 4
	// fewCalls after the disturbance are too few for a verdict, and within fewCalls it is not
	// known more exactly when things were normal again.
	fewCalls = 20
)

// Disturbance returns when the first fault begins and when the last one ends. A time in which more arrives than a service can do
// counts as a fault. Without a fault from is the horizon. to is 0 without a fault, and if the last one lasts to the end.
func (s *Scenario) Disturbance() (from, to time.Duration) {
	from = s.Horizon
	during := func(a, b time.Duration) { from, to = min(from, a), max(to, b) }
	for i := range s.Services {
		for j := range s.Services[i].Faults {
			s.Services[i].Faults[j].occurrences(s.Horizon, during)
		}
	}
	for i := range s.Services {
		s.overload(&s.Services[i], during)
	}
	for i := range s.Topics {
		c := &s.Topics[i].Consumers
		for k := range c.Kills {
			c.Kills[k].each(c, s.Horizon, func(_ int, at time.Duration) { during(at, at+c.Kills[k].For) })
		}
	}
	if to >= s.Horizon || to == 0 {
		return min(from, s.Horizon), 0
	}
	return from, to
}

// overload calls during for each time in which the ramps of its fleets bring a service more than
// it can do. A load that is too much all along is no disturbance.
func (s *Scenario) overload(service *Service, during func(from, to time.Duration)) {
	capacity := s.capacity(service, 0)
	var fleets []*Arrivals
	var times []time.Duration
	for i := range s.Fleets {
		f := &s.Fleets[i]
		if a := &f.Arrivals; f.Calls == service.Name && (a.Kind == Poisson || a.Kind == Constant) {
			fleets = append(fleets, a)
			for _, p := range a.Ramp {
				times = append(times, min(p.At, s.Horizon))
			}
		}
	}
	if times == nil || math.IsInf(capacity, 1) {
		return
	}
	times = append(times, 0, s.Horizon)
	slices.Sort(times)
	for i, b := range times[1:] {
		a := times[i]
		if a == b {
			continue
		}
		var first, last float64 // the rate just after a, and just before b
		for _, f := range fleets {
			first += f.Rate * f.factor(a, true)
			last += f.Rate * f.factor(b, false)
		}
		crossing := a + time.Duration(float64(b-a)*(capacity-first)/(last-first))
		switch {
		case first > capacity && last > capacity:
			during(a, b)
		case first > capacity:
			during(a, crossing)
		case last > capacity:
			during(crossing, b)
		}
	}
}

// factor is that of the ramp just after the given time, or just before it.
func (a *Arrivals) factor(at time.Duration, after bool) float64 {
	if len(a.Ramp) == 0 {
		return 1
	}
	factor := a.Ramp[0].Factor
	for i, p := range a.Ramp {
		switch {
		case p.At < at || after && p.At == at:
			factor = p.Factor
		case i > 0:
			q := a.Ramp[i-1]
			return q.Factor + (p.Factor-q.Factor)*float64(at-q.At)/float64(p.At-q.At)
		default:
			return factor
		}
	}
	return factor
}

// capacity is how many calls a second a service can do, with those that it makes itself;
// infinite if nothing bounds it.
func (s *Scenario) capacity(v *Service, depth int) float64 {
	most := math.Inf(1)
	if mean := v.Time.mean(); v.Workers > 0 && mean > 0 {
		most = float64(max(v.Hosts, 1)*v.Workers) / mean.Seconds()
	}
	if v.Rate.PerSecond > 0 {
		most = min(most, v.Rate.PerSecond)
	}
	for _, h := range v.Calls {
		if d := s.service(h.Service); d != nil && depth < len(s.Services) {
			most = min(most, s.capacity(d, depth+1))
		}
	}
	return most
}

// A standard is what is normal, as far as is known from before the disturbance.
type standard struct {
	normal float64 // share of calls that succeed; 1 if there were none
	spread float64 // standard deviation of the successes of a group is its square root × that of its calls
}

func (r *recorder) standard() standard {
	s := standard{normal: 1}
	first := int((r.warmupEnd + r.window - 1) / r.window)
	last := min(int(r.disturbedFrom/r.window), len(r.bins))
	var all bin
	for i := first; i < last; i++ {
		all.add(r.bins[i])
	}
	if all.calls == 0 {
		return s
	}
	s.normal = float64(all.succeeded) / float64(all.calls)
	// By the rule of succession: that no call has failed so far does not mean that none ever does.
	p := float64(all.succeeded+1) / float64(all.calls+2)
	variance := float64(p * (1 - p))
	// Failures that come together, as where a queue is long for a moment, vary more than
	// independent ones: by as much as they did before the disturbance.
	var more float64
	groups := 0
	for i := first; i+recoveredFor <= last; i += recoveredFor {
		g := r.group(i)
		if g.calls > 0 {
			d := float64(g.succeeded) - float64(s.normal*float64(g.calls))
			more += float64(d*d) / (float64(g.calls) * variance)
			groups++
		}
	}
	if groups > 1 {
		variance *= max(1, more/float64(groups-1))
	}
	s.spread = math.Sqrt(variance)
	return s
}

func (b *bin) add(c bin) {
	b.calls, b.ended, b.succeeded = b.calls+c.calls, b.ended+c.ended, b.succeeded+c.succeeded
}

func (r *recorder) group(i int) (g bin) {
	for k := i; k < i+recoveredFor; k++ {
		g.add(r.bins[k])
	}
	return g
}

// bad reports whether fewer calls of a group succeed than normally, and more of them fail than
// chance explains. Those that have not ended may still succeed.
func (s standard) bad(g bin) bool {
	calls, good := float64(g.calls), float64(g.succeeded+g.calls-g.ended)
	return good+float64(byChance*s.spread*math.Sqrt(calls)) < float64(recoveredShare*s.normal*calls)
}

func (s standard) good(g bin) bool {
	return g.calls > 0 && float64(g.succeeded) >= float64(recoveredShare*s.normal*float64(g.calls))
}

// A course is how things went on after a disturbance.
type course struct {
	first    int  // the window from which on they were normal for the first time
	settled  int  // that from which on they have been normal ever since
	relapses int  // how often they were not, in between
	ok       bool // they are normal as far as is known
}

// course looks at the windows that ended by now.
func (r *recorder) course(s standard, now time.Duration) course {
	start := int((r.disturbedTo + r.window - 1) / r.window)
	c := course{first: -1, settled: start}
	bad := true
	for i := start; i+recoveredFor <= len(r.bins) && time.Duration(i+recoveredFor)*r.window <= now; i++ {
		g := r.group(i)
		switch {
		case s.bad(g):
			if c.first >= 0 && !bad {
				c.relapses++
			}
			bad, c.settled, c.ok = true, i+1, false
		case bad && s.good(g):
			if r.failed(c.settled, i) {
				c.settled = i
			}
			if c.first < 0 {
				c.first = c.settled
			}
			bad, c.ok = false, true
		}
	}
	return c
}

// failed reports whether any call of the windows from a to b did not succeed.
func (r *recorder) failed(a, b int) bool {
	for i := a; i < b; i++ {
		if r.bins[i].succeeded < r.bins[i].calls {
			return true
		}
	}
	return false
}

// since is when a window begins, but not before the end of the disturbance.
func (r *recorder) since(window int) time.Duration {
	return max(time.Duration(window)*r.window, r.disturbedTo)
}

func (r *recorder) recovery(end time.Duration) Recovery {
	if r.disturbedTo == 0 || end <= r.disturbedTo {
		return Recovery{}
	}
	s := r.standard()
	v := Recovery{From: r.disturbedTo, Normal: s.normal}
	// The last tenth; calls that have not ended count as they stand, but the last
	// windows of a run are left out until most of their calls have ended.
	last := min(int(end/r.window), len(r.bins)) - 1
	back := int((r.disturbedTo + r.window - 1) / r.window)
	var after bin
	lastCall := back
	for i := back; i <= last; i++ {
		after.add(r.bins[i])
		if r.bins[i].calls > 0 {
			lastCall = i
		}
	}
	if after.calls < fewCalls {
		return Recovery{From: r.disturbedTo, Few: true, Normal: s.normal, Final: s.normal}
	}
	v.Measured = true
	v.Within = recoveredFor * r.window
	if rate := float64(after.calls) / float64(lastCall+1-back); rate*recoveredFor < fewCalls {
		v.Within = time.Duration(math.Ceil(fewCalls/rate)) * r.window
	}
	for last > back && r.bins[last].ended < r.bins[last].calls {
		last--
	}
	n := max(int((end-r.disturbedTo)/r.window)/10, 1)
	c := r.course(s, end)
	first := max(last-n+1, min(back, last), 0)
	if c.ok { // a run that was stopped early has not much to look at
		first = max(first, min(c.settled, last))
	}
	var final bin
	for i := first; i <= last; i++ {
		final.add(r.bins[i])
	}
	v.Final = v.Normal // if nobody called any more
	if final.calls > 0 {
		v.Final = float64(final.succeeded) / float64(final.calls)
	}
	v.Relapses = c.relapses
	if c.first >= 0 {
		v.First = r.since(c.first) - r.disturbedTo
	}
	if c.ok {
		v.Recovered, v.Time = true, r.since(c.settled)-r.disturbedTo
	}
	return v
}

// A Made call was made outside of the simulator. Its times are since the beginning of the run.
type Made struct {
	Began, Ended time.Duration // one that ended after the horizon counts as not ended
	Succeeded    bool
}

// Judge returns the Recovery that a run of the scenario has if these are its calls, in any order. So
// calls to a real service and simulated ones are judged by the same rule.
func (s *Scenario) Judge(calls []Made) (Recovery, error) {
	if err := s.Validate(); err != nil {
		return Recovery{}, err
	}
	var l problem.List
	r := newRecorder(s)
	for _, c := range calls {
		l.Check(c.Began >= 0, "Made.Began", c.Began, "0 or more")
		l.Check(c.Ended >= c.Began, "Made.Ended", c.Ended, fmt.Sprintf("%v, when it began, or later", c.Began))
		if err := l.Err(); err != nil {
			return Recovery{}, err
		}
		if c.Began >= s.Horizon {
			continue
		}
		b := &r.bins[r.inBin.at(c.Began)]
		b.calls++
		if c.Ended <= s.Horizon {
			b.ended++
			if c.Succeeded {
				b.succeeded++
			}
		}
	}
	return r.recovery(s.Horizon), nil
}

// Back reports whether a map takes it for coming back: Recovered, and at least 95 % of the calls
// succeeded before the first fault.
func (r Recovery) Back() bool { return r.Recovered && r.Normal >= recoveredShare }
