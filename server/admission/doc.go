// Package admission decides which requests a server works on. It refuses the others early,
// with a hint when to come back, so that an outage does not get worse.
//
//	m, err := admission.NewMiddleware(admission.Config{})
//	...
//	return http.ListenAndServe(addr, m.Handler(mux))
//
// A request is admitted if fewer are in flight than the limit. The limit is Config.Max, 10,000, until there is evidence of
// overload: the number in flight and the time of requests grow, and the throughput does not. Then it adapts to the throughput. It does
// not look at memory: set Max to what the process can hold. A request beyond the limit waits for a short time, in the order
// of its [Priority], first attempts before retries. Under pressure, when requests have waited or were refused for as long as MaxWait, waits
// are shorter, the newest is served first, and retries and hedges are refused. Work does not begin if its caller has gone, or
// if its deadline is nearer than the median time of recent requests.
//
// A [Controller] has no clock, starts no goroutine, and draws no random numbers of its own; [Gate] and [Middleware] have a
// clock. For requests of 1 ms and of 10 s use two, and exclude those that are long by design ([WithSkip]).
//
// A request that is admitted at once costs about 75 ns and no allocation, with the HTTP middleware 250 ns and 2 allocations.
// docs/servers.md has the reasons, the sources, the figures, and which headers of clients are believed.
package admission
