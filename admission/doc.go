// Package admission is the server's half of not making an outage worse: it decides which
// requests a server works on, refuses the others early, and tells them what to do.
//
//	m, err := admission.NewMiddleware(admission.Config{})
//	...
//	http.ListenAndServe(addr, m.Handler(mux))
//
// # Why
//
// A server that takes whatever comes does, under overload, work for callers that have
// gone: its queue has become longer than their patience. They come back, and so it stays.
// In this package's tests a server of 4 workers, 20 ms each, gets three times what it can
// do, from callers that wait for 500 ms and make up to four attempts: less than a
// twentieth of what it could do is of use to anybody. The program examples/overload does
// the same on real sockets, with three attempts and 300 ms. Three runs, on two cores that
// had much else to do, which makes an overload of its own:
//
//	                                       goodput         p99                   attempts a call
//	no admission control, naive clients     0,  0,  0 %    6198, 5776, 5738 ms   2.83, 2.97, 3.02
//	admission control, naive clients       82, 92, 92 %     331,   56,   55 ms   2.65, 2.42, 2.38
//	admission control, clients that obey   97, 97, 94 %      81,   69,  109 ms   1.00, 1.00, 1.00
//
// # What is decided
//
// A request is admitted if fewer are in flight than the limit. Else it waits, not for
// long, and not if it would be served too late:
//
//   - Calm, the wait is at most MaxWait, and first come is first served: that smooths a
//     burst. When requests have waited, or were refused, for as long as that, there is
//     pressure, which is no burst: the newest is served first, since the oldest is the
//     one whose caller goes next, and the wait is at most PressedWait. (CoDel, RFC 8289;
//     adaptive LIFO and controlled delay in Maurer, "Fail at scale", ACM Queue 13(8),
//     2015, whose 100 ms and 5 ms are the defaults here, stretched for slow requests.)
//   - Work is not begun if its deadline is nearer than half of the recent requests have
//     taken, nor if its caller has gone.
//   - Of those that wait, the highest Priority goes first, and makes room last. Of equal
//     priority, first attempts go before retries. Hedges do not wait at all.
//   - Under pressure retries are refused at once, unless they are CriticalPlus: the
//     capacity is for calls that have had no attempt yet.
//   - Retries and hedges beyond a fifth of the first attempts are refused at any time
//     (RetryRatio): "overloaded; don't retry" is what the SRE book (chapter 21) has a
//     server answer that sees many of them.
//
// # What a refusal says
//
// Everybody is told when to come back, each a little later than the one before, so that
// what comes back is what can be served, plus up to a half by chance. Where coming back
// makes no sense, because it was a retry already, or pressure has lasted for ten times
// MaxWait, it also says not to. In HTTP that is 503, Retry-After, X-Should-Retry: false,
// and a problem of type lullhttp.ProblemOverloaded; for gRPC, [Decision.Pushback] is what to send
// as grpc-retry-pushback-ms (gRFC A6), and [Gate] what an interceptor waits at.
//
// # The limit
//
// How many requests at a time are enough depends on what nobody configures rightly: how
// many workers there are, here or in what is called from here. The limit is found by
// comparing the throughput at the limit with that at half of it (or at half as much
// again); the formula, and where it comes from, is in limit.go:
//
//	knee = half × throughput / throughput at half,  limit = knee + max(knee/5, √knee)
//
// What that is good for: goodput as a share of the capacity, exponential times of 20 ms,
// three times the load, four attempts a call, and a patience of 200 ms that callers do not
// send along. Then all takes five times as long for 30 s, and then not. The others are
// those of Netflix' concurrency-limits, written anew, with windows of a second as its
// authors recommend; they stand in this package's queue, so the limit is all the
// difference. (go test -v -run Rivals)
//
//	                           4 workers               40 workers
//	                           before  slow  after     before  slow  after
//	this package                0.98   0.66  0.96       0.96   0.80  0.94
//	fixed, number of workers    0.99   0.81  1.00       1.00   0.86  1.00
//	fixed, five times that      1.02   0.01  1.00       1.00   0.01  0.99
//	Vegas                       0.99   0.86  1.00       0.18   0.11  0.13
//	Gradient2                   0.85   0.01  0.89       0.88   0.51  0.68
//	Gradient2, least limit 1    0.85   0.09  0.94       0.88   0.41  0.42
//
// (Of work that takes 100 ms at exponential times, a seventh takes more than 200 ms, and
// no limit helps that.) Where callers send their deadlines it is 0.90 to 0.99 while slow,
// with 4 and with 50 workers. Who knows the right number, and that it stays, should set it.
//
// A comparison costs: while the half is tried, up to half of the throughput. It is made
// only where half as many again in flight have achieved nothing, which is overload; it
// lasts for some rounds of requests, and is made ever less often while the outcome is the
// same, up to 32 times its own length apart. In the steady state that is one to three
// percent of the capacity.
//
// A server that is not overloaded is to be left alone. In lull's simulator, before 100
// workers of 100 ms each, the limit is out of the way within three seconds of the start at
// two tenths to nine tenths of the capacity, and stays so; in those seconds, from 8 on,
// calls are refused (lull simulate admission --policy none --set warmup=0s --set
// fleets.0.arrivals.rate=800). Where requests take long, and a start should refuse
// nobody, set Initial.
//
// # Which attempt it is
//
// Clients say so: lullhttp.ParseAttempt, lullhttp.ParseHedge. They may lie, and whoever does has the place of
// a first attempt, as if this package did not look. A Priority is not believed, as it
// takes from others, until [WithTrust] says whom to believe; [WithPriority] is for one that
// the server finds out itself. At an edge nothing should be believed:
// WithTrust(lullhttp.TrustNobody).
//
// # Cost
//
// A request that is admitted at once costs about 75 ns, Arrive and Depart together, 80
// when two cores do nothing else, and no allocation; a refusal 35 ns. There is one lock,
// held for less than that: limit, queue and pressure must agree, and a server that works
// for 20 µs on a request would need a hundred cores to feel it. As HTTP middleware it is
// 250 ns and 2 allocations of 88 bytes, for two readings of the clock, nine headers, and the
// wrapped ResponseWriter. A Controller takes about 1 KiB, and a request that waits 200
// bytes, a timer and its goroutine: MaxQueue bounds them. (The
// least of eight runs on a busy machine: go test -bench . -count 8)
//
// # What it does not do
//
// It has no clock (but for Gate and Middleware), starts no goroutine, and draws no chance
// but that handed in. It does not know what a request costs: one limit for requests of
// 1 ms and of 10 s is a compromise, and two Controllers are better. What is long by
// design (event streams, long polls) should pass by ([WithSkip]). Where requests vary
// widely (log-normal, with a σ of 1.5), a small limit is found with errors: in the first
// minute goodput is 83 % of the capacity of two workers, and 89 % of four. It looks at
// neither CPU nor memory, but at what comes of having more in flight: a server that runs
// out of memory before it gets slower should have a Max, or a Limit.
//
// It does not notice that an HTTP caller has gone before the request's body was read.
package admission
