// Package idempotency carries out requests with an Idempotency-Key once: net/http
// middleware for draft-ietf-httpapi-idempotency-key-header.
//
//	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithScope(account))
//	...
//	mux.Handle("POST /payments", authenticate(keys.Wrap(payments)))
//
// where account returns the caller that authenticate has found ([Scope]).
//
// # Why
//
// A client whose connection breaks does not know whether its payment was made. If it
// tries again, it may pay twice; if not, it may not have paid at all. A key that it
// makes once, and sends with all attempts, lets the server tell a second attempt from
// a second payment, and answer it with the first one's response.
//
// That is simple as long as nothing fails, and is there for when something does. So
// the rule here is: a request is carried out once, or its client is told that nobody
// knows. Where safety and convenience differ, the default is safe.
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
// X-Should-Retry says whether it is of use to send the request again: clients that
// know the field (lullhttp, and those that Stainless generates) wait for one that is
// in flight although its status is 409, which others take for final.
//
// # Where the draft leaves a choice
//
// The draft (version 06) wants the key to be a String of Structured Fields, in
// quotes. Most clients send it bare, as Stripe's documentation has it. Both are
// taken, and are the same key ([ParseKey]).
//
// A key used for another request is answered with 422 even while the first is still
// running, where the draft has no order: to wait is of no use to this client.
//
// Two requests are the same if method, path, query, caller and body are, byte by
// byte. Headers do not count, nor does the host. [WithPayload] chooses what of the
// body counts.
//
// Keys belong to callers ([Scope]): the draft recommends it, as otherwise whoever
// guesses a key gets somebody else's response. A caller is its Authorization header
// unless [WithScope] has another function; [SharedScope] is for callers that may see each
// other's responses. A request whose caller is not known gets 400, and the log has a line
// that names the option.
//
// The draft has results replayed, "success or error", and says nothing of errors that
// ask for a retry. Were a 503 recorded that says when to come back, no retry could ever
// succeed; were a 500 not, what failed half-way would be done twice. See below.
//
// # What is recorded
//
//	the handler said                nothing     NoEffect    Committed
//	200 to 499, but for these:      recorded    released    recorded
//	408, 425                        released    released    recorded
//	429, 503 with Retry-After       released    released    recorded
//	500 to 599                      recorded    released    recorded
//	panic                           unknown     released    recorded, without response
//
// Released means that the key is as though it had never been used. The four statuses
// say, by their definitions, that the request was not carried out; but a 429 or 503 may
// be that of a dependency, passed on after an effect, so these must ask for a retry to
// be taken for that. A handler that does so after it has had an effect must call
// [Committed], or Config.Strict must be set. A handler that fails before it has had one should call [NoEffect]: nobody
// else can know, and without it a 500 is all that the key will ever give.
//
// In a run that was resumed, a failure without a declaration leaves the outcome
// unknown: it failed before it could tell what its predecessor did.
//
// # The handler
//
// Its request's body is read into memory before it starts; whatever reads or changes
// bodies belongs inside. Its context does not end with the client's connection
// (Config.FollowClient): the client that comes back finds a response, not half a
// payment. Its response is held back until it is stored. One that is flushed, hijacked
// or longer than Config.MaxResponse goes through as it is written, and is never run
// again either; if it fits it is replayed even so. A panic goes up to net/http.
//
// Cookies, dates, trailers, what belongs to one connection, and what middleware
// outside has set are not replayed.
//
// # The crash window
//
// Between the effect and its record there is a moment in which a process can die.
// Nothing outside of the effect's own transaction can close it. What can be done is
// to notice.
//
// An owner has a lease, which is extended for as long as its handler runs and ends by
// the store's clock when it dies. The record has a time of its own. So a crash blocks
// a key for one lease, not for a day, and what follows is not taken for a new request
// but for one whose outcome is unknown: 409 by default, or, under Config.Resume, a
// handler that is told and finds out ([Attempt.Resumed]). Killed with SIGKILL at each
// step, and asked again by way of another process (storetest.Matrix):
//
//	killed            effects   retry                  under Resume
//	before claim      0         carried out            carried out
//	after claim       0         409 outcome-unknown    resumed
//	before effect     0         409 outcome-unknown    resumed
//	after effect      1         409 outcome-unknown    resumed
//	after handler     1         409 outcome-unknown    resumed
//	after complete    1         replayed               replayed
//	after response    1         replayed               replayed
//
// Every owner has a token of its own, made at random, and the store lets only the
// present one write: one that was thought dead and comes back cannot overwrite,
// extend or release what its successor has. Tokens are not numbered, so that one who
// held a key that was since released and claimed anew is not mistaken for its owner.
// The handler's context ends with the cause [ErrFenced] or [ErrLeaseLost]. What a late
// owner does elsewhere no token can undo: under Resume, write [Attempt.Token] beside
// the effect, or make effects that bear to be made twice.
//
// The token is made before the claim, so a claim whose answer was lost can be made
// again, or taken back. A store that cannot be reached when the handler is done is
// tried again in the background, for ten leases; the client has its response by then.
//
// With Config.Transactional the claim, the handler's writes and the record are one
// transaction of the store ([Transactor]): no unknown outcomes, for effects inside
// that database. A response of 4xx is committed with its record; undo what it should
// not leave with a savepoint.
//
// An operator who has found out what became of an unknown outcome deletes the entry in
// the store, under the name that [StoreKey] gives, or leaves it until Retention is over.
//
// # What a store promises
//
// [Memory] forgets with its process, and refuses new keys when it is full. No caller can
// fill it for the others: none holds more than is left (MemoryConfig). A store on
// disk or on a server keeps what that keeps: entries on one disk are gone with it; a
// replica that takes over without the latest writes has lost claims, and requests may
// then run twice; a database that has acknowledged a commit has it. The documentation
// of each store says so. [Store] is the contract, and package storetest its tests.
//
// # What it costs
//
// With the store in memory, a body of 100 bytes and a response of 2 KiB, a first
// request takes about 7 µs and 34 allocations more than the handler alone, a replay 3 µs
// and 11 (go test -bench . ./idempotency). That is two calls to the store for a first
// request, one for any other, and one more for each third of a lease that the handler
// runs; no goroutine, but a timer. Memory: the request's body and the response, up to
// their limits.
//
// # What it does not do
//
// It does not make a key for a client that sends none, does not protect effects that a
// handler has after it has returned, and does not order requests. It does not wait
// for a request in flight: that would hold a connection, and the client can wait as
// well. PUT and DELETE need no key; if they bring one it is honoured.
package idempotency
