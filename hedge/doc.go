// Package hedge decides when a second attempt of a call may run beside the first. It may if the
// first takes longer than nearly all others, and if only few calls are late (Dean and Barroso,
// "The Tail at Scale", Communications of the ACM 56(2), 2013). Hedging is for calls that are
// safe to carry out twice. So the zero [Config] is off, and Config{Attempts: 2} is on.
//
// For each call that may be hedged, call [Hedger.Start] when its first attempt starts, and Done
// when that has ended. If Flight.Delay returns a delay, set a timer for it, and then call Fire.
// An error of one attempt is no reason to give up the others. Time is a duration since any
// epoch; it may go backwards a little between goroutines. A call that is not late takes 18 ns. A
// Hedger takes 40 bytes while calls are few, and 34 KB at most. The page docs/mechanisms.md has
// the argument, the formulas, the measurements, and the settings of gRPC, Finagle and Polly.
package hedge
