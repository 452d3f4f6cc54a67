// Package admission decides which requests a server works on. It refuses the others early,
// with a hint when to come back, so that an outage does not get worse.
//
//	m, err := admission.NewMiddleware(admission.Config{})
//	...
//	return http.ListenAndServe(addr, m.Handler(mux))
//
// docs/servers.md has the reasons, the figures, and the argument for the limit.
//
// # What is decided
//
// A request is admitted if fewer are in flight than the limit. Otherwise it waits for a short
// time. It does not wait if it would be served too late:
//
//   - Without pressure the wait is at most MaxWait, and the oldest is served first. So all
//     requests of a short burst are served. Pressure begins when requests have waited, or
//     were refused, for as long as MaxWait. Then the wait is at most PressedWait, and the
//     newest is served first, because the caller of the oldest will give up next. (CoDel, RFC
//     8289; adaptive LIFO and controlled delay in Maurer, "Fail at scale", ACM Queue 13(8),
//     2015. Its 100 ms and 5 ms are the defaults here. They are longer for slow requests.)
//   - Work does not begin if its caller has gone, or if its deadline is nearer than the
//     median time of recent requests.
//   - Of the requests that wait, the highest Priority is served first, and refused last. Of
//     equal priority, first attempts go before retries. Hedges do not wait at all.
//   - Under pressure retries are refused at once, unless they are CriticalPlus. The
//     capacity is for calls that have had no attempt yet.
//   - Retries and hedges beyond a fifth of the first attempts are refused at any time
//     (RetryRatio). A server that sees many of them should answer "overloaded; don't
//     retry" (SRE book, chapter 21).
//
// Every refusal has a time to come back. Each time is a little later than the one before,
// plus up to a half at random. So only as many come back at a time as can be served. Two
// kinds of requests should not come back: a retry, and any request after pressure for ten
// times MaxWait. Their refusals have that hint, too.
//
// In HTTP a refusal is 503 with Retry-After and problem details. A refusal of a request that
// should not be repeated has X-Should-Retry: false, and the type lullhttp.ProblemOverloaded.
// In gRPC, [Decision.Pushback] is the value of grpc-retry-pushback-ms (gRFC A6). A gRPC
// interceptor waits at a [Gate].
//
// If a server knows that it can do less than usual for a while, it limits the requests in
// flight itself ([Gate.SetMax]).
//
// # Trust
//
// Clients send which attempt a request is (lullhttp.ParseAttempt, lullhttp.ParseHedge). A
// client that lies is treated as if its request were a first attempt, as it would be without
// this package. A high Priority is at the cost of others, so it is believed only from the
// clients that [WithTrust] names. With [WithPriority] the server decides on the priority
// itself. At the edge of a network believe nothing: WithTrust(lullhttp.TrustNobody).
//
// # Limits
//
// A Controller has no clock (Gate and Middleware have one), starts no goroutine, and draws no
// random numbers of its own. It does not know the cost of a request. One limit for requests
// of 1 ms and of 10 s is a compromise: two Controllers are better. Exclude requests that are
// long by design, such as event streams and long polls ([WithSkip]). The adaptive limit looks
// at throughput, not at CPU or memory. A server that runs out of memory before it gets slower
// should have a Max, or a Limit. A Controller does not notice that an HTTP caller has gone
// before the request's body was read.
//
// A request that is admitted at once costs about 75 ns and no allocation. The HTTP middleware
// costs 250 ns and 2 allocations.
package admission
