// Package hedge decides when a second attempt of a call may run beside the first:
// when the first takes longer than nearly all do, and not when everything is slow.
//
// # Why
//
// Of a service that answers in 10 ms, one request in fifty may take half a second:
// it met a pause of the garbage collector, a busy disk, a lost packet. Whoever needs
// answers from a hundred such requests waits for one of those nearly always:
// 1 - 0.98^100 is 87 %. A second request, sent when the first is late, most likely
// meets nothing of the kind, and its answer is there long before. The first success
// wins, the other attempt is cancelled (Dean and Barroso, "The Tail at Scale",
// Communications of the ACM 56(2), 2013).
//
// In this package's tests a service of 100 servers takes 7 to 13 ms for a request, and
// 50 times as long for one in fifty. Hedges are 4.6 % of the calls, and the p99 of the
// calls falls from 503 to 23 ms, the p99.9 from 637 to 26 ms. The servers are as busy
// as before if they notice that a request was cancelled (less, in fact: 22 instead of
// 40, for it is the long ones that are cancelled), and 4.5 % busier if they do not.
//
// Hedging is for calls that are safe to carry out twice. So it is opt-in: the zero
// [Config] is off, and Config{Attempts: 2} is on.
//
// # When
//
// At the 95th percentile of the latencies of first attempts, as the article proposes:
// then one call in twenty is hedged, whatever the latencies are. The percentile is
// learned, and followed, since a fixed delay is wrong the day the service changes. A
// service that becomes twice as slow, with exponential latencies, has 22 % of its
// calls hedged by a delay that was its p95.
//
// The latencies of the last 30 s are kept in a histogram with buckets of 1/32 and
// less. The percentile is the upper edge of its bucket: it errs by 1/32 at most (below
// 32 µs by 1 µs), and to the late side. In a bucket with many calls that costs a part
// of a point: 4.1 to 5.0 % of the calls were hedged, in the tests, for 5 %. To the early
// side it would cost everything, as where all calls take the same time: all would be
// hedged.
//
// A busy process goes by its last five to ten seconds, as soon as they hold ten times
// Config.MinSamples; a quiet one by as much of the window as it takes. So a process
// with a thousand calls a second follows a change within eight seconds, and one with
// three a second knows a percentile at all. The window is cut into six slots, which are
// forgotten one at a time, by any call that comes next; a process that was idle for a window
// knows nothing, and does not hedge.
//
// Nothing is hedged before there are MinSamples successes: 60 for the p95, three of
// which are expected beyond it. The share of calls that take longer than the k-th of n
// latencies has the distribution Beta(n+1-k, k). With k = ⌈0.95(n+1)⌉ it is 5 % on
// average, and above 10 %, which Share would not let pass, with a chance of 5 % for
// n = 60 (12 % for 20, 2 % for 100).
//
// # What losers show
//
// The first attempt of a call that a hedge has won was cut short, and nobody knows
// how long it would have taken. What is done with it decides how much is hedged in
// the long run. If it is left out, as by a client that records what calls return, the
// slowest are missing from the latencies, the percentile falls, more calls are hedged,
// more are missing. If the time at which it was cut short is taken for its latency,
// and that of losing hedges for theirs (Finagle's BackupRequestFilter records both),
// latencies are kept that nobody had. The share of calls that was hedged in the long run,
// at the p95 and with no other bound, when the latencies of an attempt are
//
//	                                exponential  lognormal  2 % take    half of it is
//	                                                        50 times    in the call
//	losers are left out             9.5-10.2 %   11.5-11.8  6.8-7.0     5.4-5.5
//	their times are latencies       5.2-5.3 %    5.2-5.3    5.1-5.3     5.2
//	they have outlasted their time  4.8-4.9 %    4.8-5.0    4.1-4.5     4.7-4.8
//
// All that is known is that a success would have taken longer, and that can be used as
// it is: in the estimate of Kaplan and Meier ("Nonparametric estimation from incomplete
// observations", Journal of the American Statistical Association 53, 1958). Going up
// from the shortest latency, S starts at 1, and
//
//	S(t) = Π (1 - d(i)/n(i))   over the latencies t(i) up to t,
//
// where d(i) calls succeeded after t(i), and n(i) are those that were seen to get that
// far, whatever became of them later. The percentile p is the first t with
// S(t) ≤ 1-p, and one call more than there was is taken to have outlasted all, which
// makes its mean right for few samples.
//
// From this follows, and is tested, that a loser's time is not a latency. It never
// makes the percentile less, however short it is. It never is the percentile: that is
// always the latency of some success. Cut short beyond the percentile, as attempts
// are, because hedges are sent there, a loser counts as the time that it would have
// taken, whatever that is. So what is learned does not depend on whether calls are hedged: the
// delays learned from the same calls with and without differ by less than 1 %, over
// all latencies above.
//
// It differs from simpler ways in how it follows a change. Exponential latencies become
// slower, all late calls are hedged; the percentile after four and eight seconds, in
// units of the old one:
//
//	                               2 times slower  5 times slower  50 times slower
//	losers' times are latencies    1.35   1.67     2.83   3.89     20.9   33.3
//	losers take for ever           2.23   2.43     6.30   6.14     ∞      ∞
//	they have outlasted their time 1.57   2.06     3.70   5.03     29.1   48.1
//
// An attempt that fails is treated in the same way: it had not succeeded until then. A
// failure that is fast has shown nothing, and moves nothing. One that is late would have
// been cut short had there been a hedge, and counts for the same. Timeouts, and callers
// that go away, likewise.
//
// Losing hedges are not counted, nor winning ones: they exist only where something was
// slow, and hedges are a share of the calls if calls are what is counted.
//
// # When everything is slow
//
// A tail is few calls. When a service is overloaded, all are late, and a hedge for each
// of them would double its load. So a hedge is sent only if, with the call that asks,
//
//	late calls ≤ Share × calls
//
// in the last second; where Share of them is less than four hedges, in the last 2, 4 or
// 8. What is counted are the calls that were late, not those that were hedged. When too
// many are late, then, hedging does not go on at the highest rate allowed: it stops,
// and for as long as they are. In the tests, 2000 calls a second become 50 times as
// slow: in that second 92 calls are hedged, in those that follow none, until the
// percentile has risen. A service that hangs for ten seconds gets 91 hedges, in the
// first of them, for 20,000 calls.
//
// As hedges are late calls, Share also bounds the load that hedging adds:
// in every stretch of time, hedges ≤ Share × (calls in it, and in the eight seconds
// before it).
//
// Where Share of the calls of eight seconds is less than four hedges nothing is known yet:
// they are the first, or few. There a late call is also hedged from a stock of two, into which
// every call that is in time puts Share of one. So the first late call of a process is
// hedged, and a process with a call a minute hedges a tenth of them. If all calls are late
// it hedges two, and then none, however few its calls are.
//
// Share is twice what the percentile leaves, 0.1, since what is late by chance
// varies: of the calls that are late while all is well all are hedged at 300 calls a
// second, 95 % at 100, 93 % at 10, 85 % at 5, and 75 % at 3. More would be slower to
// stop.
//
// The percentile is that of most calls, so a share of bad ones that is larger than what
// it leaves is not the tail any more but a part of what is usual: where 8 % of all
// calls take 50 times as long, that is the p95. They are hedged with a
// Config.Percentile of 0.9, or a MaxDelay.
//
// Config.InFlight is a backstop, for connections and memory. A hundred hedges in flight
// are what Share allows to a thousand calls in flight.
//
// # Other systems
//
// A gRPC hedgingPolicy (gRFC A6) of maxAttempts N and hedgingDelay D is
// Config{Attempts: N, Delay: D, Share: -1, InFlight: -1}, with [AtOnce] for a
// hedgingDelay that is zero or missing. There is no bound in it but retryThrottling,
// which is budget.GRPCThrottle. gRPC takes more than 5 attempts for 5; here that is
// refused. It refuses 1, which here is off. That a failure sends the next attempt at
// once is not here: a failure is the retry loop's.
//
// Finagle's maxExtraLoad m is Config{Attempts: 2, Percentile: 1 - m, Share: m}. With so
// tight a Share half of the late calls find it used up; twice that is the default.
//
// Polly's hedging, with its delay of 2 s and one hedge, is Config{Attempts: 2,
// Delay: 2 * time.Second, Share: -1, InFlight: -1}.
//
// # Order of use
//
// For each call that may be hedged: Start when its first attempt starts. If
// Flight.Delay gives a delay, set a timer for it; when it fires and nothing has
// succeeded, ask Fire, and if that is Granted send another attempt, and set the timer
// again if Delay still gives one. Settle for each that was granted, when it has ended.
// Done when the first attempt has ended, by itself or by force. An attempt's error is
// no reason to give up the others.
//
// Time is a duration since any epoch, the same for all calls of a Hedger. It may run
// backwards a little between goroutines.
//
// # Cost
//
// A call that is not late takes 18 ns: Start 10 (two atomic loads and an add) and Done
// 9 (three loads and an add). With a fixed delay it is 3 ns before the first late call
// and 10 after that, and off, or nil, 1. Two cores that do nothing else pay 37 ns each.
// Fire takes 200 ns, 60 if it refuses. Four times a second at most one of the calls to
// Start learns the percentile anew: 1 to 3 µs. No lock is waited for, and nothing is
// allocated but what follows.
//
// A Hedger takes 40 bytes, and no more while a process makes fewer than ten calls in
// eight seconds. From then on it takes 416, and 768 for each doubling in which there are
// latencies, one for successes and one for others: 8 KB where they spread over a
// factor of a hundred, 34 KB at most. The first late call takes another 600. A nil
// Hedger is off, so that who never hedges pays for a pointer.
//
// # What it does not do
//
// It has no clock and starts nothing: timers, goroutines and contexts are its user's.
// It does not send the second attempt elsewhere, though that is when it helps most. It
// does not know which calls are safe to repeat, does not ask a retry budget, and does
// not distinguish operations with different latencies: give each kind a Hedger of its
// own, or the percentile of all is that of the slow kind.
package hedge
