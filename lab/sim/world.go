package sim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/engine/consumers"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
	"github.com/lullgo/lull/lab/sim/internal/wheel"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// A world is one run under way: a driver of the engine in virtual time. engine.Call makes every decision about
// retries. The world keeps the time, delivers requests and counts.
type world struct {
	scenario     *Scenario
	now          time.Duration
	events       *wheel.Queue
	streams      []*stream
	nextStream   *stream // the one whose arrival comes first; nil if none does
	topics       []*topic
	onMessageEnd func(MessageEnd) // Options.Message
	watch        *attemptWatch    // of Options.Attempt; nil: nobody watches
	origins      []*origin
	services     []*service
	flights      slab[flight]
	jobs         slab[job]
	visitors     slab[visitor]

	consumers  []*consumer
	deliveries slab[delivery]
	messages   slab[message]

	// Connections, of the origins that have a pool.
	pools        []*pool
	conns        slab[conn]
	tickets      slab[uint32] // of the lines of pools: a job that waits, plus one; or 0
	legs         []leg        // by job
	connOfFlight []uint32     // by flight: its connection, plus one
	dialKey      uint64

	// The choice among hosts, by flight, and the randomness of it.
	hostChoices        map[uint32]hostChoice
	hostsTried         map[uint32]*outlier.Tried // by the flight of the call
	pickKey, pickAsked uint64
	verdicts           []lull.Verdict

	waitingForRoom  map[uint32]*bulkhead.Waiter // calls in line for room under a concurrency limit
	races           map[uint32]*race            // calls in flight whose attempts may run beside one another
	timesCarriedOut map[uint64]int              // how often an operation was carried out
	rec             *recorder
	handled         int64                     // events so far
	prefetched      [2 * batch]unsafe.Pointer // of lookAhead
	openBreakers    int                       // processes whose breaker is not closed
	// remembers: some processes have memories of their own.
	remembers bool

	// The randomness that is handed to the engine: a hash of key and of how often
	// it was asked.
	key, asked uint64
	random     func() uint64

	// The randomness of admission control, made in the same way.
	gateKey, gateAsked uint64
	retryAfter         []int // the verdict of a refusal with a Retry-After of 1 s, 2 s, ...
}

// Verdicts that every world knows, by their index.
const (
	verdictOK = iota
	verdictTimeout
	verdictRefused // connection refused
	verdictReset   // connection reset
	verdictError   // 503 without a hint
	verdictStop    // 503, and "don't retry"
	verdictConflict
	verdictNoPort      // no local port is free
	verdictDialTimeout // no connection in time
)

func newWorld(s *Scenario, c Contender, o Options) (*world, error) {
	w := &world{scenario: s, waitingForRoom: map[uint32]*bulkhead.Waiter{}, races: map[uint32]*race{}, timesCarriedOut: map[uint64]int{}, hostChoices: map[uint32]hostChoice{}, hostsTried: map[uint32]*outlier.Tried{}}
	w.random = w.engineRandom
	w.dialKey = draw.Mix(o.Seed, 1<<40)
	w.rec = newRecorder(s)
	w.events = wheel.New(1 << 10)
	named := map[string]Contender{"": c}
	for _, n := range append([]Contender{None()}, o.Named...) {
		named[n.Name] = n
	}
	named[c.Name] = c
	w.onMessageEnd = o.Message
	if o.Attempt != nil || o.Served != nil {
		w.watch = newAttemptWatch(o)
	}
	b := &builder{w: w, named: named, seed: o.Seed, services: map[string]*service{}}
	b.verdicts = []lull.Verdict{
		verdictOK:       {Kind: lull.KindSuccess},
		verdictTimeout:  lull.Classify(context.DeadlineExceeded),
		verdictRefused:  lull.Classify(syscall.ECONNREFUSED),
		verdictReset:    lull.Classify(syscall.ECONNRESET),
		verdictError:    lullhttp.ClassifyStatus(503),
		verdictStop:     {Kind: lull.KindOverloaded, Code: "503"},
		verdictConflict: {Kind: lull.KindTransient, Code: "conflict"},

		verdictNoPort:      lull.Classify(&net.OpError{Op: "dial", Err: syscall.EADDRNOTAVAIL}),
		verdictDialTimeout: lull.Classify(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}),
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	w.at(s.step(), eventStepEnd, 0, 0)
	return w, nil
}

