package engine

import (
	"math"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// situation is what decide must know beside the verdict. The zero situation is that of a call
// whose attempts follow one another.
type situation struct {
	hedged         bool          // attempts may run beside one another
	othersInFlight bool          // some are in flight
	stopReason     Reason        // why no further attempt may begin; Success: one may
	atLeast        time.Duration // the wait that followed from earlier attempts
	message        bool          // another call makes the retry, so this one does not wait
	free           bool          // the next attempt is free: this one was, and failed on the caller's side
}

// decide returns what follows an attempt that ended with v, for plain, hedged and resumed calls.
// It checks the conditions of [Call.Next] in that order. [Call.Attempt] and [HedgedCall.Hedge]
// check again what may change during the wait.
//
// The budget pays here, before the wait. While other attempts are in flight it pays when the next
// one begins ([HedgedCall.Hedge]), which may still be refused.
func (c *Call) decide(now time.Duration, v Verdict, shows evidence, with situation, random func() uint64) Step {
	c.recordEvidence(shows)
	if c.hinted && shows != noEvidence {
		c.hinted = false
		if shows != givenTooLittle {
			c.s.memory().recordHintedRetry(v)
		}
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
	retryBudget := c.s.memory().budget
	if retryBudget != nil && shows != givenTooLittle && shows != noEvidence {
		retryBudget.Failed(now)
	}
	if v.Kind == KindOverloaded {
		return done(Overloaded)
	}
	if timedOut(v) && shows != givenTooLittle {
		c.s.memory().recordTimeout(c.began)
	}
	if with.stopReason != Success {
		return done(with.stopReason)
	}
	if no := c.whyUnsafeToRepeat(v); no != Success {
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
	if timedOut(v) && !c.mayRepeatTimeout(c.began) {
		return done(Unanswered)
	}
	step.Wait = max(step.Wait, with.atLeast)
	if with.othersInFlight {
		return step
	}
	if with.free {
		return c.countWait(step, with)
	}
	c.hinted = v.After > 0 && p.freeHints
	if c.hinted && c.s.memory().failedHints.Load() < maxFailedHints {
		c.receipt = 0
		return c.countWait(step, with)
	}
	if c.mayBeQueued(v) {
		c.hinted = false
		if wait := c.Timeout(c.began); !c.noQueue() && wait < c.left(now) {
			if with.message {
				return done(Unanswered)
			}
			step.Wait = max(step.Wait, wait)
			if step = c.countWait(step, with); !step.Done {
				c.receipt, c.waits = 0, forAnswers
			}
			return step
		}
		if c.looksQueued() {
			return done(Unanswered)
		}
	}
	if step = c.countWait(step, with); step.Done {
		return step
	}
	return c.paidStep(now, budgetClass(v), step, random)
}

// paidStep returns step if the budget pays for it, else a Step that is Done with BudgetExhausted.
func (c *Call) paidStep(now time.Duration, class budget.Class, step Step, random func() uint64) Step {
	grant := c.withdraw(now, class, random)
	if !grant.OK {
		c.hinted = false
		step = done(BudgetExhausted)
		step.Exhausted = grant.Exhausted
		return step
	}
	c.receipt, c.paid = grant.Receipt, c.s.memory().budget != nil
	if c.paid {
		c.paidRetries = min(c.paidRetries, math.MaxUint8-1) + 1
	}
	return step
}

// whyUnsafeToRepeat returns why the operation may not be repeated after a failure with v, or
// Success.
func (c *Call) whyUnsafeToRepeat(v Verdict) Reason {
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

// mayRepeatTimeout reports whether an attempt that began at began and timed out may be repeated.
// The attempt may still wait in the dependency's queue. If the dependency answers nobody else,
// another attempt makes that queue longer.
func (c *Call) mayRepeatTimeout(began time.Duration) bool {
	switch c.s.Plan().policy.Timeouts {
	case TimeoutsAlways:
		return true
	case TimeoutsNever:
		return false
	}
	from := c.s.latestAnsweredStart()
	return from >= 0 && from > began-recentAnswer
}

// mayBeQueued reports whether the attempt that ended with v may still wait in the dependency's
// queue.
func (c *Call) mayBeQueued(v Verdict) bool {
	return timedOut(v) && c.s.Plan().policy.Timeouts == TimeoutsWhenAnswered && !c.noQueue()
}

// noQueue reports whether the dependency has answered an attempt that began later than the latest
// of the call, and answers quickly.
func (c *Call) noQueue() bool {
	return c.s.latestAnsweredStart() > c.began && c.s.Current().answered.answersQuickly(c.Timeout(c.began))
}

// looksQueued reports whether other attempts show that the latest one of the call may wait in a queue: one
// that began later has timed out or was answered, and none of those was answered quickly.
func (c *Call) looksQueued() bool {
	ended := max(c.s.latestAnsweredStart(), time.Duration(c.s.memory().latestTimeout.Load()))
	return ended > c.began && !c.noQueue()
}

// checkQueue ends the wait for the answers to other attempts. The budget pays for the retry, unless
// these show that there may be a queue.
func (c *Call) checkQueue(now time.Duration, random func() uint64) Step {
	c.waits = forRetry
	if c.looksQueued() {
		return done(Unanswered)
	}
	return c.paidStep(now, budget.Timeout, Step{}, random)
}

// nextWait draws the wait before the given retry, and returns what it was before jitter. It never
// shortens a wait that the server asked for. It shortens the jitter of such a wait to end before
// the deadline.
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

// hintSpread returns the most jitter that is added to a wait that the server asked for, so that
// clients which were refused together do not return together.
func hintSpread(hint, ceiling time.Duration) time.Duration { return max(hint/2, ceiling) }

// timedOut reports whether the dependency may still work on the attempt that ended with v.
func timedOut(v Verdict) bool {
	return v.Code == CodeTimeout && !v.NeverSent && v.Kind != KindCallerTransient
}

func (c *Call) withdraw(now time.Duration, class budget.Class, random func() uint64) budget.Grant {
	if b := c.s.memory().budget; b != nil {
		return b.Withdraw(now, class, random)
	}
	return budget.Grant{OK: true}
}

// refund puts back what the budget has paid for a retry that failed on the caller's side and was
// no load for the dependency. It reports whether the budget had paid; then the next attempt must
// be paid for, too.
func (c *Call) refund(now time.Duration, paid bool, r *budget.Receipt) bool {
	if !paid {
		return false
	}
	if b, ok := c.s.memory().budget.(budget.Refundable); ok && *r != 0 {
		b.Refund(now, *r)
		*r = 0
		c.paidRetries = max(c.paidRetries, 1) - 1
	}
	return true
}

func budgetClass(v Verdict) budget.Class {
	switch {
	case v.Kind == KindRateLimited:
		return budget.RateLimited
	case v.Code == CodeTimeout:
		return budget.Timeout
	}
	return budget.Transient
}
