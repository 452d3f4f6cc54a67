package engine

import (
	"math"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// flight describes the other attempts of a call, for decide. The zero flight is
// that of a call whose attempts follow one another.
type flight struct {
	hedged bool   // attempts may run beside one another
	beside bool   // some are in flight
	stop   Reason // no further attempt begins, for this reason; Success: one may
	free   bool   // the attempt cost nothing and failed on the caller's side: so the next costs nothing
}

// decide returns the meaning of the end of an attempt with v, and whether another attempt may
// follow: the one place where that is decided, for plain, hedged and resumed calls. Its
// questions are those of [Call.Next], in that order. If the Step is Done no further
// attempt may begin, for its Reason; else one may, after its Wait.
//
// It is paid for here, before the wait, so that a stopped call costs nothing and a sleeping
// one is already counted. Only with attempts in flight it is paid for when it begins
// ([HedgedCall.Hedge]), since it may be held back for being a hedge, too.
func (c *Call) decide(now time.Duration, v Verdict, shows evidence, with flight, random func() uint64) Step {
	c.show(shows)
	if c.hinted && shows != nothing {
		c.hinted = false
		c.s.remember().hintEnded(v)
	}
	switch v.Kind {
	case KindSuccess:
		return done(Success)
	case KindCanceled:
		return done(Canceled)
	case KindTransient, KindRateLimited, KindOverloaded, KindCallerTransient:
	default:
		return done(Permanent)
	}
	p := c.s.Plan()
	retryBudget := c.s.remember().budget
	if retryBudget != nil && shows != cutShort && shows != nothing {
		retryBudget.Failed(now)
	}
	if v.Kind == KindOverloaded {
		return done(Overloaded)
	}
	if timedOut(v) {
		c.s.remember().noteTimeout(c.began)
	}
	if with.stop != Success {
		return done(with.stop)
	}
	if no := c.mayRepeat(v); no != Success {
		return done(no)
	}
	retry := int(c.attempts)
	if retry >= p.attempts {
		return done(AttemptsExhausted)
	}
	if !c.closed(now) {
		return done(CircuitOpen)
	}
	if v.After > p.policy.HintLimit {
		return done(HintTooLong)
	}
	var step Step
	if !with.hedged || v.After > 0 || v.Kind == KindRateLimited { // else at once, as gRFC A6 has it
		step.Wait, step.Ceiling = c.nextWait(retry, v, c.left(now), random)
	}
	if step.Wait >= c.left(now) {
		return done(Deadline)
	}
	if timedOut(v) && !c.answeredSince(c.began) {
		return done(Unanswered)
	}
	if with.beside || with.free {
		return step
	}
	c.hinted = v.After > 0 && p.freeHints
	if c.hinted && c.s.remember().hintsAreGood() {
		c.receipt = 0
		return step
	}
	if c.doubtful(v) {
		c.hinted, c.receipt, c.looks = false, 0, looks+1
		look := c.look(now, random)
		if look.Done {
			return look
		}
		step.Wait = max(look.Wait, step.Wait)
		return step
	}
	return c.pay(now, class(v), step, random)
}

// pay is step, which the budget pays for, or is Done if it does not.
func (c *Call) pay(now time.Duration, class budget.Class, step Step, random func() uint64) Step {
	grant := c.charge(now, class, random)
	if !grant.OK {
		c.hinted = false
		step = done(BudgetExhausted)
		step.Exhausted = grant.Exhausted
		return step
	}
	c.receipt, c.paid = grant.Receipt, c.s.remember().budget != nil
	if c.paid {
		c.paidRetries = counted(c.paidRetries)
	}
	return step
}

// mayRepeat returns why the operation may not be repeated after an attempt that failed
// so, or Success.
func (c *Call) mayRepeat(v Verdict) Reason {
	switch c.repeat {
	case notAtAll:
		return NotReplayable
	case ifUnread:
		if !v.NeverSent {
			return NotReplayable
		}
	case onlyOnce:
		return AttemptsExhausted
	case notAgain:
		return RetriedAbove
	case ifNeverSent:
		if !v.NeverSent {
			return NotIdempotent
		}
	}
	return Success
}

// answeredSince reports whether an attempt that began at that time and timed out may
// be repeated. It was not answered, so it may still be worked on, and if the dependency answers
// nobody else either, another attempt is one more in the line that it is drowning in.
func (c *Call) answeredSince(began time.Duration) bool {
	switch c.s.Plan().policy.Timeouts {
	case TimeoutsAlways:
		return true
	case TimeoutsNever:
		return false
	}
	from := c.s.answeredFrom()
	return from >= 0 && from > began-recentAnswer
}

// doubtful reports whether there may be a line that the attempt is in which ended with v.
func (c *Call) doubtful(v Verdict) bool {
	return timedOut(v) && c.s.Plan().policy.Timeouts == TimeoutsWhenAnswered && !c.noLine()
}

// noLine reports whether an attempt that began later than the latest of the call was answered, and
// others are answered quickly, given how much time it had.
func (c *Call) noLine() bool {
	return c.s.answeredFrom() > c.began && c.s.Current().answered.quick(c.Timeout(c.began))
}

// look asks whether a retry may begin of an attempt that may be in a line. It may if there is
// none, as others show. As long as nobody shows it the call waits, looks times; the Step then has a
// Wait, after which to ask again. In the end it may begin if no other attempt of the process was
// answered or timed out meanwhile, and the process makes one call after the other.
func (c *Call) look(now time.Duration, random func() uint64) Step {
	if !c.noLine() {
		if c.looks > 1 {
			c.looks--
			// Answers that took as long would not be quick ones.
			wait := upperHalf(min(c.Timeout(c.began), now-c.began), random)
			if 0 < wait && wait < c.left(now) {
				return Step{Wait: wait}
			}
		}
		others := max(c.s.answeredFrom(), time.Duration(c.s.remember().timedOut.Load()))
		if others > c.began || !c.s.Current().answered.oneByOne(c.began, c.Timeout(c.began)) {
			c.looks = 0
			return done(Unanswered)
		}
	}
	c.looks = 0
	return c.pay(now, budget.Timeout, Step{}, random)
}

// looks is how often a call waits to see whether there is a line.
const looks = 4

// nextWait draws the wait before the given retry, and returns what it was before
// jitter. A wait that the server asked for is never shortened; its jitter is,
// so as to end before the deadline if the hint itself does.
func (c *Call) nextWait(retry int, v Verdict, left time.Duration, random func() uint64) (wait, ceiling time.Duration) {
	p := c.s.Plan()
	if v.After <= 0 {
		if c.wait == 0 && p.policy.Backoff.Jitter == backoff.Decorrelated {
			c.redrawWait(v, random)
		}
		switch {
		case v.Kind == KindRateLimited:
			wait, ceiling = p.rateLimited.Draw(retry, c.wait, random)
		case p.parts.Backoff != nil:
			wait = max(p.parts.Backoff(retry, c.wait, random), 0)
			ceiling = wait
		default:
			wait, ceiling = p.waits.Draw(retry, c.wait, random)
		}
		c.wait = wait
		return wait, ceiling
	}
	spread := hintSpread(v.After, p.rateLimited.Ceiling(retry))
	spread = min(spread, max(left-v.After-1, 0))
	return saturating.Add(v.After, time.Duration(chance.UpTo(uint64(spread), random))), v.After
}

// hintSpread is how far jitter may push a wait that the server asked for, so that clients
// which were refused together do not come back together.
func hintSpread(hint, ceiling time.Duration) time.Duration { return max(hint/2, ceiling) }

// timedOut reports whether the dependency may still be at work on the attempt that ended
// with v.
func timedOut(v Verdict) bool {
	return v.Code == CodeTimeout && !v.NeverSent && v.Kind != KindCallerTransient
}

// charge has the budget pay for another attempt. If the grant is not OK nothing was paid.
func (c *Call) charge(now time.Duration, class budget.Class, random func() uint64) budget.Grant {
	if b := c.s.remember().budget; b != nil {
		return b.Withdraw(now, class, random)
	}
	return budget.Grant{OK: true}
}

// repay has the budget take back what it has paid for a retry that failed on the caller's side,
// and so added nothing to the dependency's load. It reports whether it had paid. The next attempt
// is charged as this one was.
func (c *Call) repay(now time.Duration, paid bool, r *budget.Receipt) bool {
	if !paid {
		return false
	}
	if b, ok := c.s.remember().budget.(budget.Refundable); ok && *r != 0 {
		b.Refund(now, *r)
		*r = 0
		c.paidRetries = max(c.paidRetries, 1) - 1
	}
	return true
}

// counted is one more than n, up to what fits.
func counted(n uint8) uint8 { return min(n, math.MaxUint8-1) + 1 }

func class(v Verdict) budget.Class {
	switch {
	case v.Kind == KindRateLimited:
		return budget.RateLimited
	case v.Code == CodeTimeout:
		return budget.Timeout
	}
	return budget.Transient
}
