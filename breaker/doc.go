// Package breaker is a circuit breaker. It learns from the calls to a dependency, and refuses
// calls while all of them fail. From time to time it lets one through, to see whether the
// dependency is back.
//
// # Why
//
// Under overload a dependency gets more calls than it can answer, and most of its work is for
// callers that have given up. Each caller waits for its time-out, and holds a connection and a
// goroutine meanwhile. If calls fail at once instead, the callers save that time, and the queue
// of the dependency becomes shorter. A retry budget limits only retries. A breaker also refuses
// first attempts.
//
// A breaker is of no use if failures return at once, or if a part of the calls succeeds. So the
// default rules open it only if all calls fail. They open it only for a short time if failures
// are quick.
//
// # States and rules
//
// While the breaker is closed, calls pass. While it is open, calls are refused, for a random
// time. While it is half-open, Config.Probes calls pass at a time. As many successes in a row
// close the breaker, and one failure opens it again. Each change of state begins a new
// generation. The result of a call counts only in the generation in which the call started.
//
// By default it opens after at least three failures in a row that last for two seconds:
//
//	failures in a row ≥ Consecutive,  end of the last - end of the first ≥ ConsecutiveFor
//
// After a success the count begins again. A neutral result changes nothing. The breaker stays
// open for
//
//	d = min(age of the outage / 10, 10 × duration of the failed call)
//	open for d to 1.5 d, uniformly, and never longer than OpenMax
//
// While it is open, calls pass as samples, at a sixteenth of the earlier rate. The first that
// succeeds closes it. Config.OpenFor sets a fixed time instead, without samples.
// Config.FailureRate opens it at a share of failures. There each call is counted at its start.
//
// The page docs/mechanisms.md has the argument for each rule, the formulas and the measurements.
//
// # Cost
//
// A Breaker takes 144 bytes. Its rules take 144 more, which the breakers of a [Plan] share.
// Listeners take 64 from the first change on, and a rate takes about 1,100. With the default
// rules Start and Done take about 3 ns together for a success, and 20 for a failure. A refusal
// takes 4. With a rate a success takes 10 ns. With all rules on a success takes 14, and a
// failure 90. Nothing is allocated.
//
// # What it does not do
//
// It has no clock: every method takes the time since an epoch that the caller chooses. Time may
// go backwards a little from call to call. It starts no goroutine. A change that is due happens
// with the next call, so listeners may be called late.
//
// It does not classify errors: the caller decides what is a failure. Failures that the caller
// has caused, such as a cancelled context, should be Neutral.
//
// The breaker may open by mistake if successes take longer than ConsecutiveFor and failures are
// quicker. Report failures with [Breaker.DoneUsually] if you know how long successes take.
// Otherwise make ConsecutiveFor longer than a call.
package breaker
