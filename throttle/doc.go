// Package throttle lets a client hold back its own calls if the backend is overloaded. It decides
// for each attempt, the first included, whether it may be sent. It is off unless Config.Mode is
// set. [Adaptive] refuses a share at once, and is for services (Site Reliability Engineering,
// chapter 21). [Cubic] delays attempts to a rate, and is for jobs and quotas (the adaptive retry
// mode of the AWS SDKs).
//
// All attempts of one Throttle must meet the same limit. Every method takes the time since an
// epoch that the caller chooses; it may go backwards a little. Start and Done together take 3 ns
// if the throttle is off, and 12 ns while nothing is refused. A Throttle takes 24 bytes, and up to
// 640 more when it is used. The page docs/mechanisms.md has the formulas, the argument, what
// differs from the SDKs, measurements and limits.
package throttle
