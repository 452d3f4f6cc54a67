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
// Where safety and convenience differ, the default is safe. A first request costs about 7 µs
// and 34 allocations with the store in memory, a replay 3 µs and 11 allocations.
//
// docs/servers.md has the rest: what a request gets and what is recorded, what a handler
// should know, the choices that the draft leaves open, and what happens when a process dies.
package idempotency
