// Package admission decides which requests a server works on. It refuses the others early,
// with a hint when to come back, so that an outage does not get worse.
//
//	m, err := admission.NewMiddleware(admission.Config{})
//	...
//	return http.ListenAndServe(addr, m.Handler(mux))
//
// A request is admitted if fewer are in flight than the limit. The limit is Config.Max (10,000) until there
// is evidence of overload: requests queue in the server, so that the number in flight and the time grow, but
// the throughput does not. Then it adapts. Beyond the limit a request waits for a short time, in the order of its [Priority], first attempts before retries. Without pressure the oldest is served
// first. Pressure begins when requests have waited, or were refused, for as long as MaxWait: then waits are
// short, the newest is served first, and retries and hedges are refused. (CoDel, RFC 8289; adaptive LIFO and
// controlled delay in Maurer, "Fail at scale", ACM Queue 13(8), 2015; "overloaded; don't retry" in chapter 21
// of the SRE book.) Work does not begin if its caller has gone, or if its deadline is nearer than the median
// time of recent requests. Every refusal has a time to come back, each a little later than the one before.
//
// A Controller has no clock ([Gate] and [Middleware] have one), starts no goroutine, and draws no random
// numbers of its own. It does not know the cost of a request: for requests of 1 ms and of 10 s use two, and
// exclude those that are long by design ([WithSkip]). The limit looks at throughput, not at memory: a server
// that runs out of memory at 10,000 requests should have a Max or a Limit. That an HTTP caller has gone is not noticed before the
// request's body was read.
//
// A request that is admitted at once costs about 75 ns and no allocation. The HTTP middleware
// costs 250 ns and 2 allocations. docs/servers.md has the reasons, the figures, and the argument for the
// limit; docs/guide.md, under "Whom to believe", what clients can claim.
package admission
