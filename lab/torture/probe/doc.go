// Package probe grades your own HTTP server: how it treats retries, idempotency keys, overload,
// deadlines and clients that have gone.
//
//	card, err := probe.Run(context.Background(), probe.Target{URL: server.URL}, probe.Options{Cases: cases, Together: 8})
//
// Package torture grades clients. The results of both are cards of the same kind.
//
// # What is sent
//
// GETs to the URL, and some sixty POSTs with Idempotency-Keys to it or to another path. The server
// may carry each POST out. [Target.NoPost] sends none. Nothing is sent to another host or port,
// redirects are not followed, and no proxy is used. [Options] bound how many requests are sent in
// all, how many in a second, and how many at once.
//
// # What is seen
//
// Only the server's answers are seen. To grade its refusals, the server must refuse something:
// [Target.Busy] names a path that does, or the server refuses some of [Options.Together] requests
// that come at once. A path that takes a second ([Target.Slow]) shows whether the server stops
// work that nobody waits for. A case that could not be seen is not applicable. Its verdict names
// what would show it.
//
// A server does not fail for what it does not claim. If a key does not change its answers, it
// does not claim Idempotency-Key, and is not graded for it.
//
// # Grades
//
// As in package torture, a fail is for what breaks a specification or does harm, such as a request
// that is carried out twice under one key. A warning is for what is allowed but not recommended,
// such as asking fifty clients to come back at the same moment. A statistical test decides whether
// the server refuses retries more often than first attempts. Its chance of error is below 1 in
// 10,000.
package probe
