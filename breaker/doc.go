// Package breaker is a circuit breaker: it learns from the calls made to a
// dependency, stops making them when most of them fail, and lets a few through
// from time to time to see whether it may go on.
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
// # States
//
// Closed: calls pass and are counted. Open: calls are refused, for a time that
// doubles with each opening up to a limit and is spread by chance, so that a
// fleet does not come back in step. Half-open: Config.Probes calls pass at a
// time. As many successes in a row close the breaker, one failure opens it
// again, and so does a probe that was never reported, after
// Config.ProbeTimeout: a caller that panicked or forgot cannot leave the breaker
// half-open for ever. Each change of state begins a new generation, and the
// result of a call counts only in the generation in which the call started: a
// success from before the outage does not close a breaker, nor does a failure
// from then open one that has just closed.
//
// # What opens it
//
// The share of failed calls. Counted in the obvious way, calls as they end, this
// share is wrong exactly when it matters. Failures mostly return sooner than
// successes, so what comes back first after a start, after a closing or in a
// burst are the failures; the successes of the same moment are still on their
// way. The breaker opens, closes, and finds the same again.
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
// share ≥ FailureRate, compared in integers. Slow calls are judged in the same
// way. Successes need not be counted at all.
//
// The difference, in the simulation of this package's tests: one client, 600
// calls a second, independent errors that return at once, successes that take
// 100 ms, threshold 50 %, open for 30 s, five minutes, mean of twenty runs.
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
// # Cost
//
// Memory: 256 bytes; about 600 more at the first call, and 500 more at the first
// failure, and at the first slow call. Start and Done of a success together take
// about 8 ns, with all rules on 10, a refusal 4, Start and Done of a failure 90;
// none of them allocates. Closed, Start is one atomic load and one atomic add,
// Done of a success one load. Cores that count into the same word notice it and
// get counters of their own: two cores pay no more than one. A lock is taken for
// changes of state and for probes. Open, a breaker refuses calls with two loads,
// and half-open, with all probes out, likewise.
//
// # What it does not do
//
// It has no clock: every method is told the time, since an epoch of the caller's
// choosing. Time may go backwards a little from call to call, as it does when
// goroutines read a clock and then race. It starts no goroutine: what a clock
// would bring about (the end of an open time, of a probe's time, of a slot of
// the window) holds from its moment on, and is acted upon when the next call
// comes. A transition therefore may be told to listeners after the fact.
//
// It knows nothing of errors: the caller says what is a failure. Failures that
// are the caller's own, such as a cancelled context, should be Neutral.
//
// It needs traffic. A process with fewer than MinCalls calls in a window is never
// cut off by a rate, however large the fleet of such processes is.
package breaker
