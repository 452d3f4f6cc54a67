package sim

import (
	"cmp"
	"reflect"
	"time"

	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/outlier"
	"github.com/lullgo/lull/server/admission"
)

// A Scenario is a world without its clients' policies: who calls whom, how often,
// what the services can do, and what goes wrong when. It is plain data, the same
// in a file and in code. The policies under comparison are [Contender]s.
type Scenario struct {
	// Name is how the scenario is called on a command line; Title, Teaches and
	// Source are for people.
	Name, Title, Teaches, Source string

	// Horizon is how much virtual time is simulated. Required.
	Horizon time.Duration
	// Step is the width of one point of the time series. Zero: a 120th of the
	// Horizon, rounded up to 1, 2 or 5 × 10^n.
	Step time.Duration
	// Window is the time over which peaks and recovery are measured. Zero: Step or a
	// second, whichever is less.
	Window time.Duration
	// Warmup is left out of totals and latencies; it ends at the latest where the
	// first fault begins. Zero: none.
	Warmup time.Duration

	Services []Service // at least one
	Fleets   []Fleet   // at least one of these
	Topics   []Topic   // or of those
}

// A Fleet is a number of processes that call one service in the same way. Each
// process has a [lull.Dependency] of its own.
type Fleet struct {
	Name string
	// Calls names the service that is called.
	Calls string
	// Processes is how many there are. Zero: 1.
	Processes int
	Arrivals  Arrivals

	// AttemptTimeout replaces that of each contender's policy, so that all are
	// equally patient. Zero: the policy's own.
	AttemptTimeout time.Duration
	// Deadline is the callers' own; the nearer of it and the policy's rules.
	// Zero: none.
	Deadline time.Duration
	// NotIdempotent: the operation may not be carried out twice.
	NotIdempotent bool
	// Keyed: calls carry an idempotency key, so that an operation that is not
	// idempotent may be repeated where the service keeps a record
	// (Service.Deduplicates), and is repeated, with two effects, where it does not.
	Keyed bool
	// Threads is how many calls a process can have in progress, whether an attempt is in flight or a
	// retry is waited for: the threads, or connections, that serve those who call. Others wait until
	// one of these has ended: up to Backlog of them, those that came first before others. A call
	// beyond that ends at once, with the reason Limited. Zero: no bound. Threads exclude Closed
	// arrivals, Reload, Redial and Link.
	Threads, Backlog int
	// Fallback is the share of the calls whose caller has another answer if the call fails and
	// engine.Result.Degrades, such as an older value: lull.DoOr, lullhttp.WithStale. It changes no
	// attempt, and its user does not come back (Reload). Zero: none.
	Fallback float64
	// Reload: users whose call failed come back.
	Reload Reload
	// Redial: each process keeps a connection that must last, and Arrivals are when it is lost. A
	// call is then what it takes to be connected again. engine.Redial decides when to dial; of the
	// policy the timeout of an attempt, the breaker and the limits count. It excludes Reload, and
	// Closed arrivals.
	Redial bool
	// Link is the connection that each process keeps.
	Link    Link
	Network Network
	// Policy is the fleet's own, for a bystander whose policy is not under
	// comparison: the name of a contender, such as "none". Empty: the policy under
	// comparison.
	Policy string
}

// Arrivals is when a fleet's calls begin. Rates are of the whole fleet, in calls
// per second, and each call is made by a process chosen at random (Constant: by
// each in turn).
type Arrivals struct {
	Kind ArrivalKind
	Rate float64 // Poisson, Constant
	// At is when they begin. For AtOnce all calls begin within Within of it.
	At, Within time.Duration
	// Each is how many calls each process makes at once (AtOnce; zero: 1), or how
	// many callers each process has (Closed; zero: 1).
	Each int
	// Every is the time between two calls of one process (Periodic). Within is
	// the part of it in which they fall; zero: all of it.
	Every time.Duration
	// Think is a caller's pause between two calls (Closed).
	Think Distribution
	// Ramp changes the Rate: it is Rate × the factor that runs in a straight line
	// from one point to the next (Poisson, Constant).
	Ramp []RampPoint
}

// RampPoint: from At on (and in a straight line on the way there from the point
// before) the rate is Factor × Arrivals.Rate. Two points at the same time are a
// step.
type RampPoint struct {
	At     time.Duration
	Factor float64
}

