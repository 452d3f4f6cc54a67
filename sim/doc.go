// Package sim simulates an outage under a retry policy before production has one. It is
// a discrete-event simulator with the engine of the library: every client process has a
// [lull.Dependency] of its own, and every call is a [engine.Call]. These make each
// decision (may this call start, is the failure worth another attempt, how long to
// wait, does the budget pay). The simulator keeps the time, delivers requests,
// simulates the services, and counts. It decides nothing about retries.
//
//	r, err := sim.Run(ctx, scenario, sim.Contender{Name: "ours", Policy: p}, sim.Options{})
//
// # What is in it
//
// A [Scenario] has services (workers, a queue, a distribution of service times, a
// rate limit, services that they call themselves, faults) and fleets that call
// them (processes, arrivals, patience, users who come back, a network). A service
// continues to work for callers that have gone, as servers do; for that reason an
// overloaded one stays overloaded. Admission control before it is package admission
// itself. A [Contender] is a policy. [Compare] flies several through the same
// arrivals, with several seeds. A [Topic] is a queue of messages, with a broker and
// consumers: whatever becomes of a message is decided by the engine, too.
//
// Connections are simulated where a [Network] has a [Pool]: dials and handshakes,
// attempts that wait for a free one, limits and backlogs, ports that run out, peers
// that are half-open. Without one they cost nothing. A service may have a [Heap] that is
// collected, and a [Cache] before what it calls; processes may choose among its hosts
// by package outlier ([Endpoints]).
//
// # What it leaves out
//
// Threads, the CPU of clients, and everything that clients have in common beside the
// service: two calls of different processes meet only in its admission control, its
// connections, its queue, its rate limit and its workers. A queue is
// one queue. Fleets do not scale up when
// a breaker opens. The figures compare policies; they do not predict a given
// service.
//
// # The same seed, the same result
//
// A run is single-threaded, events are worked off in the order of their time and,
// at the same time, of their making, and all chance is a hash of the seed, the
// call and the attempt (SplitMix64), so that contenders meet the same arrivals and
// no draw depends on the order of others. Logarithms and the like are made of
// operations that IEEE 754 defines to the last bit, and never fused, so that
// machines agree; runs beside one another share nothing.
//
// # Cost
//
// About 10 million attempts a second and core, 32 bytes for a process that has
// nothing to remember and 128 for a call under way: 25 million players that fetch a segment every four seconds take
// 1.1 GiB. Events wait in a calendar queue that sorts each bucket exactly
// (internal/wheel); arrivals are a stream that costs nothing while they have not
// come. [Scenario.Cost] estimates a run before it is made.
package sim
