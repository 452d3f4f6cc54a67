// Package idempotency carries out requests with an Idempotency-Key once. It is middleware
// for net/http, and follows draft-ietf-httpapi-idempotency-key-header.
//
//	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithScope(account))
//	...
//	mux.Handle("POST /payments", authenticate(keys.Wrap(payments)))
//
// Here account returns the caller that authenticate has found ([Scope]).
//
// The rule is: a request is carried out once, or its client learns that nobody knows.
// Where safety and convenience differ, the default is safe. docs/servers.md has the
// reasons, the choices that the draft leaves open, and what happens when a process dies.
//
// # What a request with a key gets
//
//	first time                          the handler's response
//	again, after the first is done      the same response, Idempotency-Replayed: true
//	again, while the first is running   409 in-flight, with Retry-After
//	the key had another request         422 key-reused
//	the first was interrupted           409 outcome-unknown, or a handler that resumes
//	the response was not kept           409 response-not-kept
//	the caller has too many keys        429 too-many-keys
//	the store does not answer           503 store-unavailable, with Retry-After
//	no key, or a bad or long one        400
//	no caller is known                  400 no-caller
//	the body is too long                413
//
// All errors are problem details (RFC 9457). The constants Problem... have their types. The
// field X-Should-Retry shows whether to send the request again. Clients that know the field
// (lullhttp, and those that Stainless generates) wait while the first request is in flight.
// Other clients take its status, 409, as final.
//
// Keys belong to callers ([Scope]). A caller is the value of the Authorization header, unless
// [WithScope] has another function. Two requests are the same if they have the same method,
// path, query, caller and body ([WithPayload]).
//
// # What is recorded
//
//	the handler answered            and no more NoEffect    Committed
//	200 to 499, but for these:      recorded    released    recorded
//	408, 425                        released    released    recorded
//	429, 503 with Retry-After       released    released    recorded
//	500 to 599                      recorded    released    recorded
//	panic                           unknown     released    recorded, without response
//
// Released means that the key can be used again, as if it were new. The second column is for
// a handler that calls neither [NoEffect] nor [Committed]. A handler that answers with a
// released status after an effect must call Committed. A handler that fails before any
// effect should call NoEffect.
//
// # The handler
//
// The body of the request is read into memory before the handler starts. So middleware that
// reads or changes bodies belongs inside of Wrap. The context of the handler does not end
// with the client's connection (Config.FollowClient). A client that comes back finds a
// response, not half a payment.
//
// The response is held back until it is stored. A response that is flushed, hijacked or
// longer than Config.MaxResponse is sent while it is written. Such a request is not run again
// either. Its response is replayed if it fits into Config.MaxResponse. A panic of the handler
// is raised again in net/http.
//
// Some headers are not replayed: cookies, dates, trailers, headers of one connection, and
// headers that middleware outside of Wrap has set.
//
// # When a process dies
//
// The process that runs a request has a lease on its key. So a crash blocks the key for one
// lease, not for a day. If the request may have had its effect, a retry gets 409
// outcome-unknown. Under Config.Resume it runs the handler again instead
// ([Attempt.Resumed]). With Config.Transactional the claim, the handler's writes and the
// record are one transaction of the store ([Transactor]). Then no outcome is unknown.
// A store that stands still makes no outcome unknown: a claim whose answer was lost is taken
// back. [Memory] loses its keys when its process ends.
//
// A first request costs about 7 µs and 34 allocations with the store in memory. A replay
// costs 3 µs and 11 allocations. docs/servers.md has the measurement, and what the
// package does not do.
package idempotency
