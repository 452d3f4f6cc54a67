package sim

import (
	"context"
	"slices"
	"time"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
)

// A Stability is a map of metastability: for each outage, up to which load a contender comes back.
type Stability struct {
	// Loads are in calls per second of all fleets together, and Outages in rising order.
	Loads   []float64
	Outages []time.Duration
	// Back is, for each outage, at how many of the Loads it comes back by itself. Helped is at how
	// many it does if all callers stay away for the Relief. At the others it never does.
	Back, Helped []int
	// Theory is at how many of the Loads a contender without retries comes back according to
	// queueing theory; nil if the scenario is not as simple as that.
	Theory []int
	Watch  time.Duration // for how long it may take to come back
	Runs   int
}

// StabilityOptions of [FindStability].
type StabilityOptions struct {
	// Loads are multiples of the scenario's own, in rising order. None: 0.1 to 1.2 in steps of a tenth, or if
	// the capacity is known 5 % to 100 % of it in steps of 5 %.
	Loads []float64
	// Outages in rising order. None: from a fiftieth to five times the scenario's own.
	Outages []time.Duration
	// Watch is for how long it may take to come back. Zero: as long as the scenario goes on after
	// its outage, at most five minutes.
	Watch time.Duration
	// Relief is for how long all callers stay away when it does not come back: from half a minute after the outage
	// on, or from half of Watch if that is less. Zero: 2 min.
	Relief time.Duration
	Seed   uint64
	Named  []Contender // as in Options
}

// Capacity is how many calls a second can be worked on, if the fleets call one service that makes no
// calls itself and has a number of workers. Otherwise it is 0.
func (s *Scenario) Capacity() float64 {
	if len(s.Fleets) == 0 {
		return 0
	}
	for i := range s.Fleets {
		if s.Fleets[i].Calls != s.Fleets[0].Calls {
			return 0
		}
	}
	d := s.service(s.Fleets[0].Calls)
	if d == nil || len(d.Calls) > 0 || d.Workers == 0 || d.Time.mean() == 0 {
		return 0
	}
	return float64(d.Workers*max(d.Hosts, 1)) / d.Time.mean().Seconds()
}

// FindStability finds the map of one contender. It looks for the boundaries of each outage by
// bisection, and begins with those of the outage before: it assumes that no load is easier than a
// lower one. All fleets must have arrivals with a rate, and the scenario an outage: faults, or a
// ramp of the load.
func FindStability(ctx context.Context, s Scenario, c Contender, o StabilityOptions) (Stability, error) {
	if err := s.Validate(); err != nil {
		return Stability{}, err
	}
	f, err := newFinder(s, c, &o)
	if err != nil {
		return Stability{}, err
	}
	m := Stability{Outages: o.Outages, Theory: f.theory(), Watch: o.Watch}
	for _, l := range o.Loads {
		m.Loads = append(m.Loads, l*f.rate)
	}
	back, helped := len(o.Loads), len(o.Loads)
	for _, d := range o.Outages {
		back = f.boundary(ctx, back, 0, func(load float64) bool { return f.comesBack(ctx, load, d, false) })
		helped = f.boundary(ctx, helped, back, func(load float64) bool { return f.comesBack(ctx, load, d, true) })
		if f.err == nil {
			f.err = context.Cause(ctx)
		}
		if f.err != nil {
			return m, f.err
		}
		m.Back, m.Helped = append(m.Back, back), append(m.Helped, helped)
	}
	m.Runs = f.runs
	return m, nil
}

type finder struct {
	s      Scenario
	c      Contender
	o      *StabilityOptions
	rate   float64       // of the scenario
	outage time.Duration // of the scenario
	relief time.Duration
	runs   int
	err    error
}

func newFinder(s Scenario, c Contender, o *StabilityOptions) (*finder, error) {
	var l problem.List
	f := &finder{s: s, c: c, o: o, relief: o.Relief}
	if f.relief == 0 {
		f.relief = 2 * time.Minute
	}
	for i := range s.Fleets {
		a := &s.Fleets[i].Arrivals
		l.Check(a.Kind == Poisson || a.Kind == Constant, "Fleets", a.Kind, "arrivals with a rate (poisson or constant), for a map")
		f.rate += a.Rate
	}
	l.Check(len(s.Fleets) > 0, "Fleets", len(s.Fleets), "at least one, for a map")
	from, to := s.Disturbance()
	l.Check(to > 0, "Services.Faults", "none that ends", "an outage that ends before the horizon, for a map")
	if err := l.Err(); err != nil {
		return nil, err
	}
	f.outage = to - from
	for i := range s.Services {
		for k := range s.Services[i].Faults {
			l.Check(s.Services[i].Faults[k].Every == 0, "Services.Faults.Every", s.Services[i].Faults[k].Every, "0 for a map: one outage")
		}
	}
	if o.Watch == 0 {
		o.Watch = min(s.Horizon-to, 5*time.Minute)
	}
	if len(o.Loads) == 0 {
		if n := s.Capacity(); n > 0 {
			for i := 1; i <= 20; i++ {
				o.Loads = append(o.Loads, float64(i)/20*n/f.rate)
			}
		} else {
			for i := 1; i <= 12; i++ {
				o.Loads = append(o.Loads, float64(i)/10)
			}
		}
	}
	if len(o.Outages) == 0 {
		for _, factor := range []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5} {
			o.Outages = append(o.Outages, max(duration(float64(f.outage)*factor), 1))
		}
	}
	l.Check(slices.IsSorted(o.Loads) && o.Loads[0] > 0, "Loads", o.Loads, "positive numbers in rising order")
	l.Check(slices.IsSorted(o.Outages) && o.Outages[0] > 0, "Outages", o.Outages, "positive durations in rising order")
	l.Check(o.Watch > 0, "Watch", o.Watch, "a positive duration")
	return f, l.Err()
}

