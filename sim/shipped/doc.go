// Package shipped holds four experiments, as tests: simulated is shipped.
//
// Random scripts of a queue are played by package sim, and by queue.Consumer with
// queue.Memory under testing/synctest: outages, workers that are killed, leases that cannot
// be extended. Of each message must be the same, to the nanosecond: how often it was tried,
// when it ended, and why.
//
// Random scripts of a pool of connections are played by package sim, and by the pools of net/http and
// database/sql in virtual time, over connections in memory: stalls, crashes, timeouts, limits on connections, on those
// without work and on how long they are kept. net/http's must be the same to the nanosecond in dials, dials that come
// to nothing, waits and what becomes of attempts. database/sql serves whoever waits at random: it must be the same
// where that makes no difference, and agree within a twentieth over all scripts.
//
// The boundary of the map of metastability (sim.FindStability) is compared with real clients and a real server at five
// points, in virtual time and on sockets: see boundary_test.go.
//
// The rest of this page is about calls.
//
// That a simulator runs the engine which also ships is an argument. The test is
// the evidence: the same sim.Scenario and the same lull.Policy are flown by package
// sim on virtual time, and by lullhttp.Transport on the real clock, through
// sockets, against a real HTTP server that behaves as the scenario's service.
// Attempts per call, success rate, why calls ended, and all that before, during and after
// the fault must agree.
//
// Two things may keep the figures apart without anybody being wrong:
//
//   - Chance. A flight of some hundred calls is one draw. The simulator is run
//     with many seeds, and the spread between them is the standard error of one
//     flight. The tolerance is three of them (but never less than three calls: the
//     tails of what happens seldom are not normal; nor, of a time, than a round trip).
//   - Time that the simulator does not know of. Timers ring late, sockets and the
//     scheduler take a while. During the flight requests that need no work are made
//     forty times a second, and timed. The simulator is run with a network as slow
//     as nine in ten of them found it, and with none, and the real figure must lie
//     between the two, within the tolerance. On a machine that cannot keep to the
//     schedule at all nothing is compared: that is not the simulator's mistake.
//
// A figure that is out is flown once more; a figure that is out twice on the same
// side fails the test. So chance fails it in one run of several thousand.
//
// A comparison that nothing can fail is worth nothing. So each case also names a
// policy that is wrong in the very thing that the case is about (no budget, no
// jitter, another rule for timeouts, ...), and simulating that must give a figure
// outside the tolerance.
package shipped
