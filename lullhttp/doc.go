// Package lullhttp puts lull under an http.Client. A [Transport] is an http.RoundTripper. It
// makes each request as a call under a [lull.Policy], with one [lull.Dependency] for each
// host.
//
//	client, err := lullhttp.NewClient(lull.Policy{})
//	...
//	resp, err := client.Get("https://api.example.com/orders/7")
//
// What a failure means is decided by its type ([ClassifyError]), its status ([ClassifyStatus]) and,
// before both, by what the server asks for ([ParseHint]). GET, HEAD, OPTIONS, TRACE, PUT and DELETE
// are repeated. Other methods are repeated if they carry an Idempotency-Key ([WithIdempotencyKeys]
// makes keys), if an option allows it ([WithRoute], [WithCall]), or if the request was provably
// never sent. The caller gets the last response, whatever its status, with its body unread and with
// the caller's own Request, or a [*lull.Error]. The timeout of an attempt and Policy.Deadline end
// with the header of the response. [NewHandler] is the server's half: only one layer retries.
//
// A RoundTrip over a stub that returns at once costs about 155 ns more than the stub alone,
// and no allocation, if it has no time limit. For a request with three header fields it costs
// 230 ns more. An attempt with a timeout of its own costs about 145 ns and one allocation more
// (BenchmarkRoundTrip), two if the caller has a deadline, too, or the request a body. A POST
// without a key, or with a body that is not in memory, costs one allocation more if it has no
// timeout of its own. A request body is never copied.
//
// docs/protocols.md has the rest, under "HTTP": keys, bodies, hedging, hosts and endpoints, what was never
// sent, failures of the caller's own side, what servers see, and what net/http repeats by itself.
package lullhttp