// boundary returns how many of the loads, which are least at least, pass. hint is the answer for an
// outage that is a little shorter.
func (f *finder) boundary(ctx context.Context, hint, least int, passes func(float64) bool) int {
	low, high := least, len(f.o.Loads) // the answer is one of these or between
	hint = max(hint, least)
	ok := func(i int) bool { return ctx.Err() == nil && passes(f.o.Loads[i]) }
	switch {
	case hint > low && !ok(hint-1):
		high = hint - 1
	case hint < high && ok(hint):
		low = hint + 1
	default:
		return hint
	}
	for low < high {
		mid := low + (high-low)/2
		if ok(mid) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (f *finder) comesBack(ctx context.Context, load float64, outage time.Duration, helped bool) bool {
	if f.err != nil {
		return false
	}
	f.runs++
	s := f.s.scaled(load, float64(outage)/float64(f.outage))
	_, to := s.Disturbance()
	if helped {
		to = s.stayAway(saturating.Add(to, min(30*time.Second, f.o.Watch/2)), f.relief)
	}
	s.Horizon = saturating.Add(to, f.o.Watch)
	r, err := Run(ctx, s, f.c, Options{Seed: f.o.Seed, Named: f.o.Named, StopAfterRecovery: 10 * time.Second})
	if err != nil {
		f.err = err
		return false
	}
	return r.Recovery.Back()
}

// at is s with its load times a factor, and its outage as many times as long: from the beginning of the first fault to the
// end of the last, with what is between them.
func (s Scenario) scaled(load, stretch float64) Scenario {
	from, _ := s.Disturbance()
	long := func(d time.Duration) time.Duration { return max(duration(float64(d)*stretch), 1) }
	s.Services, s.Fleets = slices.Clone(s.Services), slices.Clone(s.Fleets)
	faults := false
	for i := range s.Services {
		s.Services[i].Faults = slices.Clone(s.Services[i].Faults)
		for k := range s.Services[i].Faults {
			faults = true
			f := &s.Services[i].Faults[k]
			f.At, f.For = from+duration(float64(f.At-from)*stretch), long(f.For)
		}
	}
	for i := range s.Fleets {
		a := &s.Fleets[i].Arrivals
		a.Rate *= load
		a.Ramp = slices.Clone(a.Ramp)
		for k := range a.Ramp {
			if !faults {
				a.Ramp[k].At = a.Ramp[0].At + duration(float64(a.Ramp[k].At-a.Ramp[0].At)*stretch)
			}
		}
	}
	s.Horizon = century // what comes of it is seen to by the caller
	return s
}

// stayAway keeps all callers away for some time. It returns the time at which they are back.
func (s *Scenario) stayAway(from, relief time.Duration) time.Duration {
	to := saturating.Add(from, relief)
	for i := range s.Fleets {
		a := &s.Fleets[i].Arrivals
		factor := 1.0
		if n := len(a.Ramp); n > 0 {
			factor = a.Ramp[n-1].Factor
		}
		a.Ramp = append(a.Ramp, RampPoint{from, factor}, RampPoint{from, 0}, RampPoint{to, 0}, RampPoint{to, factor})
	}
	return to
}

// theory returns at how many loads it comes back without retries. In an outage of length D, of λ
// calls a second, min(λD, limit) wait at its end. A service that does μ a second, and lets each wait
// for up to T in vain, must get μT of them or fewer for calls to succeed: it takes (λD - μT) / (μ - λ).
func (f *finder) theory() []int {
	mu := f.s.Capacity()
	timeout := f.s.Fleets[0].AttemptTimeout
	simple := mu > 0 && timeout > 0 && len(f.s.Services) == 1
	if simple {
		d := &f.s.Services[0]
		simple = len(d.Faults) == 1 && d.Faults[0].Kind == Stall && d.Faults[0].Hosts == 0 && d.Heap.Size == 0 && !d.Admission.On &&
			d.Queue.Order == FIFO && !d.Queue.DropExpired && !d.CancelWork
	}
	for i := range f.s.Fleets {
		simple = simple && len(f.s.Fleets[i].Arrivals.Ramp) == 0 && f.s.Fleets[i].AttemptTimeout == timeout && !f.s.Fleets[i].Network.Pool.On
	}
	if !simple {
		return nil
	}
	d := &f.s.Services[0]
	limit := float64((d.Queue.Limit + d.Workers) * max(d.Hosts, 1))
	var all []int
	for _, outage := range f.o.Outages {
		n := 0
		for _, l := range f.o.Loads {
			lambda := l * f.rate
			waits := min(lambda*outage.Seconds(), limit) - mu*timeout.Seconds()
			if lambda >= mu || waits > (mu-lambda)*f.o.Watch.Seconds() {
				break
			}
			n++
		}
		all = append(all, n)
	}
	return all
}
