// Package lull makes calls to things that fail, without making the failure worse.
//
// A retry adds load to a dependency that has just failed. Longer waits and jitter spread
// this load, but do not limit it. A call made with lull
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
// http.Client, and classifies the failures of HTTP. A policy that hedges (Policy.Hedge)
// sends a second attempt beside a slow first one, for operations that are called with
// [DoHedged] and for idempotent HTTP requests.
//
// The order is fixed: deadline of the call, circuit breaker, retry loop or hedges with their
// budget, throttle, concurrency limit, timeout of the attempt. After each attempt
// engine.Call.Next checks nine conditions. The first that is not met ends the call with its
// reason. Package engine makes every decision, [Do] adds the real clock, and package sim a
// virtual one. Package event has the events of calls. Package driver is for users who write a
// driver of their own.
//
// A first attempt that succeeds costs no allocation and about 95 ns, through retry, budget,
// breaker, concurrency limit and an observer. An attempt with a timeout of its own costs one
// allocation, unless the caller's deadline is nearer than the timeout.
package lull
