// Package admission decides which requests a server works on. It refuses the others early,
// with a hint when to come back, so that an outage does not get worse.
//
//	m, err := admission.NewMiddleware(admission.Config{})
//	...
//	http.ListenAndServe(addr, m.Handler(mux))
//
// docs/admission.md has the reasons, the figures, and the argument for the limit.
//
// # What is decided
//
// A request is admitted if fewer are in flight than the limit. Otherwise it waits, for a
// short time, and not if it would be served too late:
//
//   - Without pressure the wait is at most MaxWait, and the oldest is served first. That
//     smooths a burst. Pressure begins when requests have waited, or were refused, for as
//     long as MaxWait. Then the wait is at most PressedWait, and the newest is served
//     first: the caller of the oldest is the next to go. (CoDel, RFC 8289; adaptive LIFO
//     and controlled delay in Maurer, "Fail at scale", ACM Queue 13(8), 2015, whose
//     100 ms and 5 ms are the defaults here, longer for slow requests.)
//   - Work does not begin if its caller has gone, or if its deadline is nearer than the
//     median time of recent requests.
//   - Of those that wait, the highest Priority goes first, and makes room last. Of equal
//     priority, first attempts go before retries. Hedges do not wait at all.
//   - Under pressure retries are refused at once, unless they are CriticalPlus. The
//     capacity is for calls that have had no attempt yet.
//   - Retries and hedges beyond a fifth of the first attempts are refused at any time
//     (RetryRatio). A server that sees many of them should answer "overloaded; don't
//     retry" (SRE book, chapter 21).
//
// Every refusal has a time to come back, each a little later than the one before, plus up
// to a half by chance. So as many come back as can be served. A retry, and a request after
// pressure for ten times MaxWait, should not come back; its refusal has that hint too. In
// HTTP a refusal is 503 with Retry-After and problem details. One that should not be
// repeated has X-Should-Retry: false, and the type lullhttp.ProblemOverloaded. In gRPC, [Decision.Pushback] is the value of
// grpc-retry-pushback-ms (gRFC A6); an interceptor waits at a [Gate].
//
// A server that can take less than usual for a while, and knows it, bounds the requests in flight
// itself ([Gate.SetMax]).
//
// # Trust
//
// Clients send which attempt a request is (lullhttp.ParseAttempt, lullhttp.ParseHedge). A
// client that lies gets the place of a first attempt, as if this package did not look. A
// Priority takes from others, so it is believed only from those that [WithTrust] names;
// [WithPriority] is for one that the server finds out itself. At an edge believe nothing:
// WithTrust(lullhttp.TrustNobody).
//
// # Limits
//
// A Controller has no clock (Gate and Middleware have), starts no goroutine, and draws no
// random numbers of its own. It does not know the cost of a request: one limit for requests
// of 1 ms and of 10 s is a compromise, and two Controllers are better. Let pass what is long
// by design, such as event streams and long polls ([WithSkip]). The adaptive limit looks at
// throughput, not at CPU or memory: a server that runs out of memory before it gets slower
// should have a Max, or a Limit. It does not notice that an HTTP caller has gone before the
// request's body was read.
//
// A request that is admitted at once costs about 75 ns and no allocation; the HTTP
// middleware costs 250 ns and 2 allocations.
package admission
