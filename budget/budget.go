// Package budget decides what pays for retries.
//
// A retry is load that the caller adds to a service which has just failed. If
// every failure may be retried three times, a service that fails every request
// receives four times its traffic, and a service that failed because it was
// overloaded never comes back: retries sustain the outage that caused them once
// load × amplification reaches capacity. Longer waits do not help, they only
// spread the same volume; jitter does not help either, since the excess is not
// a matter of timing. What helps is to bound the volume: retries are paid for
// from an account, calls fill it, and when it is empty a failure is final.
//
// # The default: a ratio of the calls that succeeded
//
// [Ratio] keeps, over a sliding window W (default 10 s),
//
//	retries ≤ ratio × earned + floor × W
//
// where earned counts the calls that succeeded in the window and ratio is 10 %
// unless set. It is the sliding bucket of Finagle's RetryBudget and tower's
// budget: a deposit for what earns, a withdrawal for each retry, both expiring
// with the slot they fell into, in integers.
//
// Why successes earn and not arrivals (Config.Earn chooses): what an account
// fed by arrivals allows does not fall when everything fails. Simulated with a
// server of 1,000 requests/s whose queue a stall of 10 s has filled with dead
// work, 10 % of arrivals recovers at loads up to 85 %; at 90 % it is not back
// after ten minutes, because 0.90 × 1.1 leaves 1 % of the capacity to drain the
// queue. An account fed by successes is empty after one window of total
// failure and amplification falls to exactly 1; in the same simulation a bucket
// fed by successes (10 tokens, no window) let the queue drain in 90 s.
// At 95 % neither is enough: the few successes then pay for just the retries
// that hold the queue at its timeout. That takes a breaker that fails fast.
//
// # Less than one retry
//
// With 10 %, a process with four successes in its window has earned 0.4 of a
// retry. Rounding down denies every retry in a fleet of small processes;
// rounding up, or giving each process a few to start with, gives a fleet of M
// processes M free retries, which is how budgets fail at scale. Ratio rounds by
// chance, with one draw for many retries: systematic sampling (Madow and Madow,
// Annals of Mathematical Statistics 15, 1944).
//
// A token, the price of a retry, is 100,000 units. Think of the units that a
// process earns as laid end to end, and of one in each 100,000 as marked: the
// first mark is drawn, uniformly, and the others follow a token apart. The
// balance b, deposits less withdrawals in the window, is what is left of that
// line at its newer end. A retry is granted if there is a mark in it, and pays a
// full token, so that the balance may go below zero, a debt. So a balance of one
// or more always pays, zero or less never does, and between them a fraction b of
// all processes finds its mark. A refusal takes nothing, and asking again gives
// the same answer until more is earned; with a draw for each try, persistence
// would win. T tokens earned without a pause make floor(T + 1 - u) retries, where
// u, from 1/100,000 to 1, is the draw: T on average. Therefore
//
//   - the expected number of retries never exceeds the tokens earned, whatever
//     the number of processes and without their talking to one another: 50,000
//     processes whose only call fails made 0.0997 retries a call at 10 %;
//   - in the window that ends with any retry, one process is less than one retry
//     above its share, however lucky; and over all time less than one for each
//     draw, so that luck does not last;
//   - nothing that was earned is lost to rounding, only to its expiry: at 100
//     calls/s of which 30, 60 or 97 % fail, retries were 99.7, 99.9 and 100.2 %
//     of what was earned (the last are a part of one retry ahead).
//
// The first holds because no mark is used twice, and each unit is marked with
// the same probability. The units that are live are the balance and a token for
// each retry in the window, so they hold one mark more for each of these retries
// than the balance does. Only these retries can have used live marks: if the
// balance holds a mark, a live one is unused.
//
// A whole window without a withdrawal ends the series, and the next fraction is
// judged by a new draw; nothing that the old one judged is left by then. A new
// draw any earlier would judge what is left a second time: with one each window,
// processes that had a success every 8.5 s and ten failures after each made 1.6
// times the retries that they had earned, where these marks make 1.00.
//
// A new Ratio starts as though one call had succeeded. Without that, a process
// whose first call fails could never retry, and a fleet of processes that make
// one call each would have no retries at all. It costs nothing: a retry needs a
// call that is failing, so a process that wants one after n calls has had at
// most n-1 successes, and with the initial one it has earned at most ratio × n.
// The initial token fraction waits for the first use and expires only then.
//
// # Floors and stocks do not compose
//
// Config.Floor and Config.Stock help a process with little traffic, and they
// are per process: M processes with a floor of f retries/s may together send
// M × f retries/s to a service, whatever it can bear, and a stock of s is M × s
// free retries at the moment all of them start to fail. In the simulation above,
// at 80 % load, Finagle's default of 20 % and 10 retries/s does not recover with
// any number of clients, and with 1,000 it allows four attempts for every call.
// Ratios add up over a fleet to the same ratio; that is why both are zero unless
// set.
//
// # Other systems' budgets
//
// [GRPCThrottle], [AWSQuota], [EnvoyConcurrency] and [FinagleBucket] implement
// the same interface, by the published rules of those systems and tested with
// their published cases, for comparison and for moving from them. Their
// configurations mean what they mean there: a zero is a zero, not a default.
//
// # Order of use
//
// For each call: Begin; after each failed attempt Failed, and if a retry is
// wanted Withdraw, before the wait and not after it; Settle once for every
// grant, when the attempt it paid for has ended or has been given up; at last
// End. Time is a duration since any epoch, the same for all calls of a Budget.
// It may run backwards a little between goroutines; each implementation takes
// the latest time that it has seen.
//
// # Cost
//
// End(success) on a Ratio, the path of every healthy call, is one atomic add:
// about 8 ns and 0 allocations. The first deposit in a slot also takes the lock.
// Withdraw takes the lock and sums 10 slots: about 40 ns when granted, 30 when
// refused, 0 allocations. A Ratio takes 168 bytes, and 128 more from its first
// use on.
//
// # What it does not do
//
// A budget bounds volume. It does not choose the wait (backoff) and does not
// stop first attempts (breaker). It knows one process; fractions are spent
// fairly by chance, but no process sees another's balance. And it knows what is
// recent: a process with less than a few calls a window has next to nothing in
// it when one of them fails, and hardly ever retries, unless its window is
// longer or it has a floor.
package budget

