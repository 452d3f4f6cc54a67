// Package breaker is a circuit breaker: it learns from the calls made to a
// dependency, stops making them when all of them fail, and lets one through from
// time to time to see whether it may go on.
//
// # Why
//
// A dependency that has collapsed under load is kept down by the calls that go
// on arriving, whose callers have long given up. A caller that waits for a
// time-out each time is not helped by asking, and holds a connection and a
// goroutine while it does. Failing at once is better for both. A retry budget
// bounds what retries add; a breaker takes away first attempts as well, and so
// lets a queue drain that no budget can.
//
// So it saves two things: the callers' waiting, and a queue's dead work. Where
// failures return at once there is neither to save, and a breaker that stays open
// then only adds to the outage. Nor is there anything to gain where a part of the
// calls succeeds: refusing all makes a partial outage a total one. The default
// rules follow from that.
//
// # States
//
// Closed: calls pass. Open: calls are refused, for a time that is spread by
// chance, so that a fleet does not come back in step. Half-open: Config.Probes
// calls pass at a time. As many successes in a row close the breaker, one failure
// opens it again, and so does a probe that was never reported, after
// Config.ProbeTimeout: a caller that panicked or forgot cannot leave the breaker
// half-open for ever. A stream, which may be silent for as long as it likes, is a probe
// that keeps no other out ([Breaker.StartStream]); where nothing but streams comes, one
// that was accepted and has not failed for as long is a success. Each change of state begins a new generation, and the
// result of a call counts only in the generation in which the call started: a
// success from before the outage does not close a breaker, nor does a failure
// from then open one that has just closed.
//
// # What opens it
//
// Nothing but failures for two seconds, and at least three of them:
//
//	failures in a row ≥ Consecutive,  end of the last - end of the first ≥ ConsecutiveFor
//
// A success at any time starts the row over; a neutral call is not there. The
// rule fits any rate of calls without a window to choose. A process with a
// thousand calls a second notices an outage two seconds after the first failure,
// one that calls every 12 s with its third failed call.
//
// Within ten seconds (Config.Window) of having closed, nine failures in a row over a
// tenth of that time are enough: what begins again is a relapse, and a process with
// many calls need not watch it for as long. Without that, an overload that lasts
// fills the queue anew for two seconds after each closing. In the simulation below,
// one process that makes 2,500 calls/s for 30 s to a server of 1,000 is back 2 to
// 3 s later, and would be after 4 to 5.
//
// A relapse takes no less time than the probe took that closed the breaker. Errors
// may return sooner than successes, and come back alone after each closing; were
// they taken for a relapse, a share of errors after an outage would keep the breaker
// open for ever. In this package's tests (30 % errors after 300 ms, successes after
// 700 ms) it would refuse 64 % of the calls, and refuses none.
//
// # How long it stays open
//
// A part of what the outage has lasted so far, within what its failures cost:
//
//	d = min(age of the outage / 10, 10 × duration of the failed call)
//	open for d to 1.5 d, uniformly, and never longer than OpenMax
//
// The age is counted from the first failure in the row, and on through failed
// probes until the breaker closes; the call is the one that opened it, or the
// probe. The first term makes the end of an outage noticed within a tenth to a
// seventh of its length, with few probes: their number grows with the logarithm
// of the length, as each opening is a part longer than the last. The second is
// for what a probe costs: a process that pauses for ten times as long as its last
// probe took spends less than a tenth of its time on probes, so that a longer
// pause would save next to nothing. Time-outs of a second are tried again after
// 10 to 15 s, errors that take a millisecond after 10 to 15 ms; from then on the
// number of probes grows with the length. With time-outs of a second an outage of
// 30 s takes 11 probes, one of 2 min 22, one of 10 min 58.
//
// The difference, in a simulation of a server of 1,000 requests/s with a queue of
// 10,000, first in, first out, a time-out of 1 s, stalls of 5 to 30 s, and loads
// of 20 to 95 %: how long after the stall all is well again, at worst.
//
//	processes                            1 to 100    1,000      10,000
//	no breaker                                               155-175 s
//	half of at least 20 calls in 10 s,
//	  open for 5 s, doubling up to 30 s    7-28 s    104 s
//	failures in a row, as above               7 s     16 s        45 s
//
// With 100,000 processes each of them makes a call in a hundred seconds, and a
// breaker does neither good nor harm. After errors that return at once, for
// however long, calls succeed again at once.
//
// While it is open, one call passes in sixteen of those that came before it opened, as
// a sample, whatever is in flight. The first that succeeds closes it, and one that fails
// changes nothing. A probe that hangs hides for as long as it hangs that the dependency is
// back; a sample that started later shows it. Samples go by the rate of the row that opened
// the breaker, so that callers who try more often in an outage get no more of them.
//
// [Config].OpenFor gives a fixed time instead, without samples, which doubles with each opening.
//
// # Errors among successes
//
// Independent errors do not open it. In this package's tests, one client with 600
// calls a second, errors that return at once and successes that take 100 ms
// gets through all calls that could succeed at 5, 20, 30 and 90 % errors, and the
// breaker does not open once.
//
// A quiet process sees few calls, and has three failures in a row by chance after
// p³ of its calls, where p is the share of calls that fail: calls, not attempts,
// where there are retries. At 10 % that is one in a thousand. It then is open for
// ten times what the failed call took, fifteen at most, which is next to nothing
// for failures that are fast.
//
// # The share of failed calls
//
// Config.FailureRate opens the breaker at a share of failures, for those who must
// take load off a dependency while it still answers some. Counted in the obvious
// way, calls as they end, this share is wrong exactly when it matters. Failures
// mostly return sooner than successes, so what comes back first after a start,
// after a closing or in a burst are the failures; the successes of the same
// moment are still on their way. The breaker opens, closes, and finds the same
// again.
//
// So calls are counted in the slot of their start. When a call fails after a
// time d, the breaker looks at the calls that started in the window that ended
// with the start of that call:
//
//	share = failed so far / started,   slots (s-Window, s],   s the failed call's start
//
// All of them have had the time d at least in which to fail (those that started
// later in the same slot a little less), so the calls still in flight are rightly
// on the side of those that did not. It opens when started ≥ MinCalls and
// share ≥ FailureRate, compared in integers. Slow calls (Config.SlowRate) are
// judged in the same way. Successes need not be counted at all.
//
// The difference, with the client described above, threshold 50 % of at least 20
// calls in 10 s, open for 30 s, five minutes, mean of twenty runs.
//
//	errors   possible   counting completions   counting starts
//	                    exponential  constant
//	 5 %       95.0 %                 95.0 %        95.0 %
//	20 %       80.0 %     74.4 %      50.0 %        80.0 %
//	30 %       70.0 %     21.1 %       2.3 %        69.3 %
//
// The figures are calls that succeed out of all calls, for successes whose time
// is constant or exponentially distributed; for this package the two agree. What
// is left at 30 % are two openings in twenty runs: with MinCalls 20, the first
// twenty calls hold ten failures in one run of twenty or so. That is chance, not
// bias, and a larger MinCalls buys it off.
//
// The counts reach back eight windows. A call that hangs for up to 55/8 of a
// window (69 s with the default) before it fails is judged by its own time:
// a total hang opens the breaker within a window of the first time-out, even
// when its callers, all waiting, make no new calls; and a few calls that hang
// open nothing, even when traffic has fallen since. A call that hangs for longer
// is counted as though it had started then, among no fewer calls than such
// failures: a total hang still opens the breaker, but so may a few hanging calls
// of a busy time that come back at a quiet one.
//
// An outage that a rate has found is taken to be as old as the window that was
// judged; if the breaker had closed less than a Window before, it is the same
// outage as the last one. A tenth of that is short where a dependency is meant to
// be relieved: use OpenFor with rates.
//
// # Cost
//
// Memory: 144 bytes, and 144 for the rules, which the breakers of a [Plan] share.
// Listeners take 64 from the first change on. A rate takes about 600 more at the
// first call, and 500 more at the first failure, and at the first slow call. With
// the default rules nothing is counted while calls succeed: Start and Done of a
// success together take about 3 ns (one atomic load, and two), of a failure 20,
// with the lock; a refusal takes 4. With a rate a success takes 10 ns, with all
// rules on 14, and a failure 90. None of them allocates, nor does an outage under
// the default rules. With a rate, Start is one atomic load and one atomic add.
// Cores that count into the same word notice it and get counters of their own:
// two cores pay no more than one. A lock is taken for failures in a row, for
// changes of state and for probes. Open, a breaker refuses calls with two loads,
// and half-open, with all probes out, likewise.
//
// # What it does not do
//
// It has no clock: every method takes the time, since an epoch of the caller's
// choosing. Time may go backwards a little from call to call, as it does when
// goroutines read a clock and then race. It starts no goroutine: what a clock
// would bring about (the end of an open time, of a probe's time, of a slot of
// the window) holds from its moment on, and is acted upon when the next call
// comes. So listeners may learn of a transition after the fact.
//
// It knows nothing of errors: the caller decides what is a failure. Failures that
// are the caller's own, such as a cancelled context, should be Neutral.
//
// It does not know of the successes that are still on their way. Where they take
// longer than ConsecutiveFor, and failures return sooner, the failures are alone
// for so long after a start, a pause or a closing. A caller that knows how long
// successes take reports failures with [Breaker.DoneUsually]; others make ConsecutiveFor
// longer than a call may take.
//
// It does not keep quiet for its listeners' sake. Failures that return fast let
// many probes through, each of which is two changes of state: with errors that
// take a millisecond, some 75 probes a second. A listener that writes a log should
// not write all of them.
package breaker
