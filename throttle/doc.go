// Package throttle lets a client hold back its own calls when the backend is overloaded. It
// decides for each attempt whether it may be sent. The first attempt of a call is no exception.
// Both throttles are off unless a Config turns them on:
//
//	t, err := throttle.New(throttle.Config{Mode: throttle.Adaptive})
//
// Adaptive refuses a share at once, and is for services (Site Reliability Engineering, chapter
// 21). It refuses with the probability
//
//	p = max(0, (requests - K × accepts) / (requests + 1)),   K = 2
//
// over the last two minutes or the last 10 s, whichever gives less. Cubic delays attempts to a
// rate, and is for jobs and quotas. It is the adaptive retry mode of the AWS SDKs: from the first
// rate-limited answer on each attempt takes a token from a bucket that fills at
//
//	rate-limited:  max  = min(measured rate, rate so far)
//	            rate = 0.7 × max
//	any other:  rate = 0.4 × (t - k)³ + max,   k = (max × 0.3 / 0.4)^(1/3)
//
// where t is the time since the rate-limited answer in seconds.
//
// All attempts of one Throttle must meet the same limit. Every method takes the time since an
// epoch that the caller chooses, which may go backwards a little, and Ask returns how long to
// wait. Ask and Learn together take 3 ns if the throttle is off, and 12 ns while nothing is
// refused. A Throttle takes 24 bytes, and up to 640 more when it is used. The page
// docs/mechanisms.md has the argument, what differs from the SDKs, measurements and limits.
package throttle