// Reload: a user whose call failed makes it anew, with probability Share, after a
// pause, up to Times times.
type Reload struct {
	Share float64
	After Distribution
	Times int
}

// Network lies between a fleet (or a service that calls another) and what it calls.
type Network struct {
	Latency Distribution // one way
	// Loss is the share of requests that never arrive; LossBack that of responses.
	// The caller learns of either by its timeout only.
	Loss, LossBack float64
	// Pool is the connections of each process.
	Pool Pool
	// Endpoints is how each process chooses among the hosts.
	Endpoints Endpoints
}

// A Pool is the connections that each process has to each host of what it calls. An attempt has a
// connection to itself, as with HTTP/1.1 and databases. An attempt that is given up closes its
// connection, and the next one needs a new one.
//
// The zero Pool is off: connections cost nothing, and there are as many as it takes.
type Pool struct {
	On   bool
	Kind PoolKind
	// Size is how many connections are open at most, those being dialled included. Attempts
	// beyond wait for one. Zero: no limit.
	Size int
	// Open is how many are there at the beginning, without work. Zero: none, so that every first
	// attempt needs a new one.
	Open int
	// Idle is how many connections without work are kept. Zero: all of them. Negative: none; with HTTP
	// none is handed on to an attempt that waits, either.
	Idle int
	// IdleFor is how long one without work is kept. Zero: for good. With SQL it may be twice as long,
	// and at least a second.
	IdleFor time.Duration
	// RoundTrips is how many times the network is crossed to and fro before the first request
	// can be sent. Zero: 1, as with TCP. With TLS 1.3 it is 2.
	RoundTrips int
	// Handshake is the client's own part of the work for a new connection.
	Handshake Distribution
	// DialTimeout is how long dialling takes at most. Zero: 30 s.
	DialTimeout time.Duration
	// Ports is how many local ports a process has for its connections to one host. A
	// connection that the process closes keeps its port for TimeWait longer. Without a port an
	// attempt fails at once. Zero: no limit. (Linux has 28232.)
	Ports int
	// TimeWait is zero for 60 s, as on Linux.
	TimeWait time.Duration
}

// Endpoints is how each process chooses the host for an attempt: by a set of package outlier, as
// lullhttp does with its endpoints. The zero Endpoints is off: a host is chosen by chance.
type Endpoints struct {
	On     bool
	Config outlier.Config
}

// A Link is a connection that each process of a fleet keeps to one host of the service that the
// fleet calls. Chance decides which host. All processes are connected at the beginning. A process
// loses its connection when that host crashes, and at each of the fleet's Arrivals, which may be
// left out. A call is what it takes to be connected again. With Fleet.Redial package engine decides
// when to dial, otherwise the policy and Fleet.Reload do.
//
// The zero Link is off: the processes keep no connection.
type Link struct {
	On bool
	// From names the service on whose hosts the processes run, spread evenly. The processes of one
	// host share a Dependency. When the host crashes, they lose their connections and their buffers.
	// They dial when it is up again. Empty: the processes run elsewhere, and do not crash.
	From string
	// PerSecond is how many bytes of messages a second a process has for its connection. While it is
	// not connected, they wait in the memory of its host (Heap). When the memory is full, the host
	// crashes.
	PerSecond int
	// Buffer is how many bytes wait for one connection at most. What comes then is dropped. Zero: no
	// limit.
	Buffer int
}

