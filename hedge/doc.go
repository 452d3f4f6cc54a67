// Package hedge decides when a second attempt of a call may run beside the first. It may if the
// first takes longer than nearly all others, and if only few calls are late.
//
// # Why
//
// A service that usually answers in 10 ms may take half a second for one request in fifty,
// because of a pause of the garbage collector, a busy disk or a lost packet. If a second
// request is sent when the first is late, it is mostly quick. The first success is the result,
// and the other attempt is cancelled (Dean and Barroso, "The Tail at Scale", Communications of
// the ACM 56(2), 2013). In this package's tests, 4.6 % more requests lower the p99 from 503 to
// 23 ms.
//
// Hedging is for calls that are safe to carry out twice. So the zero [Config] is off, and
// Config{Attempts: 2} is on.
//
// # When
//
// A hedge is sent at the 95th percentile of the latencies of first attempts. The percentile is
// learned from the last 30 s, with an error of 1/32 at most. Nothing is hedged before there are
// MinSamples successes. An attempt that was cut short because a hedge won has no latency. It is
// only known that its success would have taken longer (the estimate of Kaplan and Meier).
//
// If many calls are late, the service is overloaded, and hedges would double its load. So a
// hedge is sent only if
//
//	late calls ≤ Share × calls
//
// in the last second, or in the last 2, 4 or 8 seconds if there are few calls. While nothing
// is known, a stock of two pays for hedges. Config.InFlight limits the hedges in flight.
//
// The page docs/mechanisms.md has the argument, the formulas, the measurements, and the settings
// that are like those of gRPC, Finagle and Polly.
//
// # Order of use
//
// For each call that may be hedged, call Start when its first attempt starts. If Flight.Delay
// returns a delay, set a timer for it. When it fires and no attempt has succeeded, call Fire.
// If the result is Granted, send another attempt, and set the timer again if Delay still
// returns a delay. Call Settle when a granted attempt has ended, and Done when the first
// attempt has ended or was cut short. An error of one attempt is no reason to give up the
// others.
//
// Time is a duration since any epoch, the same for all calls of a Hedger. It may go backwards
// a little between goroutines.
//
// # Cost
//
// A call that is not late takes 18 ns: Start 10 and Done 9. With a fixed delay it takes 3 ns
// before the first late call, and 10 after that. If hedging is off, or the Hedger is nil, it
// takes 1. Two cores that do nothing else take 37 ns each. Fire takes 200 ns, or 60 if it
// refuses. At most four times a second a Start learns the percentile again, in 1 to 3 µs. No
// call waits for a lock.
//
// A Hedger takes 40 bytes while a process makes fewer than ten calls in eight seconds. After
// that it takes 416 bytes. It also takes 768 bytes for each doubling of the latency that occurs
// among successes, and 768 for each among other results. The most is 34 KB. The first late call
// takes another 600 bytes.
//
// # What it does not do
//
// It has no clock and starts nothing: timers, goroutines and contexts belong to its user. It
// does not choose another host for the second attempt, although that helps most. It does not
// know which calls are safe to repeat, and does not ask a retry budget. It does not
// distinguish operations with different latencies: give each kind a Hedger of its own.
package hedge
