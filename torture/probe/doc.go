// Package probe grades an HTTP server that one owns: what it does with retries, idempotency
// keys, overload, deadlines and clients that have gone.
//
//	card, err := probe.Run(ctx, probe.Target{URL: "https://api.example.com/orders"}, probe.Options{})
//
// It is the other half of package torture, which grades clients, and gives the same cards.
//
// # What is sent
//
// GETs to the URL, and POSTs with Idempotency-Keys to it or to another path. Each POST may be
// carried out: some sixty of them ([Target.NoPost] sends none). Nothing is sent to another
// host or port, redirects are not followed, and no proxy is used. [Options] bound how many
// requests are made, how many a second, and how many at once.
//
// # What is seen
//
// A server is a closed box. Refusals are seen if it refuses: [Target.Busy] names a path that
// does, or [Options.Together] requests at once make it. Whether it stops work that nobody
// waits for is seen on a path that takes a second ([Target.Slow]). What could not be seen is
// not applicable, and the verdict names what would show it.
//
// A server is not failed for what it does not claim: one that ignores Idempotency-Key altogether
// is not graded by it. It claims it if a key changes what it answers.
//
// # Grades
//
// As in package torture: a fail breaks a specification or does harm (a request carried
// out twice under one key), a warning is allowed but not recommended (fifty clients that are
// all asked to come back at the same moment). Whether retries are refused more often than first
// attempts is decided by a test with a chance of error below 1 in 10,000.
package probe
