// Package idempotency carries out requests with an Idempotency-Key once: net/http
// middleware for draft-ietf-httpapi-idempotency-key-header.
//
//	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithScope(account))
//	...
//	mux.Handle("POST /payments", authenticate(keys.Wrap(payments)))
//
// where account returns the caller that authenticate has found ([Scope]).
//
// The rule is: a request is carried out once, or its client learns that nobody knows.
// Where safety and convenience differ, the default is safe. docs/idempotency.md has the
// reasons, the choices that the draft leaves open, and what happens when a process dies.
//
// # What a request with a key gets
//
//	first time                          the handler's response
//	again, when that is done            the same response, Idempotency-Replayed: true
//	again, while it is running          409 in-flight, with Retry-After
//	the key was used for another        422 key-reused
//	the first one was interrupted       409 outcome-unknown, or a handler that resumes
//	the response was not kept           409 response-not-kept
//	the caller's share is used up       429 too-many-keys
//	the store cannot be asked           503 store-unavailable, with Retry-After
//	no key, or a bad or long one        400
//	no caller is known                  400 no-caller
//	the body is too long                413
//
// All of them are problem details (RFC 9457), with the types Problem... as constants.
// X-Should-Retry shows whether to send the request again: clients that know the field
// (lullhttp, and those that Stainless generates) wait for one that is in flight although
// its status is 409, which is final for others.
//
// Keys belong to callers ([Scope]). A caller is its Authorization header unless
// [WithScope] has another function. Two requests are the same if method, path, query,
// caller and body are ([WithPayload]).
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
// Released means that the key is as though it had never been used. A handler that answers
// with one of these statuses after an effect must call [Committed]; one that fails before
// it has had an effect should call [NoEffect].
//
// # The handler
//
// Its request's body is read into memory before it starts; whatever reads or changes
// bodies belongs inside. Its context does not end with the client's connection
// (Config.FollowClient): the client that comes back finds a response, not half a
// payment. Its response is held back until it is stored. One that is flushed, hijacked
// or longer than Config.MaxResponse is sent as it is written, and the request is never run
// again either; if the response fits it is replayed even so. A panic is raised again in
// net/http.
//
// Cookies, dates, trailers, headers of one connection, and headers that middleware
// outside has set are not replayed.
//
// # When a process dies
//
// An owner has a lease, so a crash blocks a key for one lease and not for a day. If the
// request may have had its effect, the retry gets 409 outcome-unknown or, under
// Config.Resume, runs the handler again ([Attempt.Resumed]). With Config.Transactional
// the claim, the handler's writes and the record are one transaction of the store
// ([Transactor]), and no outcome is unknown. [Memory] forgets with its process.
//
// A first request costs about 7 µs and 34 allocations with the store in memory, a replay
// 3 µs and 11. docs/idempotency.md has the measurement, and what the package does not do.
package idempotency
