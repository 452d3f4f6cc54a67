// Package budget decides what pays for retries. Longer waits and jitter move retries to another
// time; a budget limits their number. Calls fill an account, and when it is empty, a failure is
// final.
//
// An [Account], the default, has a stock of 2 retries, and a window of a tenth of the calls that
// succeeded in the last half minute. A retry takes one token, a call that succeeds adds 0.1, and
// if a call succeeds after retries, their tokens are given back. Always, from the first call on,
//
//	retries of calls that failed ≤ ratio × calls that succeeded + stock
//
// [Bucket] is the stock alone, without a clock, as in Brooker, "Fixing retries with token
// buckets and circuit breakers" (2022). [Ratio] (Config.Window) is the window alone, as in
// Finagle's RetryBudget; Config.Floor adds retries per second that nobody earned:
//
//	retries ≤ ratio × earned + floor × W
//
// [GRPCThrottle] has gRPC's published rules, and is tested with their published cases. Its
// configuration means what it means there: a zero is a zero, not a default.
//
// Call Begin when a call starts, and Failed after each failed attempt. If a retry is wanted,
// call Withdraw, before the wait and not after it. Call Settle once for each grant, when the
// attempt that it paid for has ended or has been given up. Call End at the end of the call.
// Time is a duration since any epoch, the same for all calls of a Budget. It may run
// backwards a little between goroutines: each implementation takes the latest time that it
// has seen.
//
// End of a healthy call takes 9 ns on an Account, 8 on a Ratio, and 2 on a full Bucket; Withdraw
// 30 to 40 ns if there is a window. A budget knows one process: a large fleet that uses this
// package alone and retries timeouts should set Config.Stock to 1, or use a Ratio. The page
// docs/mechanisms.md has the argument for each rule, the formulas and the measurements.
package budget

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// Class is why a retry is wanted. The quota of the AWS SDKs charges by it (package
// lab/rivals); the budgets of this package charge the same for all.
type Class uint8

const (
	Transient   Class = iota // a failure that another attempt may mend
	Timeout                  // the attempt ran out of time
	RateLimited              // the server asked for fewer requests
)

var classNames = [...]string{"transient", "timeout", "rate_limited"}

// String is the class in lower case, such as "timeout".
func (c Class) String() string { return choice.Name("class", classNames[:], c) }

// A Receipt is the price paid for one retry, in the budget's own unit. Zero
// means that nothing was paid.
type Receipt int64

// A Grant is the answer to Withdraw.
type Grant struct {
	// OK: one more attempt may be made.
	OK bool
	// Receipt is for Settle and, if it is the last of its call, for End.
	Receipt Receipt
	// Exhausted marks the refusal worth an event: the one that began a cooldown
	// or, without cooldowns, that found the budget newly empty. The refusals
	// that follow do not carry it.
	Exhausted bool
	// Until is the end of the cooldown that is in force after a refusal, on the
	// clock of now. Zero: there is none.
	Until time.Duration
}

// A Budget pays for retries. The methods may be called concurrently, never
// block for longer than it takes to count, and never read a clock.
type Budget interface {
	// Begin: a call begins.
	Start(now time.Duration)

	// Failed: an attempt failed in a way that another might mend, whether or
	// not another is wanted. (The gRPC throttle counts these.)
	Failed(now time.Duration)

	// Withdraw asks whether one more attempt may be made, and pays for it at
	// once: a retry that still waits is already counted. rnd returns 64 uniform
	// bits; only a Ratio draws them. It is called at most once, only if a new draw
	// is due, possibly under a lock, so it must not use the budget. A nil rnd acts
	// as one that returns 1<<63, the middle.
	Withdraw(now time.Duration, c Class, rnd func() uint64) Grant

	// Settle: the attempt that r paid for has ended, whatever its result, or
	// will never be made. (Budgets of concurrency count these.)
	Release(now time.Duration, r Receipt)

	// End: the call has ended. last is the receipt of the last retry that it
	// paid for, zero if it paid for none, and retries how many it paid for.
	Done(now time.Duration, success bool, last Receipt, retries int)

	// Balance is the number of retries that the budget would pay for right now,
	// never negative. Below one it may be a probability, over all processes that
	// have this balance.
	Balance(now time.Duration) float64
}

// Refundable is a Budget that takes a payment back. What it was for is a retry that failed on the
// caller's side.
type Refundable interface {
	// Repay puts back what Withdraw has taken for r. It is called after Settle, at most once for
	// each grant, and such a grant is not among those of End.
	Refund(now time.Duration, r Receipt)
}