// A Service does work for its callers.
type Service struct {
	Name string
	// Hosts is how many alike there are, each with Workers and a queue of its own;
	// each attempt goes to one at random. Zero: 1.
	Hosts int
	// Workers is how many attempts a host works on at a time. Zero: no limit, and
	// so no queue.
	Workers int
	Queue   Queue
	// Connections is what it does about those of its callers.
	Connections Connections
	// Heap is the memory of each host.
	Heap Heap
	// Admission stands before all of that, on each host.
	Admission Admission
	// Time is how long the work takes.
	Time Distribution
	// Congestion is how much longer the work of an attempt takes for each attempt
	// in hand when it begins, itself included: what coordination and contention
	// cost. Zero: none.
	Congestion time.Duration
	// CancelWork: work for a caller that has gone is stopped. By default it goes
	// on, and is wasted.
	CancelWork bool
	// Errors is the share of attempts that fail at all times, after ErrorTime, and without any
	// work if there is no ErrorCost.
	Errors    float64
	ErrorTime time.Duration
	// ErrorCost is the work of an attempt that fails (Errors, and faults of kind Errors), as a share
	// of what it would have been: from 0 to 1. When its ErrorTime is over, the attempt takes a worker
	// for that work as others do: it may wait in the queue, or find it full. It makes no Calls. Zero:
	// the failure costs nothing.
	ErrorCost float64
	// RefusalTime is the work of refusing an attempt or a connection. Workers without other work do it,
	// or the attempts whose work begins then take as much longer. Zero: a refusal costs nothing.
	RefusalTime time.Duration
	// Rate refuses what comes faster.
	Rate Rate
	// Deduplicates: the service keeps a record of idempotency keys and carries
	// out each operation once.
	Deduplicates bool
	// Contention makes each attempt a read followed by a write that fails if
	// somebody else has written in between: optimistic concurrency.
	Contention bool
	// Calls are made one after the other, before the service's own work, while a
	// worker is held.
	Calls []Hop
	// Faults are the failures of the service, and its slow times.
	Faults []Fault
}

// Queue is where attempts wait for a worker.
type Queue struct {
	// Limit is how many wait at most, per host; others are refused at once.
	// Zero: none waits.
	Limit int
	Order Order
	// DropExpired: callers send their deadline along, and an attempt whose caller
	// has gone is dropped instead of worked on.
	DropExpired bool
	// RetryAfter is the hint that a refusal carries. Zero: none.
	RetryAfter time.Duration
	// DontRetry: a refusal asks that the request is not repeated (X-Should-Retry: false).
	DontRetry bool
}

// Connections is what each host of a service does about the connections of callers that have a
// [Pool].
type Connections struct {
	// Limit is how many are open at most. More wait in the backlog until one is closed.
	// Zero: no limit.
	Limit int
	// Refuse: those beyond the Limit are refused instead.
	Refuse bool
	// Handshake is the work for each connection. It takes a worker, behind what waits already.
	Handshake Distribution
	// Backlog is how many wait at most for their handshake, and under the Limit. Zero: 4096.
	Backlog int
	// Drop: those beyond the Backlog get no answer, and their callers ask again after 1 s,
	// 2 s, 4 s and so on, as with Linux. Otherwise they are refused.
	Drop bool
	// IdleFor is after how long a connection without work is closed. Zero: never.
	IdleFor time.Duration
}

// A Heap is the memory of each host, and a garbage collector that stops all work while it runs. It
// runs when the heap is full, for a time that grows with what is in use then: the longer the queue,
// the longer and the more frequent are the pauses. The zero Heap is off.
type Heap struct {
	// Size is how many bytes there are. Zero: memory costs nothing.
	Size int
	// Live is how many are in use without any work, PerAttempt how many for each attempt that
	// waits or is worked on, PerConnection for each open connection of a [Pool] or [Link].
	Live, PerAttempt, PerConnection int
	// Garbage is how many bytes each attempt leaves behind beside these.
	Garbage int
	// Pause is how long a collection takes for each million bytes in use.
	Pause time.Duration
	// Restart is for how long a host is down when all of its memory is in use: it crashes, and loses
	// everything that it has in hand. Zero: 10 s.
	Restart time.Duration
}

// Admission is admission control: a Controller of package admission on each host, the
// one that ships, which decides what the host works on. Behind it are the workers and
// their queue, and what fails (Errors, faults); before it the Rate. It knows which
// attempt of its call each one is, with Hop.OneLayer also of the call that it is made for,
// and whether it is a hedge.
//
// Those that it refuses get a 503, with the time to come back in whole seconds as in
// Retry-After, or with the request not to. Callers that have gone leave its queue where the service
// has CancelWork; anywhere, the work that was done for them counts as failed. After a crash
// it has learned nothing yet.
type Admission struct {
	On bool
	// NoDeadlines: callers do not send along when they give up.
	NoDeadlines bool
	Config      admission.Config
}

