// Package throttle lets a client hold back its own calls when the backend is overloaded. It
// decides for each attempt whether it may be sent. The first attempt of a call is no exception.
//
// # Why
//
// A backend that gets more requests than it can serve must refuse some, and each refusal costs
// it something. With too many requests it only refuses: "the backend can become overloaded
// even though the vast majority of its CPU is spent just rejecting requests" (Site Reliability
// Engineering, chapter 21, Handling Overload). A retry budget limits only retries. A breaker
// refuses all calls or none. A throttle lets through about as many as the backend accepts.
//
// Both throttles are off unless a Config turns them on. Each uses only what one client sees.
//
//	t, err := throttle.New(throttle.Config{Mode: throttle.Adaptive})
//
// Adaptive refuses a share at once; it is for services. Cubic delays attempts to a rate, and is for jobs and quotas.
//
// # What both assume
//
// All attempts of one Throttle meet the same limit. Make one for each resource that refuses by
// itself, such as a table or a shard. Refusals for load can be distinguished from other
// failures: [Outcome] has the list. A refusal by the throttle ends the call. If the caller asks
// again for the same attempt, it counts as another request.
//
// # Adaptive
//
// This is the adaptive throttling of the SRE book. The client counts its requests, and its
// accepts: the requests that the backend did not refuse. It counts them for two minutes
// (Window). It refuses the next request with the probability
//
//	p = max(0, (requests - K × accepts) / (requests + 1)),   K = 2
//
// With this formula alone a client may need many minutes to come back after an outage. So a
// second window of 10 s (Recent) is counted too, and the smaller probability is used. Nothing
// is refused before the window holds MinRequests, 10. One attempt passes after ProbeEvery,
// 30 s, in any case.
//
// # Cubic
//
// This is the rate limiter of the AWS SDKs' adaptive retry mode. Nothing is limited before the
// first rate-limited answer. From then on each attempt takes a token from a bucket that fills
// at a rate. With every answer the rate becomes
//
//	rate-limited:  max  = min(measured rate, rate so far)
//	            rate = 0.7 × max
//	any other:  rate = 0.4 × (t - k)³ + max,   k = (max × 0.3 / 0.4)^(1/3)
//
// where t is the time since the rate-limited answer in seconds. Four things differ from the
// SDKs. The rate falls at most once in a second (FallEvery). A wait has a limit (MaxWait).
// Callers that wait are served in their order. The limit ends two minutes after the last
// rate-limited answer. Settings restore the behaviour of the SDKs.
//
// The page docs/mechanisms.md has the argument, the measurements and the limits of both.
//
// # Cost
//
// Ask and Learn together take 3 ns if the throttle is off. Adaptive takes 12 ns while nothing
// is refused, 35 if the attempt was not accepted, and 95 for a refusal. Cubic takes 13 ns
// before the first rate-limited answer, 47 after it, and 17 for a refusal. Nothing is allocated
// after the first use and the first request that is not accepted. A Throttle takes 24 bytes.
// Adaptive takes up to 640 more, Cubic 140. Configurations are prepared once and shared
// ([Plan]).
//
// # What it does not do
//
// It has no clock and does not wait: every method takes the time since an epoch that the
// caller chooses, and Ask returns how long to wait. Time may go backwards a little from call
// to call. It does not know how important a call is: use a Throttle for each criticality.
package throttle
