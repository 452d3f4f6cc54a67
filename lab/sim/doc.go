// Package sim simulates an outage under a retry policy before production has one. It is a
// discrete-event simulator with the engine of the library: every client process has a
// [lull.Dependency] of its own, and every call is an [engine.Call]. These make each decision. The
// simulator keeps the time, delivers requests, simulates the services, and counts.
//
//	r, err := sim.Run(ctx, scenario, sim.None(), sim.Options{Seed: 1})
//
// A [Scenario] has services, fleets that call them, and topics of messages. A [Contender] is a policy.
// [Compare] simulates several. The same seed gives the same figures on any machine: each random
// number is a hash of the seed, the call and the attempt, events are handled in the order of their
// time, and logarithms use no fused operations.
//
// One core simulates about 10 million attempts a second. A process that has nothing to remember
// takes 16 bytes, and a call under way 128. docs/program.md has what the model leaves out, and
// docs/architecture.md the way of a scenario through the files.
package sim
