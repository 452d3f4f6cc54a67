package sim

import (
	"time"

	"github.com/lullgo/lull/admission"
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
	// Errors is the share of attempts that fail at all times, without any work,
	// after ErrorTime.
	Errors    float64
	ErrorTime time.Duration
	// RefusalTime is the work of refusing an attempt or a connection. What is worked on at that
	// time takes as much longer. Zero: a refusal costs nothing.
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
