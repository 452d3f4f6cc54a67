package sim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/outlier"
)

const (
	maxProcesses = 1 << 27
	maxPoints    = 1 << 20   // of a time series
	maxChanges   = 1 << 16   // of one host
	maxTurns     = 1 << 24   // of all the hosts of a service
	maxParts     = 1000      // services, fleets, calls and faults of a service
	maxAtOnce    = 1<<31 - 1 // callers of a fleet
	maxNames     = 20        // that a message lists

	century = 100 * 365 * 24 * time.Hour
)

const mostConcurrency = 1 << 20 // messages in hand, of a topic

// Validate reports everything that is wrong with s at once, each problem naming
// its field; nil if nothing is.
func (s Scenario) Validate() error {
	var l problem.List
	l.Check(s.Horizon > 0 && s.Horizon <= century, "Horizon", s.Horizon, "a positive duration of up to a century")
	l.Check(s.Step >= 0, "Step", s.Step, "a positive duration, or 0 for a 120th of the horizon")
	l.Check(s.Window >= 0, "Window", s.Window, "a positive duration, or 0 for the step or a second, whichever is less")
	l.Check(s.Warmup >= 0 && (s.Warmup < s.Horizon || s.Horizon <= 0), "Warmup", s.Warmup, "zero or a duration below the horizon")
	l.Check(s.Step <= 0 || s.Horizon/s.Step <= maxPoints, "Step", s.Step, "no more than 1048576 steps in the horizon")
	l.Check(s.Window <= 0 || s.Horizon/s.Window <= maxPoints, "Window", s.Window, "no more than 1048576 windows in the horizon")
	parts := fmt.Sprintf("1 to %d", maxParts)
	l.Check(len(s.Services) > 0 && len(s.Services) <= maxParts, "Services", len(s.Services), parts)
	l.Check((len(s.Fleets) > 0 || len(s.Topics) > 0) && len(s.Fleets) <= maxParts, "Fleets", len(s.Fleets), parts+", or topics")
	l.Check(len(s.Topics) <= maxParts, "Topics", len(s.Topics), fmt.Sprintf("0 to %d", maxParts))
	if len(s.Services) > maxParts || len(s.Fleets) > maxParts || len(s.Topics) > maxParts {
		return l.Err()
	}
	names := services{index: map[string]int{}}
	for i := range s.Services {
		field := fmt.Sprintf("Services[%d]", i)
		n := s.Services[i].Name
		l.Check(n != "", field+".Name", quoted(n), "a name")
		if _, twice := names.index[n]; twice && n != "" {
			l.Add(field+".Name", quoted(n), "a name that no other service has")
		}
		names.index[n] = i
	}
	names.list()
	for i := range s.Services {
		l.In(fmt.Sprintf("Services[%d]", i), s.Services[i].validate(s, &names))
	}
	s.loops(&l, names.index)
	for i := range s.Fleets {
		l.In(fmt.Sprintf("Fleets[%d]", i), s.Fleets[i].validate(&s, &names))
	}
	for i := range s.Topics {
		l.In(fmt.Sprintf("Topics[%d]", i), s.Topics[i].validate(&s, &names))
	}
	return l.Err()
}