func (w *world) engineRandom() uint64 {
	w.asked++
	return draw.Mix(w.key, w.asked)
}

// seedFor sets the randomness of the engine's next decision. It depends on the call, its attempt and whether that has begun. It
// does not depend on the order of events.
func (w *world) seedFor(f *flight, before bool) {
	w.key, w.asked = f.key, uint64(f.call.Attempts())<<8
	if before {
		w.asked |= 1 << 7
	}
}

// A builder makes a world from its description.
type builder struct {
	w        *world
	named    map[string]Contender
	seed     uint64
	services map[string]*service
	verdicts []lull.Verdict
	indices  map[lull.Verdict]int // of those that belong to services
	problems problem.List
}

func (b *builder) build() error {
	w := b.w
	b.indices = map[lull.Verdict]int{}
	for i := range w.scenario.Services {
		s := b.service(uint32(i), &w.scenario.Services[i])
		w.services = append(w.services, s)
		b.services[s.def.Name] = s
	}
	for i := range w.scenario.Fleets {
		b.fleet(i, &w.scenario.Fleets[i])
	}
	for i := range w.scenario.Topics {
		b.topic(i, &w.scenario.Topics[i])
	}
	for i, s := range w.services {
		for h := range s.def.Calls {
			hop := &s.def.Calls[h]
			field := fmt.Sprintf("Services[%d].Calls[%d].Policy", i, h)
			o := b.origin(field, s.def.Name, hop.Service, hop.Policy, len(s.hosts), hop.AttemptTimeout, hop.Network)
			o.hop = hop
			s.calls = append(s.calls, o)
			s.caches = append(s.caches, newCache(&hop.Cache))
		}
	}
	if n := len(b.verdicts); n > math.MaxUint16 {
		b.problems.Add("Services", n, "no more than 65535 kinds of failure (hints that differ)")
	}
	if n := len(w.origins); n > math.MaxUint16 {
		b.problems.Add("Fleets", n, "no more than 65535 fleets and calls between services")
	}
	if err := b.problems.Err(); err != nil {
		return err
	}
	w.verdicts = b.verdicts
	for _, o := range w.origins { // now that all verdicts are known
		o.verdicts = b.verdicts
		if o.reads != nil {
			o.verdicts = b.readVerdicts(o.reads)
		}
		w.openPools(o)
	}
	for _, s := range w.streams {
		s.findFirst()
	}
	w.pickStream()
	return nil
}

func (b *builder) service(i uint32, def *Service) *service {
	s := &service{def: def, index: i, work: newSampler(def.Time), handshakeTime: newSampler(def.Connections.Handshake)}
	s.hosts = make([]host, max(def.Hosts, 1))
	lines := timelines{def: def, horizon: b.w.scenario.Horizon, known: map[int]timeline{}}
	for h := range s.hosts {
		s.hosts[h].timeline = lines.of(h)
		for _, x := range s.hosts[h].stretches[1:] {
			if def.Workers > 0 || x.down || x.flushed {
				b.w.at(x.from, eventFault, uint32(h), i)
			}
		}
	}
	s.random = len(s.hosts) > 1 || def.Errors > 0 || def.Time.Kind != Fixed
	s.plain = def.Workers == 0 && def.Congestion == 0 && len(def.Calls) == 0 && !def.Contention && !def.Admission.On && def.Heap.Size == 0
	if def.Admission.On {
		b.gates(s)
	}
	for f := range def.Faults {
		fault := &def.Faults[f]
		s.random = s.random || fault.share() < 1
		s.plain = s.plain && fault.Kind != Crash // what is in hand gets lost
		v := verdictError
		if fault.RetryAfter > 0 || fault.DontRetry {
			v = b.verdict(503, fault.RetryAfter, fault.DontRetry)
		}
		s.faultVerdicts = append(s.faultVerdicts, v)
	}
	s.queueFull = verdictError
	if def.Queue.RetryAfter > 0 || def.Queue.DontRetry {
		s.queueFull = b.verdict(503, def.Queue.RetryAfter, def.Queue.DontRetry)
	}
	if def.Rate.PerSecond > 0 {
		s.rateLimited = b.verdict(429, def.Rate.RetryAfter, false)
		s.rateInterval = max(duration(float64(time.Second)/def.Rate.PerSecond), 1)
		burst := float64(def.Rate.Burst)
		if burst == 0 {
			burst = max(def.Rate.PerSecond, 1)
		}
		s.rateBurst = max(duration(float64(s.rateInterval)*burst), s.rateInterval)
	}
	return s
}

