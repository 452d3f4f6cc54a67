// Package lulltest makes HTTP fail as a test wants it to, and records what arrived.
//
// [Faults] fails at the client, in front of a transport, or at the server, in front of a handler. Each
// [Rule] has a condition and a fault.
//
//	faults := &lulltest.Faults{Rules: []lulltest.Rule{
//		{On: "GET /orders/{id}", First: 2, Status: 503},                   // the first two attempts of each call
//		{On: "POST /payments", End: lulltest.Reset},                       // carried out, and the answer is lost
//		{Every: 10, Status: 429, Header: http.Header{"Retry-After": {"2"}}}, // every tenth of all others
//		{Chance: 0.01, End: lulltest.Hang},                                // and one of a hundred
//	}}
//	client, err := lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(faults.Transport(nil)))
//
// A rule without Status calls the transport or handler behind it, and delays, cuts or drops its
// answer: the request was carried out. A rule with Status replaces it, and a refused connection never
// carries a request.
//
// Requests with the same method, URL and Idempotency-Key are attempts of one call, and counted in the order
// of their arrival. All waits are timers, so a test in a bubble of testing/synctest takes no time. A draw
// depends on the seed, the rule, the call and the number of the attempt alone.
//
// Requests are read as a whole before they are answered, and their bodies are kept: it is for tests, not for
// streams in both directions. It needs nothing but the standard library, and any client can be tested with it.
// docs/guide.md shows it at work.
package lulltest
