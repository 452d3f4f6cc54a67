package budget

import (
	"math"
	"sync/atomic"
	"time"
)

// Account is the default budget: a stock that does not expire, and above it a window of
// what calls have earned in the last half minute. Make one with New; a zero Account refuses
// every retry. Its methods may be called concurrently.
//
// A call earns into the stock; what does not fit there goes into the window. A retry is
// paid from the window first, in whole tokens. If a call succeeds, what its retries cost is
// put back in the same way. Nothing is counted twice or left to chance, so at any time
//
//	retries of calls that failed ≤ ratio × calls that earned + stock
//
// Retries that failed on the caller's side were refunded, and are not among them.
type Account struct {
	stock Bucket
	// window is made when two calls earn within Config.QuietGap, and stays. Until then the
	// stock pays for all that it could.
	window atomic.Pointer[Ratio]
	last   atomic.Int64 // when a call last earned, plus one; not kept once there is flow
}

// The window of an Account.
const accountWindow = 30 * time.Second

// newAccount returns an account with a full stock, for a valid Config.
func newAccount(c Config) *Account {
	a := new(Account)
	a.stock.fill(newTerms(c))
	return a
}

// Start earns, if arrivals do.
func (a *Account) Start(now time.Duration) {
	if a.stock.terms.arrivals() {
		a.earn(now)
	}
}

func (*Account) Failed(time.Duration)           {}
func (*Account) Release(time.Duration, Receipt) {}

// Refund puts a token back.
func (a *Account) Refund(now time.Duration, _ Receipt) { a.refund(now, 1) }

func (a *Account) refund(now time.Duration, retries int) {
	over := a.stock.add(uint64(retries) * stateToken)
	if flow := a.window.Load(); flow != nil && over > 0 {
		flow.earn(now, over)
	}
}

// Done earns, if the call succeeded and successes do. It puts back what the retries of a
// successful call cost.
func (a *Account) Done(now time.Duration, success bool, _ Receipt, retries int) {
	if !success {
		return
	}
	if retries > 0 {
		a.refund(now, retries)
	}
	if !a.stock.terms.arrivals() {
		a.earn(now)
	}
}

func (a *Account) earn(now time.Duration) {
	over := a.stock.earn()
	if flow := a.window.Load(); flow != nil {
		flow.earn(now, over)
	} else {
		a.startWindow(now)
	}
}

// startWindow makes the window when two calls have earned within the gap. What they earned
// is not in it.
func (a *Account) startWindow(now time.Duration) {
	gap := int64(a.stock.terms.quietGap())
	if gap == 0 {
		return // a window could hold nothing
	}
	last := a.last.Swap(int64(now) + 1)
	if last != 0 && int64(now)+1-last < gap {
		a.window.CompareAndSwap(nil, &Ratio{slotWidth: accountWindow / slots, wholeTokens: true})
	}
}

// Withdraw pays one token for one retry, or refuses and takes nothing.
func (a *Account) Withdraw(now time.Duration, class Class, rnd func() uint64) Grant {
	if flow := a.window.Load(); flow != nil {
		if g := flow.Withdraw(now, class, rnd); g.OK {
			a.stock.clearRefused()
			return g
		}
	}
	return a.stock.Withdraw(now, class, rnd)
}

// Balance returns the whole tokens in the stock and those in the window.
func (a *Account) Balance(now time.Duration) float64 {
	tokens := a.stock.Balance(now)
	if flow := a.window.Load(); flow != nil {
		tokens += math.Floor(flow.Balance(now))
	}
	return tokens
}

// Stock returns how many tokens a full stock has, without those in the window.
func (a *Account) Stock() float64 { return a.stock.Stock() }
