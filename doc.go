// Package lull makes calls to things that fail, without making the failure worse.
//
// A retry adds load to a dependency that has just failed. A call made with lull
//
//   - is retried only if its failure is known to be transient, and the operation
//     is safe to repeat or was provably never sent;
//   - pays for each retry from a budget, which all calls to the dependency share and
//     their successes fill: in a total outage there are at most 1.1 attempts for each
//     call, and 20 more for each process;
//   - repeats a timeout only if the dependency answers other calls ([Policy] has the rule);
//   - waits at least as long as the server asks, or returns at once if the deadline is nearer;
//   - stops when the circuit breaker of the dependency opens, which learns the results of calls.
//
// Make one [Dependency] for each thing that you call, share it, and call [Do]:
//
//	payments, err := lull.NewDependency("payments", lull.Policy{})
//	...
//	receipt, err := lull.Do(ctx, payments, func(ctx context.Context) (Receipt, error) {
//		return client.Charge(ctx, order)
//	})
//
// The zero [Policy] is the recommended one. Package lullhttp does the same for http.Client.
// [DoHedged] sends a second attempt beside a slow first one (Policy.Hedge), [DoOr] has another
// answer for calls that fail. Package engine makes every decision, package event has the events of
// calls, and package driver is for writers of drivers. docs/architecture.md has the way of a call,
// docs/guide.md the whole.
//
// A first attempt that succeeds costs about 95 ns, through budget, breaker, concurrency limit and
// an observer. It allocates nothing, or once if its timeout is nearer than the caller's deadline.
package lull
