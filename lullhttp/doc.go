// Package lullhttp puts lull under an http.Client. A [Transport] is an http.RoundTripper. It
// makes each request as a call under a [lull.Policy], with one [lull.Dependency] for each
// host.
//
//	client, err := lullhttp.NewClient(lull.Policy{})
//	...
//	resp, err := client.Get("https://api.example.com/orders/7")
//
// [WithPolicies] gives hosts and routes, such as long polls and uploads, policies and
// dependencies of their own. [WithEndpoints] spreads the attempts at one host over several
// addresses (package outlier).
//
// # What is retried
//
// Failures are classified by their types ([ClassifyError]) and their status
// ([ClassifyStatus]). What the server asks for has priority ([ParseHint]): Retry-After in
// all its forms, the RateLimit fields, the forms of X-RateLimit-Reset, problem details
// (RFC 9457), and "don't retry". A hint is never cut short. If it is longer than
// Policy.HintLimit, or than the time that is left, the call ends.
//
// GET, HEAD, OPTIONS, TRACE, PUT and DELETE are repeated. POST, PATCH and unknown methods
// are repeated only in three cases: they carry an Idempotency-Key or X-Idempotency-Key
// ([WithIdempotencyKeys] makes keys); an option allows it ([WithRoute], [WithCall]); or the
// request was provably never sent, because there was no connection to send it on. A body that
// cannot be read a second time (no GetBody) is sent once, unless [WithReplay] buffers it, or
// nothing was read of it yet.
//
// What fails on the caller's own side (a body that cannot be read, a token that cannot be had, a full
// pool, a machine without files or ports) opens no circuit, costs no retries of others and ejects no
// endpoint.
//
// # What the caller gets
//
// The caller gets the last response, whatever its status, with its body unread and with the
// caller's own Request. [OutcomeOf] returns how many attempts were made and why they stopped.
// If the last attempt brought no response, the error is a [*lull.Error]. http.Client puts it
// into a *url.Error, where errors.Is and errors.As find it.
//
// The timeout of an attempt and Policy.Deadline end when the header of the response has
// arrived. After that the caller's context bounds the body. [WithBodyIdleTimeout] also ends
// it if nothing of it arrives for a minute. It is on in [NewClient] and off in [New]. While a
// long upload makes progress, the timeout starts anew.
//
// Everything that http.DefaultTransport carries passes through: upgrades, trailers,
// informational responses, streams in both directions. Responses that are not returned are
// drained and closed before the wait, so sequential retries use one connection. The caller's
// request is never changed, and the connection pool is never flushed.
//
// # What the server sees
//
// From the second attempt on the server sees the number of the attempt, in Lull-Attempt
// ([WithAttemptHeader]). A hedge has the header Lull-Hedge: ?1. A host that answers with the
// header Lull ([AnnounceHeader]) also sees how long the attempt still waits, in Lull-Timeout.
// [WithTimeoutHeader] sends it to all hosts. [NewHandler] is the server's half: it passes
// deadlines on, so that only one layer retries.
//
// # What it costs
//
// A RoundTrip over a stub that returns at once costs about 115 ns more than the stub alone,
// and no allocation, if it has no time limit. For a request with three header fields it costs
// 180 ns more. An attempt with a timeout of its own costs about 235 ns and two
// allocations more (BenchmarkRoundTrip). A POST without a key, or with a body that is not in memory, costs one allocation
// more if it has no timeout of its own. A request body is never copied.
//
// docs/guide.md has the rest, under "HTTP": hedging, long bodies, what net/http repeats by
// itself.
package lullhttp