func (s *Service) validate(in Scenario, names *services) error {
	var l problem.List
	l.Check(s.Hosts >= 0 && s.Hosts <= 1<<20, "Hosts", s.Hosts, "zero (one host) to 1048576")
	l.Check(s.Workers >= 0 && s.Workers <= 1<<30, "Workers", s.Workers, "zero (as many as it takes) to 2^30")
	l.Check(s.Queue.Limit >= 0 && s.Queue.Limit <= 1<<30, "Queue.Limit", s.Queue.Limit, "zero (none waits) to 2^30")
	l.Check(s.Workers > 0 || s.Queue.Limit == 0, "Queue.Limit", s.Queue.Limit, "zero for a service without a number of workers")
	l.Check(int(s.Queue.Order) < len(orders), "Queue.Order", s.Queue.Order, "fifo or lifo")
	span(&l, "Queue.RetryAfter", s.Queue.RetryAfter)
	l.In("Heap", s.Heap.validate(s))
	l.In("Connections", s.Connections.validate())
	l.In("Admission.Config", s.Admission.Config.Validate())
	l.In("Time", s.Time.validate())
	l.Check(s.Congestion >= 0 && s.Congestion <= time.Hour, "Congestion", s.Congestion, "0 to 1h")
	share(&l, "Errors", s.Errors)
	span(&l, "ErrorTime", s.ErrorTime)
	l.Check(s.ErrorCost >= 0 && s.ErrorCost <= 1 && (s.ErrorCost == 0 || s.Workers > 0), "ErrorCost", s.ErrorCost, "a share from 0 to 1, and 0 for a service without a number of workers")
	l.Check(s.RefusalTime >= 0 && s.RefusalTime <= time.Hour && (s.RefusalTime == 0 || s.Workers > 0), "RefusalTime", s.RefusalTime, "0 to 1h, and 0 for a service without a number of workers")
	l.Check(s.Rate.PerSecond >= 0 && s.Rate.PerSecond <= 1e9, "Rate.PerSecond", s.Rate.PerSecond, "zero (no limit) to 1e9")
	l.Check(s.Rate.Burst >= 0, "Rate.Burst", s.Rate.Burst, "zero (a second's worth) or a positive number")
	span(&l, "Rate.RetryAfter", s.Rate.RetryAfter)
	l.Check(!s.Contention || s.Workers == 0 && len(s.Calls) == 0, "Contention", s.Contention, "a service without Workers and Calls")
	parts := fmt.Sprintf("no more than %d", maxParts)
	l.Check(len(s.Calls) <= maxParts, "Calls", len(s.Calls), parts)
	l.Check(len(s.Faults) <= maxParts, "Faults", len(s.Faults), parts)
	if len(s.Calls) > maxParts || len(s.Faults) > maxParts {
		return l.Err()
	}
	for i := range s.Calls {
		field := fmt.Sprintf("Calls[%d]", i)
		names.check(&l, field+".Service", s.Calls[i].Service)
		span(&l, field+".AttemptTimeout", s.Calls[i].AttemptTimeout)
		l.In(field+".Network", s.Calls[i].Network.validate())
		l.In(field+".Cache", s.Calls[i].Cache.validate())
	}
	for i := range s.Faults {
		l.In(fmt.Sprintf("Faults[%d]", i), s.Faults[i].validate(s, in.Horizon))
	}
	if n := s.changes(in.Horizon); n > maxChanges {
		l.Add("Faults", n, fmt.Sprintf("no more than %d faults in the horizon", maxChanges))
	} else if hosts := max(s.Hosts, 1); n > maxTurns/hosts {
		l.Add("Faults", n, fmt.Sprintf("no more than %d faults in the horizon, times the number of hosts", maxTurns))
	}
	return l.Err()
}

func (c *Connections) validate() error {
	var l problem.List
	l.Check(c.Limit >= 0 && c.Limit <= 1<<30, "Limit", c.Limit, "zero (no limit) to 2^30")
	l.Check(!c.Refuse || c.Limit > 0, "Refuse", c.Refuse, "false for a service without a Limit")
	l.In("Handshake", c.Handshake.validate())
	l.Check(c.Backlog >= 0 && c.Backlog <= 1<<30, "Backlog", c.Backlog, "zero (4096) to 2^30")
	span(&l, "IdleFor", c.IdleFor)
	return l.Err()
}

func (h *Heap) validate(s *Service) error {
	var l problem.List
	const most = 1 << 50
	l.Check(h.Size >= 0 && h.Size <= most, "Size", h.Size, "zero (off) to 2^50")
	l.Check(h.Size == 0 || !s.Contention, "Size", h.Size, "zero for a service with Contention")
	l.Check(h.Live >= 0 && h.Live <= h.Size, "Live", h.Live, "0 to Size")
	l.Check(h.PerAttempt >= 0 && h.PerAttempt <= h.Size, "PerAttempt", h.PerAttempt, "0 to Size")
	l.Check(h.PerConnection >= 0 && h.PerConnection <= h.Size, "PerConnection", h.PerConnection, "0 to Size")
	l.Check(h.Garbage >= 0 && h.Garbage <= h.Size, "Garbage", h.Garbage, "0 to Size")
	l.Check(h.Pause >= 0 && h.Pause <= time.Minute, "Pause", h.Pause, "0 to 1m")
	span(&l, "Restart", h.Restart)
	return l.Err()
}

