// Package sim simulates an outage under a retry policy before production has one. It is a
// discrete-event simulator with the engine of the library. Every client process has a
// [lull.Dependency] of its own, and every call is an [engine.Call]. These make each
// decision: may this call start, is the failure worth another attempt, how long to wait,
// does the budget pay. The simulator keeps the time, delivers requests, simulates the
// services, and counts. It decides nothing about retries.
//
//	r, err := sim.Run(ctx, scenario, sim.None(), sim.Options{Seed: 1})
//
// # What is in it
//
// A [Scenario] has services, and fleets that call them. A service has workers, a queue, a
// distribution of service times, a rate limit, faults, and services that it calls itself.
// A fleet has processes, arrivals, patience, users who come back, and a network. A service
// continues to work for callers that have gone, as real servers do. This keeps an
// overloaded service overloaded. Admission control before a service is package admission
// itself.
//
// A [Contender] is a policy. [Compare] simulates several contenders with the same arrivals,
// and with several seeds. A [Topic] is a queue of messages, with a broker and consumers.
// The engine also decides what becomes of a message.
//
// Connections are simulated where a [Network] has a [Pool]: dials, handshakes, attempts
// that wait for a free connection, limits, backlogs, ports that run out, and half-open
// peers. Without a Pool connections cost nothing. A [Link] is a connection that each process of a
// fleet keeps, and messages that wait while it is down. A service may have a [Heap], which is
// collected, and a [Cache] before the service that it calls. Processes may choose among the
// hosts of a service by package outlier ([Endpoints]).
//
// # What it leaves out
//
// There are no threads, and clients use no CPU. Clients have only the service in common.
// Two calls of different processes meet only in its admission control, its connections, its
// queue, its rate limit and its workers. Each host has only one queue. Fleets do not grow
// when a breaker opens. The figures compare policies. They do not predict a given service.
//
// # The same seed, the same result
//
// A run uses one goroutine, and runs share nothing. Events are handled in the order of their
// time. Events of the same time are handled in the order in which they were made. Each random
// number is a hash of the seed, the call and the attempt (SplitMix64). So all contenders meet
// the same arrivals, and no number depends on the order of others. Logarithms and similar
// functions use only operations that IEEE 754 defines to the last bit, and no fused ones. So
// all machines compute the same figures.
//
// # Cost
//
// One core simulates about 10 million attempts a second. A process that has nothing to
// remember takes 16 bytes, and a call under way 128. 25 million players that fetch a segment
// every four seconds take 0.7 GiB. Events wait in a calendar queue that sorts each bucket
// exactly (internal/wheel). Arrivals are computed one after the other, so future arrivals
// take no memory. [Scenario.Cost] estimates a run before it starts.
package sim
