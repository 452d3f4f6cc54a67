// Package lulltest makes HTTP fail as a test wants it to, and records what arrived.
//
// A retry is code that runs only when something else fails. [Faults] makes that happen: at
// the client, in front of a transport, or at the server, in front of a handler. Each [Rule]
// has a condition and a fault: a status, a header such as Retry-After, a delay, a refused
// connection, a reset before, in or after the header, a body that is slow or cut short, or
// no answer at all.
//
//	faults := &lulltest.Faults{Rules: []lulltest.Rule{
//		{On: "GET /orders/{id}", First: 2, Status: 503},                   // the first two attempts of each call
//		{On: "POST /payments", End: lulltest.Reset},                       // carried out, and the answer is lost
//		{Every: 10, Status: 429, Header: http.Header{"Retry-After": {"2"}}}, // every tenth of all others
//		{Chance: 0.01, End: lulltest.Hang},                                // and one of a hundred
//	}}
//	client, err := lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(faults.Transport(nil)))
//
// Afterwards [Faults.Attempts] returns the requests that arrived: the time, method, URL, header
// (with the Idempotency-Key) and body of each.
//
// # Is the request carried out?
//
// A rule without Status calls the transport or handler behind it, and delays, cuts or drops its
// answer. So if an answer is lost, the request was carried out. A rule with Status replaces the
// transport or handler behind it, which never gets the request. A refused connection never
// carries a request.
//
// # Which attempt is it?
//
// Requests with the same method, URL and Idempotency-Key are attempts of one call, and
// counted in the order of their arrival. Give each call of a test a URL of its own, or set
// [Faults].Call.
//
// # Time and chance
//
// All waits are timers, so a test in a bubble of testing/synctest takes no time. A draw
// depends on the seed, the rule, the call and the number of the attempt, and on nothing
// else: not on the order of goroutines, and not on other calls.
//
// # At the client, or at the server
//
// [Faults.Transport] returns the errors that net/http returns for such a failure, of the same types. It
// needs no network. [Faults.Handler] breaks real connections. It cannot refuse one, so it
// resets it before anything is answered. Over HTTP/2 each break is a reset of the stream. Note that
// http.Transport itself repeats a GET whose connection broke before the answer began, if the
// connection had carried another request before: such attempts arrive at a handler, and no retry
// policy knows of them.
//
// Requests are read as a whole before they are answered, and their bodies are kept. So the
// package is for tests, not for streams in both directions. It needs nothing but the standard
// library, and knows nothing of lull: any client can be tested with it.
package lulltest
