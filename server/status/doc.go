// Package status has an HTTP page with the state of dependencies, for people: what is open, what is
// spent, what waits, and what failed in the last minute.
//
//	page := new(status.Page)
//	orders, err := lull.NewDependency("orders", lull.Policy{}, lull.WithObserver(page))
//	...
//	page.Watch(orders)
//	mux.Handle("/debug/dependencies", page)
//
// For the hosts of a lullhttp.Transport: lullhttp.WithObserver(page) and page.WatchAll(transport.Registry().All).
// States are read when somebody asks for the page. Failures are counted by the page as an observer.
//
// The page is HTML without scripts and without other files. With ?refresh=5 the browser loads it again every
// five seconds. With ?format=json, or if the request's Accept header names application/json and not
// text/html, the answer is JSON.
//
// In JSON times are in seconds, and what a dependency does not have is absent:
//
//	time, dependencies: [name, watched, observed, waiting_for_retry, failed_last_minute,
//	    circuit: {state, forced, open_for, probe_in, last_change, last_change_ago},
//	    budget: {tokens, stock}, limit: {in_flight, most, waiting_for_room}, throttle: {refusal, rate, wait},
//	    last_minute: [reason, meaning, calls, without_attempt, hedges],
//	    last_errors: [code, kind, operation, attempt, text, ago, times]]
//
// Failures and errors are counted only of a dependency that has the page as an observer (observed).
//
// Serve it only to people who may read error texts, since these can contain private data. Circuits can be
// forced open and closed on it only if Page.ForceCircuits is set.
//
// It keeps at most 10 kB for each of at most 1024 names, however much fails; those that have failed last. A call
// that succeeds at once costs about 10 ns more with it as the observer, a call that fails or is refused 50 ns.
package status
