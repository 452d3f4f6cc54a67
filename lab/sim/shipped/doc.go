// Package shipped has four experiments, as tests. They show that the simulator does what the shipped
// code does. Real clients run in virtual time, over connections in memory; with the tag lab there are
// more scripts, and others in each run.
//
//   - Queues (queue_test.go), to the nanosecond: how often a message was tried, when it ended, and why.
//   - Pools (pool_test.go), to the nanosecond for net/http: dials, waits, and results. database/sql
//     chooses the next waiting call at random; it agrees within a twentieth over all scripts.
//   - The map of metastability: boundary_test.go, with the tag servers also on sockets.
//   - Calls (shipped_test.go): attempts per call, success rate and reasons, before, during and after a
//     fault. The tolerance is three standard errors of one run, and no less than three calls. A figure
//     that is outside twice on the same side fails. A comparison that cannot fail proves nothing, so
//     each case names a wrong policy, which must give a figure outside.
package shipped