func (c *Cache) validate() error {
	var l problem.List
	l.Check(c.Keys >= 0 && c.Keys <= 1<<26, "Keys", c.Keys, "zero (no cache) to 67108864")
	l.Check(c.Skew >= 0 && c.Skew <= 10, "Skew", c.Skew, "0 to 10")
	l.Check(c.Size >= 0 && c.Size <= c.Keys, "Size", c.Size, "zero (all) to Keys")
	span(&l, "For", c.For)
	l.Check(!c.Cold || c.Keys > 0, "Cold", c.Cold, "false without Keys")
	return l.Err()
}

func (f *Fault) validate(s *Service, horizon time.Duration) error {
	var l problem.List
	l.Check(int(f.Kind) < len(faultKinds), "Kind", f.Kind, "stall, errors, brown-out, slow-down, crash or flush")
	l.Check(f.At >= 0 && (f.At <= horizon || horizon <= 0), "At", f.At, "a time within the horizon")
	l.Check(f.For > 0, "For", f.For, "a positive duration")
	l.Check(f.Every == 0 || f.Every >= f.For, "Every", f.Every, "zero (once) or no less than For")
	share(&l, "Share", f.Share)
	l.Check(f.Hosts >= 0 && f.Hosts <= max(s.Hosts, 1), "Hosts", f.Hosts, "zero (all) to the number of hosts")
	span(&l, "RetryAfter", f.RetryAfter)
	span(&l, "After", f.After)
	span(&l, "Warmup", f.Warmup)
	l.Check(!f.Silent || f.Kind == Crash, "Silent", f.Silent, "false but for a crash")
	l.Check(f.Cold == 0 || f.Cold >= 1 && f.Cold <= 1e6, "Cold", f.Cold, "zero (10) or 1 to 1e6")
	return l.Err()
}

// changes is how many faults there are in the horizon.
func (s *Service) changes(horizon time.Duration) (n int) {
	for i := range s.Faults {
		n++
		if f := &s.Faults[i]; f.Every > 0 {
			n += int(min(max(horizon-f.At, 0)/f.Every, maxChanges))
		}
	}
	return n
}

// loops finds services that call one another in a circle.
func (s *Scenario) loops(l *problem.List, names map[string]int) {
	state := make([]int, len(s.Services)) // 1: on the way, 2: done
	var visit func(i int) bool
	visit = func(i int) bool {
		state[i] = 1
		for _, hop := range s.Services[i].Calls {
			k, ok := names[hop.Service]
			if !ok || state[k] == 2 {
				continue
			}
			if state[k] == 1 || visit(k) {
				return true
			}
		}
		state[i] = 2
		return false
	}
	for i := range s.Services {
		if state[i] == 0 && visit(i) {
			l.Add(fmt.Sprintf("Services[%d].Calls", i), quoted(s.Services[i].Name), "services that do not call one another in a circle")
			return
		}
	}
}

