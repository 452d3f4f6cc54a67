// Package probe grades your own HTTP server: how it treats retries, idempotency keys, overload,
// deadlines and clients that have gone.
//
//	card, err := probe.Run(context.Background(), probe.Target{URL: server.URL}, probe.Options{Cases: cases, Together: 8})
//
// Package torture grades clients. The cards of both are of the same kind. docs/torture.md has what is sent (GETs to the URL, and some
// sixty POSTs with Idempotency-Keys, to no other host or port), what is seen, and what the grades mean. A server does not fail a case about
// what it does not claim. A case that could not be seen is not applicable: its verdict names what would show it.
package probe
