// Package outlier chooses an endpoint for each call, learns from how the call ended,
// and leaves out for a while the endpoints that do worse than the others.
//
// # Why
//
// Of three endpoints of a service one is sick: its disk is full, its process has come
// back without its configuration, its host drops packets. A third of all calls fails.
// A retry hides most of that and pays for it each time, with a budget that was meant
// for other days. A breaker sees a third of the calls fail and must not open, for it
// would refuse the two thirds that are well. What helps is not to call the sick one.
//
// The caller is who can tell. A health check asks another question, from another
// place, and is answered with 200 by a process that fails whatever it is really asked
// for (Huang and others, "Gray Failure: The Achilles' Heel of Cloud-Scale Systems",
// HotOS 2017). The caller has the results of real calls, and has them for all endpoints
// in the same minute. So what it can see is not only that one fails but that the others
// do not; and that is the difference between a sick endpoint, where ejection helps, and
// a sick service, where it takes away endpoints and heals nothing.
//
// It is urgent, too. An endpoint that fails at once never is busy, and whoever prefers
// endpoints that are not busy prefers that one. In this package's tests a dead endpoint
// of three draws 66 % of the calls by two choices and 89 % by least load, as long as
// nobody ejects it; with the default rules it gets 0.7 % of the calls of 20 s.
//
// # What is judged
//
// Everything is a comparison with the others, by default. There are two ways to be
// found, and neither looks at an endpoint's failures alone.
//
// A row of failures, at once. From Config.Consecutive (5) failures without a success
// between them an endpoint is judged by them, against what became of the calls to the
// others since the row's second failure. This finds the dead, within few calls.
//
// The success rate, at each sweep, ten times an Interval (10 s). Endpoints with
// Config.MinCalls (5) in the last Interval are each held against all others of them.
// This finds those that fail some of their calls. It ejects if
//
//	rate < median - max(Factor × 1.4826 × MAD, Floor),   Factor 3.5, Floor 0.2
//
// where median is that of the others' success rates, and MAD the median of how far
// they lie from it. The Floor is what a row must be worse by as well, than the rate of
// all the others' calls together: a difference of less than 20 points is not worth a
// smaller set.
//
// Neither ejects anybody for what may be chance. Given the endpoint's results and its
// peers' (those others that lie above the threshold), it asks how much likelier they
// are if the endpoint has a share of failures of its own than if all have the same:
//
//	ln Λ = ℓ(endpoint) + ℓ(peers) - ℓ(both),   ℓ = f ln(f/n) + (n-f) ln(1 - f/n)
//
// for f failures of n calls: the likelihood ratio (Wilks, "The large-sample
// distribution of the likelihood ratio for testing composite hypotheses", Annals of
// Mathematical Statistics 9, 1938). Where all have the same share, Λ exceeds x no more
// often than once in x times. It must exceed 1000 × the square of the number of
// endpoints, or for a row 1000 × calls in the last interval × endpoints, as any call may
// begin one: so that a whole set finds one that is none in about one interval of a
// thousand at worst. (Simulated, with 2 to 20 endpoints that all fail 10 to 90 % of 1 to
// 20 calls a second each: in 46 of 154,000 intervals. At worst, with two endpoints that
// fail half of one call a second, in 17 of 15,000.)
//
// What that comes to, in this package's tests. A dead endpoint, the others well, is
// ejected after so many failures:
//
//	calls in the interval, to all    100   1,000   10,000
//	2 endpoints                       10      12       14
//	3 endpoints                        8       9       10
//	10 endpoints                       5       6        7
//
// and one whose rate is low when each has had so many calls:
//
//	                    fails half   fails 30 %
//	2 endpoints                 20           40
//	3 endpoints                 20           30
//	10 endpoints                10           20
//
// One that fails half of its calls, with five calls a second, is out after 4.5 to 5.5 s
// on average. If one call in a hundred fails, everywhere, nobody is ejected, at 0.5 to
// 50 calls a second each. Where all fail 10 to 90 % of their calls less than one
// hundredth of the time is spent in ejection; where all fail all calls, for a minute,
// as errors or as time-outs, nobody is ejected, and all are there when it is over.
//
// # Why median and MAD
//
// Envoy and gRPC eject below mean - 1.9 × standard deviation of all rates. Both are
// made of the very rates that they are to judge: one sick endpoint pulls the mean
// down and the deviation up, and two hide each other. Nine endpoints, two of which fail
// half of their calls (TestTwoSickEndpointsDoNotHideEachOther):
//
//	                            usual    spread    threshold   the sick
//	mean, 1.9 deviations       88.9 %      20.8       49.4 %       50 %   not found
//	median, 3.5 × 1.4826 MAD    100 %         0         80 %       50 %   both found
//
// (The one alone would be below: 64.6 %.) It does not help that they are sicker. Of
// equally sick endpoints, however sick, mean and deviation see none if they are
// 1/(1+1.9²) of all or more: 21.7 %, such as two of nine. The median and the MAD hardly
// move until half of the values have.
//
// The MAD of normally distributed values is 1/1.4826 of their standard deviation. To
// take values further than 3.5 such deviations from the median for outliers is what
// Iglewicz and Hoaglin propose ("How to Detect and Handle Outliers", ASQC Basic
// References in Quality Control 16, 1993). An endpoint is held against the others
// alone, not against a set that it is in, so that two are enough to compare. The MAD
// of endpoints that are well is mostly near zero, and would make every small
// difference an outlier; that is what the Floor is for.
//
// # Failures that return first
//
// Failures mostly return sooner than successes, so what is seen first of an endpoint
// that has just come, or come back, are its failures. Judged by the calls that have
// ended it would never stay. So calls that are under way count as calls that have not
// failed, as many as are more than at the start of the row or the interval. A service
// where 30 % of the calls fail after 1 ms and the others take 5 s takes in a new
// endpoint, in the tests, which does not get ejected; and results of calls that began
// before an ejection do not count after it.
//
// # How long, and how many
//
// The first ejection lasts BaseEjection (30 s), the second twice that, and so on up to
// MaxEjection (300 s), plus a Jitter of up to a tenth of BaseEjection so that a fleet
// does not come back in step. Each Interval in which the endpoint has stayed in takes
// one step back. It comes back with the first sweep after its time, is judged anew,
// and if it is still sick is out again within the figures above: that is the probe.
// What it costs is a few calls in 30 s at first, and in 300 s in the end.
//
// At most MaxEjected (50 %) of the endpoints are out at a time, or one of three
// ([Limit] has the other readings), and never the last. Those that are left must
// carry the load: a set that cannot do with half should say less. When there is no room
// for all that are found, the worst of a sweep go first. Should no endpoint be healthy,
// or a smaller share than Config.Panic, Pick chooses among all: to be refused by a sick
// one is no worse than to have none, and it might be well again.
//
// # The choice
//
// Pick draws two of the healthy endpoints and takes the one with fewer calls under way
// (Mitzenmacher, "The power of two choices in randomized load balancing", IEEE
// Transactions on Parallel and Distributed Systems 12(10), 2001). If n calls go to n
// endpoints, the busiest gets about log n / log log n of them by one draw, and
// log log n / log 2 by two. To look at all, LeastLoaded, is a little better still, costs
// a look at each, and is drawn most to an endpoint that fails at once. LeastTime is for
// endpoints that are near and far: of 50 calls a second one that takes 80 ms gets 2 %,
// beside one that takes 10 ms; by two choices it is 25 %. RoundRobin is for who wants to
// know beforehand.
//
// A retry of the same call goes to another endpoint: what made the first attempt fail
// is likelier to be the endpoint's than everybody's, and to ask it again is what a
// retry is not for. Pick avoids what is in a [Tried], and where all were tried takes
// the one that was tried longest ago. It never goes to an ejected one for that.
//
// # What it assumes
//
// That the endpoints can do the same work and get the same kind of calls. If one is
// given all calls of one kind, because calls are dealt by key, say, and that kind fails,
// the endpoint seems sick.
//
// That results are independent, and are the endpoint's. Failures that the caller or
// the request has caused are Neutral; a client that sends a hundred bad requests in a
// row to whoever is chosen does no harm, one that is pinned to an endpoint does.
//
// That each Pick is followed by one Done, whatever happens in between. A forgotten call
// is under way for ever, and makes the endpoint look busy.
//
// # Cost
//
// Pick and Done of a success together take 23 ns with three endpoints (a few atomic
// loads, and two atomic writes) and 29 with a hundred; by LeastTime 27, by RoundRobin 24, by
// LeastLoaded 24 and 170. A second attempt that avoids the first takes 10 ns more with
// three endpoints and 20 with a hundred. A failure takes 20 ns more. One that makes a row
// two long, or long enough to be judged, takes a lock and goes over all endpoints: 0.4 µs
// for three, 1.2 for a hundred. A sweep takes 0.2 µs for three endpoints, 9 for a
// hundred and 130 for a thousand; one goroutine makes it, and the others go on meanwhile.
// A success waits for no lock, but for one in a thousand that find others at the same
// word. Nothing is allocated but by Update, by changes of who is healthy, and by the
// first sweeps.
//
// Where cores often take a word from each other, it is dealt out among them: two cores
// make a call each 21 ns between them, and 17 if each has a set of its own.
//
// A set takes 1 KB, and 740 bytes for each endpoint: 480 with one sweep an Interval, 4 KB
// with a hundred. It takes some 70 more when sweeps have found failures, and once cores
// contend for it 64 for each stripe, of which there are about twice as many as cores.
// An [Endpoint] is 24 bytes, a Tried 36.
//
// # What it does not do
//
// It has no clock: every method is told the time, since an epoch of the caller's
// choosing, which may go backwards a little from call to call. It starts no goroutine.
// A sweep is made by the next call after it was due, as of the moment it was due; a set
// that nobody calls does nothing, and [Set.Status] looks ahead.
//
// It asks nobody: there are no active health checks, and a sick endpoint is found and
// tried by real calls. It knows of no zones, priorities or weights; make a set for each
// zone. It does not dial, resolve or keep connections. It does not eject for being slow:
// that is for LeastLoaded, LeastTime and TwoChoices to balance, and for a time-out to
// make a failure of. Each process judges by its own calls, and does not hear of the
// others'.
//
// # Where it ends
//
// With few calls there is little to see. At one call in five seconds to each endpoint
// a dead one takes up to 100 s to be found, in the tests, and one that fails half of its
// calls may not be found at all: in 10 s it has two calls. A longer Interval helps.
//
// With half of the endpoints sick the median of the others is the worst of those that
// are well, and the MAD their whole spread. They are found still, but where chance
// spreads the rates of those that are well it takes longer. Of ten endpoints, five
// calls a second to each, some fail 60 % and the others 1 % or 10 % of their calls. All
// of the sick are found, nearly all by their rate, and nobody else; on average they are
// out after
//
//	sick               1       2       4       5
//	others fail  1 %   4.2 s   3.9 s   4.6 s    5.3 s
//	others fail 10 %   6.2 s   6.2 s   7.0 s   11.3 s
//
// With more than half sick it is theirs that is the usual rate. Those that are dead are
// found still, most of them by their rows, up to MaxEjected; of six in ten that fail
// 30 % nobody is. That is the limit of all comparison, and then a case for a breaker.
//
// # Other systems
//
// [EnvoyDefaults] is Envoy's outlier detection (envoy.config.cluster.v3.OutlierDetection
// and source/common/upstream/outlier_detection_impl.cc) with its defaults, masking
// and all: Envoy's published cases are among this package's tests. With it a row ejects
// by its length alone, results count whenever their call began, one sweep an Interval
// judges that interval, and all endpoints may be ejected. What differs:
//
//   - Sweeps are at whole multiples of Interval since the epoch, and are made up for by
//     the next call. Envoy's timer runs from when the cluster was made.
//   - When there is not room for all outliers of a sweep the worst go first. Envoy takes
//     them as they stand in a hash table.
//   - A row is acted upon at once. Envoy posts it to its main thread.
//   - With Split a call has one result: no answer, or what it was. Envoy counts the
//     connection as a success of local origin each time a request gets one, and a later
//     time-out as a failure beside it: there time-outs over connections that stand never
//     make a row of ConsecutiveLocal, and are half of the rate at most.
//   - Jitter is drawn in nanoseconds, Envoy's in milliseconds.
//   - RoundRobin has one turn for the set, without weights. Envoy's has one for each
//     worker thread, and weights. Panic is by the set, Envoy's by priority.
//   - Retries avoid what was tried if they hand over a Tried. Envoy needs a
//     retry_host_predicate for that.
//   - There are no active health checks, and so no successful_active_health_check_uneject_host;
//     no monitors (extensions), no detect_degraded_hosts, and no overrides at run time.
//     always_eject_one_host is Limit: AtLeastOne, which also takes endpoints back when the
//     set shrinks.
//
// gRPC's outlier_detection policy (gRFC A50) has the rates and not the rows: it is
// EnvoyDefaults with Consecutive and ConsecutiveGateway -1, Limit RoundUp, Panic 0,
// FailurePercent (zero where failure_percentage_ejection is absent) and Enforce as
// configured, and Statistic NoStatistic where success_rate_ejection is absent. There a
// share of failures must exceed the threshold; here, as in Envoy, it must reach it.
//
// Istio's outlierDetection sets no success rate (Statistic: NoStatistic) and a Panic of
// minHealthPercent, by default 0.
package outlier