func (f *Fleet) validate(in *Scenario, names *services) error {
	var l problem.List
	names.check(&l, "Calls", f.Calls)
	l.Check(f.Processes >= 0 && f.Processes <= maxProcesses, "Processes", f.Processes, "zero (1) to 134217728")
	if !f.Link.On || !f.Arrivals.none() {
		l.In("Arrivals", f.Arrivals.validate())
	}
	l.In("Link", f.Link.validate(f, in, names))
	if n := max(f.Processes, 1); n <= maxProcesses {
		l.Check(f.Arrivals.Each <= maxAtOnce/n, "Arrivals.Each", f.Arrivals.Each, "no more than 2147483647 callers of all processes together")
	}
	span(&l, "AttemptTimeout", f.AttemptTimeout)
	span(&l, "Deadline", f.Deadline)
	l.Check(!f.Keyed || f.NotIdempotent, "Keyed", f.Keyed, "a key only where NotIdempotent is set")
	share(&l, "Reload.Share", f.Reload.Share)
	l.In("Reload.After", f.Reload.After.validate())
	l.Check(!f.Redial || f.Arrivals.Kind != Closed, "Redial", f.Redial, "false with closed arrivals: a connection is lost at a time of its own")
	l.Check(!f.Redial || f.Arrivals.Each <= 1, "Redial", f.Redial, "false with Arrivals.Each: a process has one connection")
	l.Check(f.Reload.Times >= 0 && f.Reload.Times <= 255, "Reload.Times", f.Reload.Times, "0 to 255")
	l.Check(f.Fallback >= 0 && f.Fallback <= 1, "Fallback", f.Fallback, "a share from 0 to 1")
	l.Check(f.Threads >= 0 && f.Threads <= 1<<20, "Threads", f.Threads, "zero (no bound) to 1048576")
	l.Check(f.Threads == 0 || f.Arrivals.Kind != Closed && f.Reload.Times == 0 && !f.Redial && !f.Link.On, "Threads", f.Threads,
		"zero with closed arrivals, Reload, Redial or Link")
	l.Check(f.Backlog >= 0 && f.Backlog <= 1<<30 && (f.Backlog == 0 || f.Threads > 0), "Backlog", f.Backlog, "zero (none) to 1073741824, with Threads")
	l.In("Network", f.Network.validate())
	return l.Err()
}

func (n *Network) validate() error {
	var l problem.List
	l.In("Latency", n.Latency.validate())
	share(&l, "Loss", n.Loss)
	share(&l, "LossBack", n.LossBack)
	l.In("Pool", n.Pool.validate())
	l.Check(n.Endpoints.On || n.Endpoints.Config == outlier.Config{}, "Endpoints.On", n.Endpoints.On, "true where there is a Config")
	l.In("Endpoints.Config", n.Endpoints.Config.Validate())
	return l.Err()
}

func (p *Pool) validate() error {
	var l problem.List
	l.Check(p.On || reflect.ValueOf(*p).IsZero(), "On", p.On, "true for a pool with other settings")
	l.Check(int(p.Kind) < len(poolKinds), "Kind", p.Kind, "http or sql")
	l.Check(p.Size >= 0 && p.Size <= 1<<20, "Size", p.Size, "zero (no limit) to 1048576")
	l.Check(p.Open >= 0 && p.Open <= 1<<20 && (p.Size == 0 || p.Open <= p.Size), "Open", p.Open, "zero (none) to Size")
	l.Check(p.Idle >= -1 && p.Idle <= 1<<20, "Idle", p.Idle, "-1 (none), zero (all) or up to 1048576")
	span(&l, "IdleFor", p.IdleFor)
	l.Check(p.RoundTrips >= 0 && p.RoundTrips <= 100, "RoundTrips", p.RoundTrips, "zero (1) to 100")
	l.In("Handshake", p.Handshake.validate())
	span(&l, "DialTimeout", p.DialTimeout)
	l.Check(p.Ports >= 0 && p.Ports <= 1<<16, "Ports", p.Ports, "zero (no limit) to 65536")
	span(&l, "TimeWait", p.TimeWait)
	return l.Err()
}