func (b *builder) gates(s *service) {
	for h := range s.hosts {
		s.hosts[h].gate = b.w.newGate(s)
	}
	for len(b.w.retryAfter) < mostRetryAfter {
		b.w.retryAfter = append(b.w.retryAfter, b.verdict(503, time.Duration(len(b.w.retryAfter)+1)*time.Second, false))
	}
}

// verdict is the index of what clients make of a refusal with a hint: a 503 that
// names a wait asks for fewer requests, as a 429 does (lullhttp reads it so).
func (b *builder) verdict(status int, after time.Duration, dontRetry bool) int {
	v := lullhttp.ClassifyStatus(status)
	v.After = after
	switch {
	case dontRetry:
		v.Kind = lull.KindOverloaded
	case after > 0:
		v.Kind = lull.KindRateLimited
	}
	i, ok := b.indices[v]
	if !ok {
		i = len(b.verdicts)
		b.indices[v] = i
		b.verdicts = append(b.verdicts, v)
	}
	return i
}

func (b *builder) fleet(i int, f *Fleet) {
	w := b.w
	processes := max(f.Processes, 1)
	from := b.services[f.Link.From]
	if from != nil {
		processes = len(from.hosts)
	}
	o := b.origin(fmt.Sprintf("Fleets[%d].Policy", i), f.Name, f.Calls, f.Policy, processes, f.AttemptTimeout, f.Network)
	if from != nil && o.processes > 0 {
		o.processes = max(f.Processes, 1)
	}
	o.fleet, o.callerDeadline, o.tally = f, f.Deadline, w.rec.tallyOf(f)
	o.spec.NotIdempotent = f.NotIdempotent && !f.Keyed
	o.countsEffects = f.NotIdempotent
	o.hedges = o.hedges && !f.NotIdempotent // nor with a key, as in lullhttp
	o.redials = newRedials(f)
	o.reusesFlights = f.Arrivals.Kind == Closed || f.Reload.Times > 0 || f.Redial || f.Link.On
	if f.Threads > 0 {
		o.threads = make([]threads, o.processes)
	}
	if f.Link.On {
		o.hedges = false // a process dials once at a time
		o.links = w.newLinks(o, from, b.seed)
	}
	o.reload, o.think = newSampler(f.Reload.After), newSampler(f.Arrivals.Think)
	s := &stream{origin: o, arrivals: &f.Arrivals, key: draw.Mix(b.seed, uint64(i)+1), ramp: f.Arrivals.Ramp}
	w.streams = append(w.streams, s)
	if f.Arrivals.Kind != Closed || o.processes == 0 {
		return
	}
	for n := range o.processes * max(f.Arrivals.Each, 1) {
		k, fl := w.flights.take()
		fl.origin, fl.process, fl.key = o.index, uint32(n%o.processes), draw.Mix(s.key, uint64(n))
		fl.operation = fl.key
		src := draw.From(^fl.key)
		w.at(f.Arrivals.At+o.think.draw(&src), eventCallAgain, fl.gen, k)
	}
}

