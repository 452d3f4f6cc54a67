// Package lull makes calls to things that fail, without making the failure worse.
//
// A retry adds load to a dependency that has just failed. Most retry loops add it
// without a limit, and all at the same time: every client tries again at the same
// moment, four times, in each of three layers. So a short failure becomes a long
// outage. Longer waits and jitter spread this load, but do not limit it. lull limits
// the number of retries, stops when another attempt is pointless, and obeys the server.
// A call made with lull
//
//   - is retried only if its failure is known to be transient, and the operation
//     is safe to repeat or was provably never sent;
//   - pays for each retry from a budget, which all calls to the dependency share and
//     their successes fill. In a total outage there are at most 1.1 attempts for each
//     call, and two more for each process, at any number of allowed attempts;
//   - repeats an attempt that timed out only while the dependency answers others;
//   - waits at least as long as the server asks. If the wait would cross the deadline, the
//     call returns at once, with the last real error and the reason;
//   - stops when the circuit breaker of the dependency opens. The breaker is outside of the
//     loop, and learns the results of calls, not of attempts.
//
// # Use
//
// Make one [Dependency] for each thing that you call, share it, and make calls
// with [Do]:
//
//	payments, err := lull.NewDependency("payments", lull.Policy{})
//	...
//	receipt, err := lull.Do(ctx, payments, func(ctx context.Context) (Receipt, error) {
//		return client.Charge(ctx, order)
//	})
//
// The zero [Policy] is the recommended one. Package lullhttp does the same for
// http.Client, and classifies the failures of HTTP.
//
// A policy that hedges (Policy.Hedge) sends a second attempt beside a slow first
// one, for operations that are called with [DoHedged] and for idempotent HTTP
// requests.
//
// # The way of a call
//
// The order is fixed, and not left to the order of arguments: deadline of the
// call, circuit breaker, retry loop or hedges with their budget, throttle,
// concurrency limit, timeout of the attempt. After each attempt engine.Call.Next checks nine
// conditions. The first that is not met ends the call with its reason.
//
// # One engine, many drivers
//
// Package engine makes every decision. It never reads a clock, sleeps, starts a goroutine
// or draws a random number: it gets the time as an argument and returns its decision as a
// value. [Do] adds the real clock. Package sim adds a virtual clock: it simulates outages
// with up to 25 million clients, with the same engine. Package event has the events of
// calls. Package driver is for users who write a driver of their own.
//
// # What it costs
//
// A first attempt that succeeds costs no allocation and about 95 ns, through retry,
// budget, breaker, concurrency limit and an observer. A third of that is one
// reading of the clock. Once in a millisecond at most there is a second one. An
// attempt with a timeout of its own costs one allocation. If the caller's deadline
// is nearer than the timeout, it costs none. Benchmarks beside other libraries are
// in the module bench.
package lull
