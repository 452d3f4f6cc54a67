// Package budget decides what pays for retries. Longer waits and jitter move retries to another
// time; a budget limits their number. Calls fill an account, and if it is empty, a failure is
// final.
//
// [Account] is the default: a stock of 20 retries, and a window of a tenth of the calls that
// succeeded in the last half minute. [Bucket] is the stock alone, [Ratio] the window alone, and
// [GRPCThrottle] has gRPC's rules. [Budget] has the order of the calls. Done for a success takes
// 9 ns on an Account, 8 on a Ratio and 2 on a full Bucket, Withdraw 30 to 40 ns with a window.
// A budget knows one process: a large fleet that uses this package alone and retries timeouts
// should set Config.Stock to 1, or use a Ratio. The page docs/mechanisms.md has the argument for
// each rule, the formulas and their sources, and the measurements.
package budget

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// Class is why a retry is wanted. The budgets of this package charge the same for all; the
// quota of the AWS SDKs (lab/rivals) does not.
type Class uint8

const (
	Transient   Class = iota // a failure that another attempt may mend
	Timeout                  // the attempt ran out of time
	RateLimited              // the server asked for fewer requests
)

var classNames = [...]string{"transient", "timeout", "rate_limited"}

// String is the class in lower case, such as "timeout".
func (c Class) String() string { return choice.Name("class", classNames[:], c) }

// A Receipt is the price of one retry, in the budget's own unit. Zero: nothing was paid.
type Receipt int64

// A Grant is the answer to Withdraw.
type Grant struct {
	// OK: one more attempt may be made.
	OK bool
	// Receipt is for Release and, if it is the last of its call, for Done.
	Receipt Receipt
	// Exhausted marks a refusal that is worth an event: the first after a grant, or one
	// that begins a cooldown.
	Exhausted bool
	// Until is the end of the cooldown after a refusal. Zero: there is none.
	Until time.Duration
}

// A Budget pays for retries. For each call: Start when it starts; Failed after each failed
// attempt; Withdraw if a retry is wanted, before the wait; Release once for each grant;
// Done at the end. Time is a duration since any epoch, the same for all calls; it may go
// backwards a little between goroutines. The methods may be called concurrently, and do not
// block.
type Budget interface {
	// Start: a call starts.
	Start(now time.Duration)

	// Failed: an attempt failed, and another might succeed, whether one is wanted or not.
	// (The gRPC throttle counts these.)
	Failed(now time.Duration)

	// Withdraw asks for one more attempt, and pays for it at once. rnd returns 64 uniform
	// bits; nil stands for the middle of the range. Only a Ratio calls it, at most once,
	// possibly under a lock, so it must not use the budget.
	Withdraw(now time.Duration, c Class, rnd func() uint64) Grant

	// Release: the attempt that r paid for has ended, or will not be made. (Budgets of
	// concurrency count these.)
	Release(now time.Duration, r Receipt)

	// Done: the call has ended. last is the receipt of its last paid retry, zero if there
	// was none, and retries how many were paid.
	Done(now time.Duration, success bool, last Receipt, retries int)

	// Balance returns how many retries the budget would pay for now. Below one it may be a
	// probability, over all processes with this balance.
	Balance(now time.Duration) float64
}

// Refundable is a Budget that takes a payment back, because the retry failed on the
// caller's side.
type Refundable interface {
	// Refund puts back what Withdraw took for r. It is called after Release, at most once
	// for each grant. A refunded grant is not among those of Done.
	Refund(now time.Duration, r Receipt)
}