func (b *builder) topic(i int, def *Topic) {
	w, c := b.w, &def.Consumers
	o, d := b.dependency(fmt.Sprintf("Topics[%d].Policy", i), def.Name, def.Calls, def.Policy, c.processes(), 0, c.Network)
	t := &topic{def: def, index: uint32(i), o: o, due: never, next: schedule{messages: &w.messages}}
	w.topics = append(w.topics, t)
	if d == nil {
		return
	}
	if d.Hedges() {
		b.problems.Add(fmt.Sprintf("Topics[%d].Policy", i), b.named[def.Policy].Name, "a policy that does not hedge, which messages cannot")
		return
	}
	o.hedges, o.countsEffects = true, true // followStep has them run
	t.plan, t.holds = d.Plan(), b.named[def.Policy].Holds
	t.fresh = func() *engine.State {
		if len(o.states) < c.processes() {
			return &o.states[0]
		}
		return &d.Fleet(1)[0]
	}
	lease := cmp.Or(c.Lease, 30*time.Second)
	var keep time.Duration
	if t.holds {
		keep = 1 // it is in time with its dead letter
	}
	t.lease = consumers.NewLease(lease, lease, keep, t.extends())
	t.broker = engine.BrokerCapabilities{MaxDelay: cmp.Or(def.Broker.MaxDelay, 12*time.Hour), FreeDefer: !def.Broker.CountDefers, Losses: !def.Broker.CountDefers}
	t.quick = engine.QuickRetries{MaxRuns: c.Quick, MaxWait: cmp.Or(c.QuickWait, time.Second)}
	t.tally.Name = def.Name
	t.tally.disturbedFrom, t.tally.disturbedTo = w.scenario.Disturbance()
	t.arrivals = stream{origin: o, arrivals: &def.Arrivals, key: draw.Mix(b.seed, 1<<32+uint64(i)), ramp: def.Arrivals.Ramp}
	t.arrivals.findFirst()
	w.scheduleProduce(t)
	first := len(w.consumers)
	for p := range c.processes() {
		x := &consumer{topic: t, index: uint32(len(w.consumers)), state: o.dependency(uint32(p)), crowd: t.crowd(), down: true}
		w.consumers = append(w.consumers, x)
		t.consumers = append(t.consumers, x)
		if c.Wary {
			w.learnOutage(x)
		} else {
			w.at(0, eventStartConsumer, 0, x.index)
		}
	}
	for k := range c.Kills {
		c.Kills[k].each(c, w.scenario.Horizon, func(p int, at time.Duration) {
			w.at(at, eventKill, 0, uint32(first+p))
			w.at(saturating.Add(at, c.Kills[k].For), eventStartConsumer, 0, uint32(first+p))
		})
	}
}

// origin makes the dependencies of those who call.
func (b *builder) origin(field, name, target, policy string, processes int, attempt time.Duration, n Network) *origin {
	o, d := b.dependency(field, name, target, policy, processes, attempt, n)
	o.hedges = d != nil && d.Hedges()
	return o
}

// dependency makes the origin of calls that are not hedged. The dependency is nil if there was a problem.
func (b *builder) dependency(field, name, target, policy string, processes int, attempt time.Duration, n Network) (*origin, *lull.Dependency) {
	o := &origin{target: b.services[target], index: uint16(len(b.w.origins)), network: n, forward: newSampler(n.Latency)}
	o.instant = o.forward.never && n.Loss == 0 && n.LossBack == 0
	o.chooses = n.Endpoints.On && o.target != nil && len(o.target.hosts) > 1
	o.pooled, o.handshakeTime = n.Pool.On, newSampler(n.Pool.Handshake)
	o.knowsProcess = o.pooled || o.chooses || b.w.watch != nil
	b.w.origins = append(b.w.origins, o)
	c, ok := b.named[policy]
	if !ok {
		b.problems.Add(field, policy, "the name of a policy that is given, or none")
		return o, nil
	}
	o.reads = c.Verdict
	p := c.Policy
	if attempt > 0 {
		p.AttemptTimeout = attempt
		if p.Deadline > 0 {
			p.AttemptTimeout = min(attempt, p.Deadline)
		}
	}
	opts := append(c.Options[:len(c.Options):len(c.Options)], lull.WithObserver(b.w))
	if name == "" {
		name = target
	}
	o.name = name
	d, err := lull.NewDependency(name, p, opts...)
	if err != nil {
		b.problems.Add(field, c.Name, err.Error())
		return o, nil
	}
	o.processes = processes
	if d.Plan().Stateless() {
		processes = 1 // one is as good as many
	}
	o.states = d.Fleet(processes)
	b.w.remembers = b.w.remembers || processes > 1
	return o, d
}

// readVerdicts returns the verdicts about the failures of a client that reads answers in its own way.
func (b *builder) readVerdicts(reads func(lull.Verdict) lull.Verdict) []lull.Verdict {
	verdicts := slices.Clone(b.verdicts)
	for i, v := range verdicts {
		if v.Kind != lull.KindSuccess {
			verdicts[i] = reads(v)
		}
	}
	return verdicts
}
