package sim

import (
	"cmp"
	"slices"
	"time"
)

// A Cost is about how much a run will take.
type Cost struct {
	Events int64
	Memory int64 // bytes
	Time   time.Duration
}

// Cost estimates what one run will take, from above: it assumes that of the calls
// that begin during a fault all attempts are made, and that each of them fails in
// a process of its own.
func (s Scenario) Cost(c Contender) Cost {
	const (
		perProcess = 16
		perState   = 160 // of a process that has something to remember: its budget,
		perBreaker = 160 // its breaker,
		perWindow  = 300 // and what it has earned lately
		perFlight  = 144
		perMessage = 160
		perPoint   = 200 // of the series
		perLoad    = 24  // of those of a service
		perGate    = 1 << 10
		perPool    = 240
		perConn    = 80
		perLine    = 60 // beside a flight with a connection
		perEvent   = 200 * time.Nanosecond
		setUp      = 20 * time.Nanosecond // of a process
		base       = 4 << 20
	)
	attempts := float64(c.Policy.WithDefaults().Attempts)
	from, to := s.Disturbance()
	if to == 0 {
		to = s.Horizon // from is, too, if nothing happens
	}
	share := float64(to-from) / float64(max(s.Horizon, 1))
	events, memory, processes := 0.0, float64(base), 0.0
	perAttempt := s.perAttempt()
	for i := range s.Fleets {
		f := &s.Fleets[i]
		n := float64(max(f.Processes, 1))
		calls, rate := f.Arrivals.calls(n, s.Horizon)
		// What is under way: what arrives while one of them lasts, and what fails and
		// waits for another attempt.
		lasts := s.lasts(f, c)
		inFlight := min(rate*lasts.Seconds()*(1+share*attempts)+calls*share, calls)
		perState := float64(perState)
		if !c.Policy.Breaker.Off {
			perState += perBreaker
		}
		remembering := min(n, calls*max(share, 0.01))
		if gap := c.Policy.Budget.QuietGap(); c.Options != nil || gap > 0 && rate/n > 1/gap.Seconds() || c.Policy.Limit.InFlight > 0 {
			remembering = min(n, calls)
			if c.Options == nil && !c.Policy.Budget.Unlimited {
				perState += perWindow
			}
		}
		if c.Policy.Budget.Unlimited && c.Policy.Breaker.Off && c.Options == nil && c.Policy.Limit.InFlight == 0 {
			remembering = 0
		}
		if p := &f.Network.Pool; p.On {
			hosts := 1
			if d := s.service(f.Calls); d != nil {
				hosts = max(d.Hosts, 1)
			}
			memory += n*float64(hosts)*perPool + inFlight*perLine + min(inFlight, n*float64(cmp.Or(p.Size, 1<<20)))*perConn
			events += calls * 3 * (1 - share + share*attempts)
		}
		events += calls * (1 + perAttempt[f.Calls]*(1-share+share*attempts))
		memory += n*perProcess + inFlight*perFlight + remembering*perState
		processes += n
	}
	for i := range s.Topics {
		t := &s.Topics[i]
		n := float64(t.Consumers.processes())
		sent, rate := t.Arrivals.calls(n, s.Horizon)
		events += sent * (3 + perAttempt[t.Calls]*(1-share+share*attempts))
		memory += (sent*share+rate)*perMessage + n*(perProcess+perState+perBreaker)
		processes += n
	}
	for i := range s.Services {
		if s.Services[i].Admission.On {
			memory += perGate * float64(max(s.Services[i].Hosts, 1))
		}
		for k := range s.Services[i].Calls {
			memory += 8 * float64(s.Services[i].Calls[k].Cache.Keys)
		}
	}
	points := float64(s.Horizon)/float64(max(s.step(), 1)) + float64(s.Horizon)/float64(max(s.window(), 1))
	memory += points * (perPoint + perLoad*float64(len(s.Services)))
	cost := Cost{Events: int64(min(events, 1e18)), Memory: int64(min(memory, 1e18))}
	cost.Time = duration(events*float64(perEvent) + processes*float64(setUp))
	return cost
}

