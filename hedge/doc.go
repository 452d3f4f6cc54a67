// Package hedge decides when a second attempt of a call may run beside the first. It may if the
// first takes longer than nearly all others, and if only few calls are late (Dean and Barroso,
// "The Tail at Scale", Communications of the ACM 56(2), 2013). Hedging is for calls that are
// safe to carry out twice. So the zero [Config] is off, and Config{Attempts: 2} is on.
//
// A hedge is sent at the 95th percentile of the latencies of first attempts. It is learned from
// the last 30 s, with an error of 1/32 at most; attempts that were cut short count as longer
// than they took (the estimate of Kaplan and Meier). If late calls > Share × calls in the last
// second, or in the last 2, 4 or 8 seconds if there are few calls, no hedge is sent.
//
// For each call that may be hedged, call Start when its first attempt starts. If Flight.Delay
// returns a delay, set a timer for it. When it fires and no attempt has succeeded, call Fire.
// If the result is Granted, send another attempt, and set the timer again if Delay still
// returns a delay. Call Settle when a granted attempt has ended, and Done when the first
// attempt has ended or was cut short. An error of one attempt is no reason to give up the
// others. Time is a duration since any epoch, the same for all calls of a Hedger. It may go
// backwards a little between goroutines.
//
// A call that is not late takes 18 ns. A Hedger takes 40 bytes while calls are few, and 34 KB
// at most. The page docs/mechanisms.md has the argument, the formulas, the measurements and the
// settings that are like those of gRPC, Finagle and Polly.
package hedge