// Rate is a token bucket before the queue. A refusal is a 429.
type Rate struct {
	PerSecond float64 // zero: no limit
	Burst     int     // zero: a second's worth
	// RetryAfter is the hint that a refusal carries. Zero: none.
	RetryAfter time.Duration
}

// Hop is a call that a service makes while it serves one. Each host is a process
// with a Dependency of its own.
type Hop struct {
	Service string
	// Policy is the name of a contender; empty: the policy under comparison.
	Policy         string
	AttemptTimeout time.Duration // as Fleet.AttemptTimeout
	Cache          Cache         // asked first
	Network        Network
	// Deadline: the deadline of the caller's attempt is carried along.
	Deadline bool
	// OneLayer: the number of the caller's attempt is carried along, so that what is
	// done for a retry is not retried (lull.Policy.Nested), and when the call has failed
	// for good the service's own failure has X-Should-Retry: false.
	OneLayer bool
}

// A Cache stands before a [Hop]: all hosts of the service look there first (look-aside), and call
// only for what is not in it. What a call returns is stored. A call that fails, or whose caller has
// given up on it, stores nothing. The zero Cache is off.
type Cache struct {
	// Keys is how many different things are asked for. Zero: there is no cache.
	Keys int
	// Skew is the exponent of their popularity: the nth is asked for about n^-Skew as often as the
	// first (Zipf). Zero: all of them as often.
	Skew float64
	// Size is how many fit. One more takes the place of the one that came first. Zero: all.
	Size int
	// For is how long each is kept. Zero: for good.
	For time.Duration
	// Cold: it is empty at the beginning. Otherwise it is full.
	Cold bool
}

// A Fault is something that goes wrong with a service for some time.
type Fault struct {
	Kind FaultKind
	// At is when it begins, For how long it lasts.
	At, For time.Duration
	// Every repeats it. Zero: it happens once.
	Every time.Duration
	// Share is of attempts that fail (Errors; zero: all), of workers or of the speed
	// that are left (BrownOut, SlowDown; zero: a tenth), or of what is in the caches and
	// gets lost (Flush; zero: all).
	Share float64
	// Hosts is how many of the service's hosts it concerns. Zero: all.
	Hosts int
	// RetryAfter and DontRetry are the hints of a failure (Errors).
	RetryAfter time.Duration
	DontRetry  bool
	// After is how soon a failure is answered (Errors). Zero: Service.ErrorTime.
	After time.Duration
	// Warmup is how long a restarted service has a cold cache, and Cold how many
	// times longer its work takes at first; it falls in a straight line (Crash).
	Warmup time.Duration
	Cold   float64
	// Silent: the machine dies, not only the process (Crash). Nobody hears of it. Connections stay
	// half-open: there is no answer while it is down, and a reset when one is used afterwards.
	Silent bool
}

// A Topic is a queue of messages: producers send, a broker keeps, and consumers handle
// them, each by one attempt of a service. In the totals and series of a Result a message is
// a call, which begins when it is sent and ends when it is handled or dead. Whatever is decided about a message is decided by
// the engine, as in package queue. The policy under comparison is that of the consumers. It
// must not hedge.
type Topic struct {
	Name string
	// Calls names the service that handlers call.
	Calls string
	// Arrivals is when messages are sent: poisson or constant.
	Arrivals  Arrivals
	Poison    Poison
	Broker    Broker
	Consumers Consumers
	// Policy is the topic's own: the name of a contender, as in a Fleet. Empty: the
	// policy under comparison.
	Policy string
}

// Poison is messages that fail whatever the service does: their handlers panic.
type Poison struct {
	Share float64 // of all messages
	// Kills: the handler ends its process, which begins again after Down.
	Kills bool
	Down  time.Duration // zero: 1 s
}

// A Broker keeps the messages. The zero Broker can do everything that the one of the zero
// queue.MemoryBrokerConfig can do.
type Broker struct {
	// CountDefers: a deferral counts as an attempt.
	CountDefers bool
	// FixedLeases: leases cannot be extended.
	FixedLeases bool
	// MaxDelay is the longest that a message can be made to wait. Zero: 12 h.
	MaxDelay time.Duration
}

