// Package shipped has four experiments, as tests. They show that the simulator does what the
// shipped code does.
//
// # Queues
//
// Random scripts of a queue run in package sim, and with queue.Consumer and queue.Memory under
// testing/synctest: outages, workers that are killed, leases that cannot be extended. For each
// message three things must be equal, to the nanosecond: how often it was tried, when it ended,
// and why.
//
// # Pools
//
// Random scripts of a pool of connections run in package sim, and with the pools of net/http and
// database/sql in virtual time, over connections in memory. They have stalls, crashes, timeouts,
// and limits on connections, on idle connections and on their age. For net/http four things must be
// equal to the nanosecond: dials, dials without a result, waits, and the results of attempts.
// database/sql chooses the next waiting call at random. It must be equal where that makes no
// difference, and agree within a twentieth over all scripts.
//
// # The map
//
// The boundary of the map of metastability (sim.FindStability) is compared with real clients and a
// real server, in virtual time and, with the tag servers, on sockets: see boundary_test.go.
//
// # Calls
//
// The same sim.Scenario and the same lull.Policy run twice: in package sim, and with lullhttp.Transport
// against a net/http server that behaves as the scenario's service, in virtual time over connections in
// memory. Attempts per call, success rate and the reasons why calls ended must agree, before, during and
// after the fault.
//
// A run of some hundred calls is one draw. The simulator runs with many seeds, and the spread between
// them is the standard error of one run. The tolerance is three of them. It is never less than three
// calls, because rare events are not normally distributed. If a figure is outside, the run is repeated with
// other draws. A figure that is outside twice on the same side fails the test.
//
// A comparison that cannot fail proves nothing. So each case also names a policy that is wrong in
// the subject of the case (no budget, no jitter, another rule for timeouts, ...). A simulation of that
// policy must give a figure outside the tolerance.
//
// With the tag lab the random scripts are more, and others in each run, and all five points of the map are flown.
package shipped
