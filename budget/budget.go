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
// # The default: a stock, and a window above it
//
// What a call's retries cost is put back if the call succeeds: they have helped, and
// the service could bear them. So what follows bounds the retries that do not help, and
// in a total failure all of them.
//
// [Account] has a stock of 2 retries, which is full at the start and does not
// expire, and above it, for processes that call often, a tenth of the calls that
// succeeded in the last half minute. Both are made of the same tokens: a retry
// takes one, and is refused if there is none; a call that succeeds puts 0.1 of one
// back, into the stock while that has room, else into the window. A retry is paid
// from the window first. There is no chance in it. Always, from the first call on,
//
//	retries of calls that failed ≤ ratio × calls that succeeded + stock
//
// Why a window: so that a busy process rides out a short total failure. Of 100
// calls/s a blip of 200 ms fails 20. A bucket of two tokens pays for two retries,
// one of ten for ten; a tenth of the last half minute is 300, which pays for all
// of them, and at any rate of calls for a retry of all that fail in a blip of 2.5 s. (Less
// if other failures have spent it.)
//
// Why a stock: so that a quiet process has something to ride it out with. One that
// calls every 40 s has nothing in a window of thirty when a call fails, and retries
// none of its failures. The stock keeps what was earned: twenty successes fill it,
// whenever they were. If nothing were given back, these shares of all calls would succeed
// when attempts fail at random, each for itself, and a call makes up to three; the Ratio has a
// window of ten seconds, a quiet process calls every 12 s, a busy one 800 times a second:
//
//	             Ratio               Account             Bucket of
//	             quiet    busy       quiet     busy      1         10        unlimited
//	1 % fail     99 %     99.9999 %  99.995 %  99.9999 % 99.91 %   99.9999 % 99.9999 %
//	5 % fail     95 %     99.987 %   99.4 %    99.987 %  98.2 %    99.987 %  99.987 %
//	10 % fail    90 %     98.9 %     96.6 %    98.9 %    94.5 %    98.7 %    99.9 %
//
// In the last line a call needs 0.11 retries, which no budget of a tenth can pay
// for unless those that helped are given back, as an Account does. A stock of one token throws
// away much of what it earns.
//
// Why the stock is small: it is per process, and does not compose. M processes
// with a stock of s have M × s retries that nobody earned, and no process can know
// M. So the initial stock of a fleet is 2 for each process, and no more. Windows
// do compose: they hold nothing that was not earned in them, and ratios add up
// over a fleet to the same ratio.
//
// The window is made when two calls first earn closer together than
// Config.QuietGap, 1.5 s: at that rate it would hold as much as the stock. Until
// then it takes no memory.
//
// # Successes earn, not arrivals
//
// What an account fed by arrivals allows does not fall when everything fails
// (Config.Earn chooses). Simulated with a server of 1,000 requests/s whose queue a
// stall of 10 s has filled with dead work, 10 % of arrivals in a window recovers
// at loads up to 85 %; at 90 % it is not back after ten minutes, because
// 0.90 × 1.1 leaves 1 % of the capacity to drain the queue. Fed by successes,
// nothing is earned in a total failure; once what there was is spent,
// amplification falls to exactly 1, and the queue drains in 90 s. At 95 % neither
// is enough: the few successes then pay for just the retries that hold the queue
// at its timeout. That takes a breaker that fails fast.
//
// # Stocks and floors do not compose
//
// When all processes begin to fail at once, their stocks come on top of the load,
// and where timed-out attempts are retried they keep a large fleet's service down.
// In the simulation above, at 80 % load, the service is back after 37 s without
// retries, whatever the fleet; with buckets of ten tokens after 41 s with 100
// processes, 46 s with 1,000, 130 s with 10,000, and not within five minutes with
// 100,000, each of which calls once in two minutes and has not spent its ten by
// then.
//
// A budget cannot mend that, but its user can: package lull repeats an attempt
// that timed out only if the dependency has answered another one that began later, or
// not long before. What is left for the stock are failures that came back as
// answers. They cost a server little, and show that it is not buried in a queue.
// With that rule recovery did not depend on the stock (1, 2, 5 and 10 were tried),
// in fleets from one process to 100,000. Whoever uses this package alone, in a
// large fleet, and retries timeouts should set Config.Stock to 1, or use a Ratio.
//
// Config.Floor, which a Ratio may have, is worse, for it never ends: M processes
// with a floor of f retries/s may together send M × f retries/s, whatever the
// service can bear. At 80 % load Finagle's default of 20 % and 10 retries/s does
// not recover with any number of clients, and with 1,000 it allows four attempts
// for every call. It is zero unless set.
//
// # The stock alone: a bucket without a clock
//
// [Bucket] is the stock of an Account and nothing else, as in Brooker, "Fixing
// retries with token buckets and circuit breakers" (2022). It never looks at the
// time, and keeps the bound above over any stretch of time, also one that begins
// in the midst of an outage. The price is the blip: what it pays for does not grow
// with the rate of calls.
//
// # The window alone: a ratio
//
// Config.Window makes the budget a [Ratio], which keeps over the window W
//
//	retries ≤ ratio × earned + floor × W
//
// where earned counts the calls that succeeded in it. It is the strict one: no
// stock, so that nothing is paid that was not earned in this very window (but for
// a fraction of one retry, see below). The price is paid in peace, by quiet
// processes, as above. It is the sliding bucket of Finagle's RetryBudget and
// tower's budget: a deposit for what earns, a withdrawal for each retry, both
// expiring with the slot they fell into, in integers.
//
// With 10 %, a process with four successes in its window has earned 0.4 of a
// retry. Rounding down denies every retry in a fleet of small processes;
// rounding up gives a fleet of M processes M free retries. Ratio rounds by
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
// # Other systems' budgets
//
// [GRPCThrottle] implements the same interface by gRPC's published rules, and is tested
// with their published cases, for service configs of gRPC. Its configuration means what
// it means there: a zero is a zero, not a default. Package preset has those of the AWS
// SDKs, Envoy and Finagle, for comparison.
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
// On an Account End(success), the path of every healthy call, is a load, and an
// atomic swap of the time or, where there is a window, an atomic add, 9 ns. The
// add goes to a counter that is striped once cores contend for it. Withdraw looks
// at the window under its lock: 40 ns, granted or refused; 3 ns where there is no
// window. An Account takes 32 bytes, and none before a process has first failed or
// called often, if its user heeds Config.FullAtStart; its window takes a Ratio's
// 168 and 128.
//
// On a full Bucket End(success) is one atomic load, 2 ns, and no write: cores share
// the cache line and scale. On one that is not full, or an Account whose stock is
// not, it is a compare-and-swap, 6 ns, and twice that or thrice where two cores
// fight for it. Withdraw is a compare-and-swap too; a refusal that follows another
// is one load. A Bucket takes 16 bytes.
//
// On a Ratio End(success) is one atomic add, about 8 ns; the first deposit in a
// slot also takes the lock. Withdraw takes the lock and sums 10 slots: about
// 40 ns when granted, 30 when refused. A Ratio takes 168 bytes, and 128 more from
// its first use on.
//
// Nothing allocates after that, in any of them.
//
// # What it does not do
//
// A budget bounds volume. It does not choose the wait (backoff) and does not
// stop first attempts (breaker). It knows one process: a stock is what that process
// may spend, and a Ratio spends fractions fairly by chance, but no process sees
// another's balance.
package budget

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// Class is why a retry is wanted. The quota of the AWS SDKs charges by it (package
// preset); the budgets of this package charge the same for all.
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
	Begin(now time.Duration)

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
	Settle(now time.Duration, r Receipt)

	// End: the call has ended. last is the receipt of the last retry that it
	// paid for, zero if it paid for none, and retries how many it paid for.
	End(now time.Duration, success bool, last Receipt, retries int)

	// Balance is the number of retries that the budget would pay for right now,
	// never negative. Below one it may be a probability, over all processes that
	// have this balance.
	Balance(now time.Duration) float64
}
