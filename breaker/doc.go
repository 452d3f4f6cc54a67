// Package breaker is a circuit breaker. It learns from the calls to a dependency, and refuses
// calls while all of them fail. From time to time it lets one through, to see whether the
// dependency is back.
//
// By default it opens after at least three failures in a row that last for two seconds:
//
//	failures in a row ≥ Consecutive,  end of the last - end of the first ≥ ConsecutiveFor
//
// It stays open for
//
//	d = min(age of the outage / 10, 10 × duration of the failed call)
//	open for d to 1.5 d, uniformly, and never longer than OpenMax
//
// and while it is open, calls pass as samples, at a sixteenth of the earlier rate. The first
// that succeeds closes it. When d has passed it is half-open: Config.Probes calls pass at a
// time. As many successes in a row close it, and one failure opens it again. Each change of
// state begins a new generation, and a call counts only in the one in which it started.
//
// Every method takes the time since an epoch that the caller chooses, which may go backwards a
// little from call to call. A change that is due happens with the next call. The caller decides
// what is a failure; those that it has caused itself, such as a cancelled context, should be
// Neutral. A Breaker takes 144 bytes, Start and Done about 3 ns together for a success. The page
// docs/mechanisms.md has the argument for each rule, the formulas, the measurements and the limits.
package breaker
