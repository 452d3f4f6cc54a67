package budget

import (
	"math"
	"sync/atomic"
	"time"
)

// Account is the default budget: a stock that does not expire, and above it what
// the calls of the last half minute have earned. Make one with New; a zero Account refuses every retry. Its
// methods may be called concurrently.
//
// What a call earns goes into the stock, and what does not fit there into the
// window. A retry is paid from the window first, and in whole tokens. When a call has
// succeeded, what its retries cost is put back in the same way. Nothing is counted twice and
// nothing is left to chance, so that at any time
//
//	retries of calls that failed ≤ ratio × calls that earned + stock
//
// A retry that failed on the caller's side is put back (Repay), and is not among them.
type Account struct {
	stock Bucket
	// flow is the content of the window. It is made once two calls earn closer
	// together than Config.QuietGap, and stays: until then the stock pays for all
	// that a window could.
	window atomic.Pointer[Ratio]
	last   atomic.Int64 // when a call last earned, plus one; not kept once there is flow
}

// accountWindow is how far back the earnings reach that an Account keeps above its stock:
// at one call a second, three retries.
const accountWindow = 30 * time.Second

// newAccount returns an account whose stock is full, of what has been validated.
func newAccount(c Config) *Account {
	a := new(Account)
	a.stock.fill(newTerms(c))
	return a
}

// Begin earns, if arrivals do.
func (a *Account) Start(now time.Duration) {
	if a.stock.terms.arrivals() {
		a.earn(now)
	}
}

// Failed does nothing: a failure costs only if it is retried.
func (*Account) Failed(time.Duration) {}

// Settle does nothing: a retry has been paid for and stays so.
func (*Account) Release(time.Duration, Receipt) {}

// Repay puts a token back.
func (a *Account) Refund(now time.Duration, _ Receipt) { a.refund(now, 1) }

func (a *Account) refund(now time.Duration, retries int) {
	over := a.stock.add(uint64(retries) * stateToken)
	if flow := a.window.Load(); flow != nil && over > 0 {
		flow.earn(now, over)
	}
}

// End earns, if the call succeeded and successes do. The retries of a call that succeeded
// have helped, and what they cost is given back.
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

// watch makes flow when two calls have earned closer together than the gap. What
// they earned is not in it: the next call's is the first.
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

// Withdraw pays one token for one retry, or refuses and takes nothing. The class
// makes no difference, and nothing is drawn by chance.
func (a *Account) Withdraw(now time.Duration, class Class, rnd func() uint64) Grant {
	if flow := a.window.Load(); flow != nil {
		if g := flow.Withdraw(now, class, rnd); g.OK {
			a.stock.clearRefused()
			return g
		}
	}
	return a.stock.Withdraw(now, class, rnd)
}

// Balance is the whole tokens in stock and those in the window. Unlike a Ratio's
// it is never a fraction: less than a token pays for nothing.
func (a *Account) Balance(now time.Duration) float64 {
	tokens := a.stock.Balance(now)
	if flow := a.window.Load(); flow != nil {
		tokens += math.Floor(flow.Balance(now))
	}
	return tokens
}