// lasts estimates how long a call is under way at worst: until it times out, if the
// service may keep it waiting.
func (s *Scenario) lasts(f *Fleet, c Contender) time.Duration {
	if d := s.service(f.Calls); d != nil {
		waits := d.Workers > 0 || d.Congestion > 0 || len(d.Calls) > 0 || d.Admission.On || f.Network.Loss > 0 || f.Network.LossBack > 0 || f.Network.Pool.On
		for k := range d.Faults {
			waits = waits || d.Faults[k].Kind != Errors
		}
		if !waits {
			return min(d.Time.mean()+2*f.Network.Latency.mean(), s.Horizon)
		}
	}
	patience := min(cmp.Or(f.AttemptTimeout, c.Policy.WithDefaults().AttemptTimeout), s.Horizon)
	if patience < 0 {
		return s.Horizon
	}
	return patience
}

// perAttempt estimates, for each service, the events of one attempt and of the
// calls that are made for it.
func (s *Scenario) perAttempt() map[string]float64 {
	events := map[string]float64{}
	var of func(name string) float64
	of = func(name string) float64 {
		if n, ok := events[name]; ok {
			return n
		}
		events[name] = 1 // for those that call one another in a circle
		if d := s.service(name); d != nil {
			n := 1.0
			if d.Workers > 0 {
				n = 2
			}
			if d.Admission.On {
				n += 2
			}
			for h := range d.Calls {
				n += of(d.Calls[h].Service)
			}
			events[name] = n
		}
		return events[name]
	}
	for i := range s.Services {
		of(s.Services[i].Name)
	}
	return events
}

// calls estimates how many calls n processes make until the horizon, and how many
// of them begin in the busiest second.
func (a *Arrivals) calls(n float64, horizon time.Duration) (calls, rate float64) {
	left := float64(max(horizon-a.At, 0))
	each := n * float64(max(a.Each, 1))
	switch a.Kind {
	case Poisson, Constant:
		most, mass := 1.0, left
		if r := a.Ramp; len(r) > 0 {
			most, mass = r[0].Factor, float64(r[0].Factor)*float64(min(r[0].At, horizon))
			for i := range r {
				end := horizon
				next := r[i].Factor
				if i+1 < len(r) {
					end, next = r[i+1].At, r[i+1].Factor
				}
				most = max(most, r[i].Factor)
				mass += (r[i].Factor + next) / 2 * float64(max(min(end, horizon)-min(r[i].At, horizon), 0))
			}
		}
		return a.Rate * mass / float64(time.Second), a.Rate * most
	case AtOnce:
		return each, each / max(a.Within.Seconds(), 1)
	case Periodic:
		within := cmp.Or(a.Within, a.Every)
		return n * (1 + left/float64(a.Every)), n / max(within.Seconds(), 1)
	}
	return each * (1 + left/float64(max(a.Think.mean(), 1))), each
}

// WithProcesses is s with the processes of its fleets and topics scaled so that they are n
// in all (at least one in each). Rates stay as they are, so that the same load is spread
// over more or fewer; what arrives per process (AtOnce, Periodic, Closed) grows with them.
func (s Scenario) WithProcesses(n int) Scenario {
	s.Fleets, s.Topics = slices.Clone(s.Fleets), slices.Clone(s.Topics)
	var all []*int
	for i := range s.Fleets {
		all = append(all, &s.Fleets[i].Processes)
	}
	for i := range s.Topics {
		all = append(all, &s.Topics[i].Consumers.Processes)
	}
	total := 0
	for _, p := range all {
		total += max(*p, 1)
	}
	left := n
	for i, p := range all {
		others := len(all) - 1 - i // to come: one at least for each
		share := int(float64(n) * float64(max(*p, 1)) / float64(total))
		if others == 0 {
			share = left
		}
		*p = max(min(share, left-others), 1)
		left -= *p
	}
	for i := range s.Topics {
		c := &s.Topics[i].Consumers
		c.Kills = slices.Clone(c.Kills)
		for k := range c.Kills {
			c.Kills[k].Processes = min(c.Kills[k].Processes, c.Processes)
		}
	}
	return s
}
