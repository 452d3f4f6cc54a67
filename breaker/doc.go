// Package breaker is a circuit breaker: it learns from the calls to a dependency, refuses
// calls while all of them fail, and lets one through from time to time to see whether the
// dependency is back.
//
// # Why
//
// Under overload a dependency gets more calls than it can answer, and most of its work is for
// callers that have given up. Each caller waits for its time-out, and holds a connection and a
// goroutine meanwhile. If calls fail at once instead, the callers save that time, and the
// dependency can work off its queue. A retry budget limits only retries. A breaker also
// refuses first attempts.
//
// A breaker is of no use if failures return at once, or if a part of the calls succeeds. So
// the default rules open it only if all calls fail, and for a short time only if failures are
// quick.
//
// # States and rules
//
// Closed: calls pass. Open: calls are refused, for a random time. Half-open: Config.Probes
// calls pass at a time; as many successes in a row close the breaker, and one failure opens it
// again. Each change of state begins a new generation. The result of a call counts only in the
// generation in which the call started.
//
// By default it opens after failures in a row that last for two seconds, at least three:
//
//	failures in a row ≥ Consecutive,  end of the last - end of the first ≥ ConsecutiveFor
//
// A success starts the row again; a neutral result changes nothing. It stays open for
//
//	d = min(age of the outage / 10, 10 × duration of the failed call)
//	open for d to 1.5 d, uniformly, and never longer than OpenMax
//
// While it is open, calls pass at a sixteenth of the earlier rate, as samples. The first that
// succeeds closes it. Config.OpenFor sets a fixed time instead, without samples.
// Config.FailureRate opens it at a share of failures, where each call is counted at its start.
//
// The page docs/breaker.md has the argument for each rule, the formulas and the measurements.
//
// # Cost
//
// 144 bytes, and 144 for the rules, which the breakers of a [Plan] share. Listeners take 64
// from the first change on, a rate about 1,100 more. With the default rules Start and Done of
// a success take about 3 ns together, of a failure 20; a refusal takes 4. With a rate a
// success takes 10 ns, with all rules on 14, and a failure 90. Nothing is allocated.
//
// # What it does not do
//
// It has no clock: every method takes the time since an epoch that the caller chooses. Time
// may go backwards a little from call to call. It starts no goroutine: a change that is due
// happens with the next call, so listeners may learn of it late.
//
// It does not classify errors: the caller decides what is a failure. Failures that the caller
// has caused, such as a cancelled context, should be Neutral.
//
// If successes take longer than ConsecutiveFor and failures are quicker, it may open although
// successes are on their way. Report failures with [Breaker.DoneUsually] if you know how long
// successes take; otherwise make ConsecutiveFor longer than a call.
package breaker