// Consumers are the processes that handle the messages of a topic. Each of them has a
// Dependency of its own, of the service.
type Consumers struct {
	// Processes is how many there are. Zero: 1.
	Processes int
	// Concurrency is how many messages each handles at a time. Zero: 16.
	Concurrency int
	// Lease is how long a message stays a consumer's that falls silent. Zero: 30 s.
	Lease time.Duration
	// Quick is how often the handler is run again in one delivery, after QuickWait at
	// most (zero: 1 s).
	Quick     int
	QuickWait time.Duration
	// Network lies between the handlers and the service.
	Network Network
	// Wary: each process begins when it has found out that the service is down, by a
	// failure a second: its circuit is open.
	Wary bool
	// Kills end processes without a word.
	Kills []Kill
}

// A Kill ends processes. What they have in hand comes back when its leases lapse.
type Kill struct {
	// At is when, and For how long until they begin again.
	At, For time.Duration
	// Every repeats it. Zero: it happens once.
	Every time.Duration
	// Processes is how many, from the first. Zero: all. Apart is the time from one to
	// the next.
	Processes int
	Apart     time.Duration
}

// step is Step with its zero filled in.
func (s *Scenario) step() time.Duration {
	if s.Step > 0 {
		return min(s.Step, s.Horizon)
	}
	least := s.Horizon / 120
	for unit := time.Duration(1); ; unit *= 10 {
		for _, k := range []time.Duration{1, 2, 5} {
			if unit*k >= least {
				return unit * k
			}
		}
	}
}

// window is Window with its zero filled in.
func (s *Scenario) window() time.Duration {
	if s.Window > 0 {
		return min(s.Window, s.Horizon)
	}
	w := min(s.step(), time.Second)
	for s.Horizon/w > maxPoints {
		w *= 10
	}
	return w
}

func (s *Scenario) service(name string) *Service {
	for i := range s.Services {
		if s.Services[i].Name == name {
			return &s.Services[i]
		}
	}
	return nil
}

func (a *Arrivals) none() bool { return reflect.ValueOf(*a).IsZero() }

func (c *Connections) backlog() int { return cmp.Or(c.Backlog, 4096) }

// fullFor is how long it takes to fill the buffer of a connection.
func (l *Link) fullFor() time.Duration {
	if l.Buffer == 0 {
		return never
	}
	return max(duration(float64(l.Buffer)/float64(l.PerSecond)*1e9), 1)
}

// share is the share that is left, or that fails, with the zero of each kind filled in.
func (f *Fault) share() float64 {
	switch {
	case f.Share > 0:
		return f.Share
	case f.Kind == Errors || f.Kind == Flush:
		return 1
	}
	return 0.1
}

func (f *Fault) cold() float64 { return cmp.Or(f.Cold, 10) }

func (c *Consumers) processes() int { return cmp.Or(c.Processes, 1) }

func (c *Consumers) concurrency() int { return cmp.Or(c.Concurrency, 16) }

func (p *Poison) down() time.Duration { return cmp.Or(p.Down, time.Second) }

// each calls do for each process that k ends, and when, before the horizon.
func (k *Kill) each(c *Consumers, horizon time.Duration, do func(process int, at time.Duration)) {
	repeat(k.At, k.Every, horizon, func(at time.Duration) {
		for p := range cmp.Or(k.Processes, c.processes()) {
			do(p, saturating.Add(at, time.Duration(p)*k.Apart))
		}
	})
}

// occurrences calls f for each time that a fault happens before the horizon.
func (f *Fault) occurrences(horizon time.Duration, do func(from, to time.Duration)) {
	repeat(f.At, f.Every, horizon, func(from time.Duration) { do(from, saturating.Add(from, f.For)) })
}

// repeat calls do for each time from at on, so far apart (zero: once), before the horizon.
func repeat(at, every, horizon time.Duration, do func(at time.Duration)) {
	for ; at < horizon; at = saturating.Add(at, every) {
		do(at)
		if every <= 0 {
			return
		}
	}
}

// latest returns when the latest fault that has begun by now ends. It reports false if none has begun.
func (f *Fault) latest(now time.Duration) (to time.Duration, ok bool) {
	if now < f.At {
		return 0, false
	}
	from := f.At
	if f.Every > 0 {
		from += (now - f.At) / f.Every * f.Every
	}
	return saturating.Add(from, f.For), true
}
