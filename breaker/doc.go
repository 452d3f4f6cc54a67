// Package breaker is a circuit breaker. It learns from the calls to a dependency, and refuses
// calls while all of them fail. It opens after a row of failures that lasts (by default three in
// two seconds), for a time that fits the outage. Probes and samples, which are calls that pass
// meanwhile, close it again.
//
// Every method takes the time since an epoch that the caller chooses. It may go backwards a
// little from call to call. A change that is due is made by the next call. A failure that the
// caller has caused itself, such as a cancelled context, should be Neutral. A Breaker takes 144
// bytes; Start and Done take about 3 ns together for a success. The page docs/mechanisms.md has
// the rules, the formulas, the measurements and the limits.
package breaker