func (a *Arrivals) validate() error {
	var l problem.List
	l.Check(int(a.Kind) < len(arrivalKinds), "Kind", a.Kind, "poisson, constant, at-once, periodic or closed")
	open := a.Kind == Poisson || a.Kind == Constant
	l.Check(!open || a.Rate > 0 && a.Rate <= 1e10, "Rate", a.Rate, "a positive number of calls per second, up to 1e10")
	l.Check(open || a.Rate == 0, "Rate", a.Rate, "none with arrivals of kind "+a.Kind.String())
	span(&l, "At", a.At)
	span(&l, "Within", a.Within)
	l.Check(a.Each >= 0 && a.Each <= 1<<20, "Each", a.Each, "zero (1) to 1048576")
	l.Check(a.Every >= 0 && (a.Kind == Periodic) == (a.Every > 0), "Every", a.Every, "a positive duration for periodic arrivals, else none")
	l.Check(a.Kind != Periodic || a.Within <= a.Every, "Within", a.Within, "no more than Every")
	l.In("Think", a.Think.validate())
	l.Check((a.Kind == Closed) == (a.Think.mean() > 0), "Think", a.Think.mean(), "a pause for closed arrivals, else none")
	l.Check(open || len(a.Ramp) == 0, "Ramp", len(a.Ramp), "a ramp for poisson and constant arrivals only")
	l.Check(len(a.Ramp) <= maxParts, "Ramp", len(a.Ramp), "no more than 1000 points")
	for i, p := range a.Ramp {
		field := fmt.Sprintf("Ramp[%d]", i)
		l.Check(p.At >= 0 && (i == 0 || p.At >= a.Ramp[i-1].At), field+".At", p.At, "times that do not go backwards")
		l.Check(p.Factor >= 0 && p.Factor <= 1e6, field+".Factor", p.Factor, "0 to 1e6")
	}
	return l.Err()
}

func (l *Link) validate(f *Fleet, in *Scenario, names *services) error {
	var p problem.List
	p.Check(l.On || *l == Link{}, "On", l.On, "true for a link with other settings")
	p.Check(!l.On || f.Arrivals.Kind != Closed && f.Arrivals.Each <= 1, "On", l.On, "false with closed arrivals and with Arrivals.Each: a process has one connection")
	p.Check(!l.On || !f.NotIdempotent, "On", l.On, "false where NotIdempotent is set: to dial is safe to repeat")
	p.Check(!l.On || !f.Network.Pool.On && !f.Network.Endpoints.On, "On", l.On, "false with a Pool or Endpoints")
	p.Check(l.From != f.Calls || l.From == "", "From", quoted(l.From), "another service than the one that is called")
	var heap Heap
	if l.From != "" {
		names.check(&p, "From", l.From)
		if i, ok := names.index[l.From]; ok {
			heap = in.Services[i].Heap
		}
	}
	const most = 1 << 40
	p.Check(l.PerSecond >= 0 && l.PerSecond <= most && (l.PerSecond == 0 || heap.Size > 0), "PerSecond", l.PerSecond, "0 to 2^40, and 0 without a service in From that has a Heap")
	p.Check(l.Buffer >= 0 && l.Buffer <= most && (l.Buffer == 0 || l.PerSecond > 0), "Buffer", l.Buffer, "0 (no limit) to 2^40, and 0 without PerSecond")
	for _, name := range []string{f.Calls, l.From} {
		if i, ok := names.index[name]; ok {
			for k := range in.Services[i].Faults {
				p.Check(!l.On || !in.Services[i].Faults[k].Silent, "On", l.On, "false where a service crashes silently")
			}
		}
	}
	return p.Err()
}

