// Package lullhttp puts lull under an http.Client: a [Transport] is an
// http.RoundTripper that makes each request as a call under a [lull.Policy],
// with one [lull.Dependency] for each host.
//
//	client, err := lullhttp.NewClient(lull.Policy{})
//	...
//	resp, err := client.Get("https://api.example.com/orders/7")
//
// [WithPolicies] gives hosts and routes, such as long polls and uploads, policies and
// dependencies of their own.
//
// # What is retried
//
// Failures are classified by their types ([ClassifyError]) and their status
// ([ClassifyStatus]). What the server asks for counts for more ([ParseHint]):
// Retry-After in all its forms, the RateLimit fields, the many dialects of
// X-RateLimit-Reset, problem details (RFC 9457), and "don't retry". A hint is
// never cut short: one longer than Policy.HintLimit, or than the time that is
// left, ends the call. Malformed values are ignored. If problem details arrive later than
// their header, lull waits for a quarter of a second, and then ignores them.
//
// GET, HEAD, OPTIONS, TRACE, PUT and DELETE are repeated, also when their response was
// cut in its header, or their connection closed while it was idle. POST, PATCH and methods
// that nobody knows are repeated only if they carry an Idempotency-Key or an
// X-Idempotency-Key (a key of the header's map without a value counts, as in net/http,
// and is not sent; [WithIdempotencyKeys] makes keys), if an option allows it
// ([WithRoute], [WithCall]), or if the request was provably never sent: the
// connection was refused, the name did not resolve. A body that cannot be read a
// second time (no GetBody) is sent once; nothing is buffered for it, unless
// [WithReplay] asks for that.
//
// # Hedging
//
// Under a policy that hedges (lull.Policy.Hedge), a request with an idempotent
// method is sent a second time when its first attempt is slow, and the first answer
// that is no failure is the response: a fast 503 does not beat a slow 200. Each
// attempt has a body of its own, by GetBody. Those that have lost are cancelled, and
// their responses closed, which leaves the winner's body as it is. An
// Idempotency-Key makes a POST repeatable, not hedgeable: a server that is still at
// work on the first answers the second with 409.
//
// # Several endpoints
//
// [WithEndpoints] spreads the attempts at one host over several addresses, by package
// outlier: the less busy of two, those left out for a while that do worse than the
// others, and for a retry or a hedge one that its call has not tried.
//
// # What the caller gets
//
// The last response, whatever its status, with its body unread and Request the
// caller's own; [OutcomeOf] returns how many attempts were made and why they stopped. If
// the last attempt brought no response, a [*lull.Error]; inside the *url.Error of
// http.Client, errors.Is and errors.As find it.
//
// The timeout of an attempt ends with the response's headers, and so does the
// attempt. Policy.Deadline ends there, too: from then on only the caller's context can
// cut the body, or [WithBodyIdleTimeout], if none of it comes for a minute (on in
// [NewClient], off in [New]). While a long
// request body (more than 64 KiB, or of unknown length) makes progress the timeout
// starts anew with each piece: an upload may take up to Policy.Deadline. A response
// without a body need not be closed. What http.DefaultTransport carries passes through:
// upgrades that close one direction before the other, trailers, informational
// responses, streams in both directions. Responses that are not returned are drained, up to 64 KiB and one second, and closed
// before the wait, so that a call that waits holds no connection, and sequential
// retries use one. The caller's request is never changed; the connection pool is
// never flushed.
//
// # What the server sees
//
// From the second attempt on its number, in Lull-Attempt ([WithAttemptHeader]), so
// that retries can be shed first; an attempt beside another carries Lull-Hedge: ?1.
//
// A host whose answers have the header Lull ([AnnounceHeader]), as those of [NewHandler]
// have, sees from then on how long the attempt still waits for the response to begin, in
// milliseconds, in the header Lull-Timeout; nothing if nothing bounds it, and of
// an upload what is left of the caller's deadline. [WithTimeoutHeader] sends it to all
// hosts. Trace context and all else is the same for all attempts. NewHandler is the
// server's end of that: deadlines travel, and one layer retries.
//
// # What net/http does itself
//
// If a connection from the pool is already closed, http.Transport itself repeats the
// request once, without a wait, if it is GET, HEAD, OPTIONS or TRACE, or if nothing of it
// was written. It also repeats HTTP/2 streams that the server refused. lull does not count
// these attempts. It repeats PUT and DELETE itself, as ordinary attempts. http.Client
// follows redirects, and each hop is a call of its own. Request.Cancel ends an attempt and
// its call; during a wait it has an effect only with the next attempt. A context ends both
// at once.
//
// # What it costs
//
// A RoundTrip over a stub that returns at once costs about 90 ns more than the stub
// alone (125 under an http.Client that makes each request anew), and no
// allocation, if nothing bounds it in time. With a timeout of its own an attempt
// costs about 200 ns and two allocations more: a context and a copy of the request. To
// hosts that read the time that is left it costs three more, for the copy's header. (The
// figures for hedging and endpoints are in `go run ./bench`.) A request body is never copied.
package lullhttp
