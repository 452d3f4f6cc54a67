// Package lull makes calls to things that fail, without making the failure worse.
//
// A retry is load that a caller adds to a dependency which has just shown that
// it is in trouble. Most retry loops add it without limit and in step: a blip of
// 200 ms comes back as an outage of half an hour, because every client tries
// again, at the same moment, four times, in each of three layers. Waiting longer
// and adding jitter do not cure that; they spread the same volume. What cures it
// is to bound the volume, to stop when it is pointless, and to listen to the
// server. So a call made with lull
//
//   - is retried only if its failure is known to be transient, and the operation
//     is safe to repeat or was provably never sent;
//   - pays for each retry from a budget that all calls to the dependency share,
//     and that their successes fill: in a total outage attempts stay below
//     1.1 × calls and two a process, whatever number of attempts the policy allows;
//   - repeats an attempt that timed out only while the dependency answers others;
//   - waits as long as the server asks, with jitter on top, and never sleeps into
//     its own deadline: it returns at once, with the last real error and the
//     reason why it stopped;
//   - stops when the circuit breaker of the dependency opens, which wraps the
//     loop and learns the results of calls, not of attempts.
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
// http.Client, where the classification of failures comes ready-made.
//
// A policy that hedges (Policy.Hedge) sends a second attempt beside a slow first
// one, for operations that are called with [DoHedged] and for idempotent HTTP
// requests.
//
// # The way of a call
//
// The order is fixed, and not left to the order of arguments: deadline of the
// call, circuit breaker, retry loop or hedges with their budget, throttle,
// concurrency limit, timeout of the attempt. After each attempt engine.Call.Next asks its nine questions,
// and the first no ends the call with that reason.
//
// # One engine, many drivers
//
// Every decision is taken by package engine, which never reads a clock, sleeps, starts
// a goroutine or draws a random number: time comes in as an argument and the answer goes
// out as a value. [Do] adds the real clock. Package sim adds a virtual one: it flies a
// policy through an outage, with up to 25 million clients, and what is simulated is what
// ships. What happens to calls is in package event, and what those need who write a
// driver of their own is in package driver.
//
// # What it costs
//
// A first attempt that succeeds, through retry, budget, breaker, concurrency
// limit and an observer, costs no allocation and about 95 ns, a third of which is
// one reading of the clock. Once in a millisecond at most there is a second one. An
// attempt with a timeout of its own costs one allocation; with no nearer deadline than
// its caller's, none. Benchmarks beside other libraries are in the module bench.
package lull