import (
	"fmt"
	"time"
)

// Class says why a retry is wanted. AWSQuota charges by it; the others charge
// the same for all.
type Class uint8

const (
	Transient Class = iota // a failure that another attempt may mend
	Timeout                // the attempt ran out of time
	Throttled              // the server asked for fewer requests
)

var classNames = [...]string{"transient", "timeout", "throttled"}

// String is the class in lower case, such as "timeout".
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// A Receipt says what was paid for one retry, in the budget's own unit. Zero
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
	Begin(now time.Duration)

	// Failed: an attempt failed in a way that another might mend, whether or
	// not another is wanted. (The gRPC throttle counts these.)
	Failed(now time.Duration)

	// Withdraw asks whether one more attempt may be made, and pays for it at
	// once: a retry that still waits is already counted. rnd returns 64 uniform
	// bits. It is called at most once, only if a new draw is due, possibly under a
	// lock, so it must not use the budget. A nil rnd acts as one that returns
	// 1<<63, the middle.
	Withdraw(now time.Duration, c Class, rnd func() uint64) Grant

	// Settle: the attempt that r paid for has ended, whatever its result, or
	// will never be made. (Budgets of concurrency count these.)
	Settle(now time.Duration, r Receipt)

	// End: the call has ended. last is the receipt of the last retry that it
	// paid for, zero if it paid for none.
	End(now time.Duration, success bool, last Receipt)

	// Balance is the number of retries that the budget would pay for right now,
	// never negative. Below one it may be a probability, over all processes that
	// have this balance.
	Balance(now time.Duration) float64
}