func (t *Topic) validate(in *Scenario, names *services) error {
	var l problem.List
	l.Check(t.Name != "", "Name", quoted(t.Name), "a name")
	names.check(&l, "Calls", t.Calls)
	l.In("Arrivals", t.Arrivals.validate())
	l.Check(t.Arrivals.Kind <= Constant, "Arrivals.Kind", t.Arrivals.Kind, "poisson or constant")
	share(&l, "Poison.Share", t.Poison.Share)
	span(&l, "Poison.Down", t.Poison.Down)
	span(&l, "Broker.MaxDelay", t.Broker.MaxDelay)
	c := &t.Consumers
	l.Check(c.Processes >= 0 && c.Processes <= 1<<16, "Consumers.Processes", c.Processes, "zero (1) to 65536")
	l.Check(c.Concurrency >= 0 && c.Concurrency <= mostConcurrency/max(c.processes(), 1), "Consumers.Concurrency", c.Concurrency, "zero (16) to 1048576 for all processes together")
	l.Check(c.Lease == 0 || c.Lease >= 100*time.Millisecond && c.Lease <= 12*time.Hour, "Consumers.Lease", c.Lease, "100ms to 12h, or 0 for 30s")
	l.Check(c.Quick >= 0 && c.Quick <= 10, "Consumers.Quick", c.Quick, "0 to 10 runs")
	span(&l, "Consumers.QuickWait", c.QuickWait)
	l.In("Consumers.Network", c.Network.validate())
	l.Check(len(c.Kills) <= maxParts, "Consumers.Kills", len(c.Kills), fmt.Sprintf("no more than %d", maxParts))
	if len(c.Kills) > maxParts {
		return l.Err()
	}
	n := 0
	for i := range c.Kills {
		k := &c.Kills[i]
		field := fmt.Sprintf("Consumers.Kills[%d]", i)
		l.Check(k.At >= 0 && (k.At <= in.Horizon || in.Horizon <= 0), field+".At", k.At, "a time within the horizon")
		l.Check(k.For > 0 && k.For <= century, field+".For", k.For, "a positive duration")
		l.Check(k.Every == 0 || k.Every >= time.Millisecond && k.Every <= century, field+".Every", k.Every, "zero (once) or 1ms to a century")
		l.Check(k.Processes >= 0 && k.Processes <= c.processes(), field+".Processes", k.Processes, "zero (all) to the number of processes")
		l.Check(k.Apart >= 0 && k.Apart <= 24*time.Hour, field+".Apart", k.Apart, "0 to 24h")
		n += c.processes()
		if k.Every > 0 {
			n += int(min(max(in.Horizon-k.At, 0)/k.Every, maxChanges)) * c.processes()
		}
	}
	l.Check(n <= maxTurns, "Consumers.Kills", n, fmt.Sprintf("no more than %d ends of processes in the horizon", maxTurns))
	return l.Err()
}

func (d *Distribution) validate() error {
	var l problem.List
	l.Check(int(d.Kind) < len(distributionKinds), "Kind", d.Kind, "fixed, exponential, lognormal, normal, uniform, bimodal or histogram")
	span(&l, "Mean", d.Mean)
	span(&l, "Deviation", d.Deviation)
	l.Check(d.Sigma >= 0 && d.Sigma <= 10, "Sigma", d.Sigma, "0 to 10")
	l.Check(d.Kind != LogNormal || d.Mean > 0, "Mean", d.Mean, "a positive duration")
	span(&l, "Min", d.Min)
	l.Check(d.Max >= d.Min && d.Max <= century, "Max", d.Max, "no less than Min, and up to a century")
	share(&l, "Slow", d.Slow)
	span(&l, "SlowMean", d.SlowMean)
	l.Check(d.Kind != Histogram || len(d.Bars) > 0, "Bars", len(d.Bars), "at least one")
	l.Check(len(d.Bars) <= maxPoints, "Bars", len(d.Bars), "no more than 1048576")
	var sum float64
	var from time.Duration
	for i, b := range d.Bars {
		field := fmt.Sprintf("Bars[%d]", i)
		l.Check((b.UpTo > from || i == 0 && b.UpTo >= 0) && b.UpTo <= century, field+".UpTo", b.UpTo, "more than that of the bar before, and up to a century")
		l.Check(b.Weight >= 0 && b.Weight <= 1e18, field+".Weight", b.Weight, "0 to 1e18")
		from, sum = b.UpTo, sum+b.Weight
	}
	l.Check(len(d.Bars) == 0 || sum > 0, "Bars", sum, "weights whose sum is positive")
	return l.Err()
}

type services struct {
	index   map[string]int
	allowed string // what stands in messages
}

// list makes the message once, since it may be wanted many times.
func (s *services) list() {
	s.allowed = "the name of a service"
	if len(s.index) > maxNames {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(s.index)) {
		if n != "" {
			s.allowed += ", " + n
		}
	}
}

func (s *services) check(l *problem.List, field, name string) {
	_, ok := s.index[name]
	l.Check(ok && name != "", field, quoted(name), s.allowed)
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

func share(l *problem.List, field string, v float64) {
	l.Check(v >= 0 && v <= 1, field, v, "a share from 0 to 1")
}

func span(l *problem.List, field string, d time.Duration) {
	l.Check(d >= 0 && d <= century, field, d, "zero or a positive duration of up to a century")
}
