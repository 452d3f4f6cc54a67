package queue

import (
	"errors"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/chance"
)

// engine is the policy's engine (lull.Call) as messages see it. A call that gets no retry is over; a
// message has to come back, or be a dead letter. What the engine's answers mean for
// that is here.
type engine struct {
	dep     *lull.Dependency
	policy  lull.Policy // with defaults
	can     Capabilities
	allowed int // attempts
	random  func() uint64
}

// engineNow is the engine for a message that comes now.
func (c *Consumer) engineNow() *engine {
	p := c.dep.Policy()
	e := c.engine.Load()
	if e == nil || e.policy != p && p.Hedge.Attempts <= 1 { // messages are not hedged
		e = newEngine(c.dep, p, c.can)
		c.engine.Store(e)
	}
	return e
}

func newEngine(d *lull.Dependency, p lull.Policy, can Capabilities) *engine {
	p = p.WithDefaults()
	e := &engine{dep: d, policy: p, can: can, allowed: p.MaxAttempts()}
	if d != nil {
		e.random = d.Rand()
	}
	return e
}

// resume asks the engine for attempt n of a message. again: the handler may be run
// again in this delivery, so that the engine is asked about a retry even after the
// last attempt.
func (e *engine) resume(n int, spec lull.Spec, again bool) (lull.Call, lull.Step) {
	made := n - 1
	if again {
		made = max(min(made, e.allowed-2), 0)
	}
	return e.dep.State().Resume(e.dep.Now(), spec, made)
}

// later is a wait for when the server has said to stop. In a call that is the end; a
// message has to come back, so it comes about as late as the policy ever has it.
func (e *engine) later() time.Duration { return e.upperHalf(e.latest()) }

// further is a wait for when no budget is left after attempt n. In a call that is the
// end; a message comes back as if it had failed three times more, eight times as late
// with the usual factor of two. (As late as ever it need not be: what failed in the
// seconds before a breaker opens is then the last to be handled when all is well again,
// by minutes.)
func (e *engine) further(n int) time.Duration {
	return e.upperHalf(min(max(e.policy.Backoff.Max(n+3), e.policy.ThrottleBase), e.latest()))
}

// upperHalf draws a wait between half of the longest and that.
func (e *engine) upperHalf(longest time.Duration) time.Duration {
	return longest/2 + time.Duration(chance.UpTo(uint64(longest/2), e.random))
}

func (e *engine) latest() time.Duration {
	return max(e.policy.Backoff.Max(max(e.allowed-1, 1)), e.policy.ThrottleBase)
}

// longest is the longest wait after attempt n, whatever for.
func (e *engine) longest(n int) time.Duration {
	return min(max(e.policy.LongestWait(n), e.latest(), e.policy.HintLimit), e.can.MaxDelay)
}

// A plan is what is to become of a delivery, and why.
type plan struct {
	outcome Outcome
	after   time.Duration
	reason  string        // of a dead letter
	quick   bool          // the engine has granted a retry, which may be made here
	wait    time.Duration // if quick: after this
}

// plan is what becomes of a message after its attempt n has failed with v, to which the
// engine said step. left is how long retries may still be asked for.
func (e *engine) plan(n int, v lull.Verdict, step lull.Step, left time.Duration) plan {
	p := plan{outcome: Retry}
	if step.Done {
		switch step.Reason {
		case lull.Succeeded:
			return plan{outcome: Ack}
		case lull.FailedPermanent, lull.HintTooLong:
			return plan{outcome: DeadLetter, reason: step.Reason.String()}
		}
		if v.After > e.policy.HintLimit { // which it has not come to ask
			return plan{outcome: DeadLetter, reason: lull.HintTooLong.String()}
		}
	}
	if n >= e.allowed {
		p = plan{outcome: DeadLetter, reason: lull.AttemptsExhausted.String()}
		if step.Done {
			return p
		}
	}
	switch {
	case !step.Done:
		p.after, p.wait, p.quick = step.Wait, step.Wait, true
	case step.Reason == lull.CallerCanceled, step.Reason == lull.CircuitOpen:
		p.after = e.dep.State().Wait(n, v, e.random)
	case step.Reason == lull.BudgetExhausted, step.Reason == lull.Unanswered:
		p.after = max(e.further(n), v.After)
	default:
		p.after = max(e.later(), v.After)
	}
	return e.limit(p, left)
}

// limit holds a plan to what the broker can do and the policy's deadline allows.
func (e *engine) limit(p plan, left time.Duration) plan {
	p.after = min(p.after, e.can.MaxDelay)
	if p.wait >= left {
		p.quick = false
	}
	if p.outcome == DeadLetter {
		p.after = 0
	}
	if p.outcome == Retry && p.after >= left {
		return plan{outcome: DeadLetter, reason: lull.DeadlineReached.String()}
	}
	return p
}

// left is how long retries may be asked for at now, of a message that was first seen
// then.
func (e *engine) left(firstSeen, now time.Time) time.Duration {
	if e.policy.Deadline <= 0 {
		return 1<<63 - 1
	}
	return e.policy.Deadline - now.Sub(firstSeen)
}

// classified is what err means, an error of the handler.
func classified(err error, classify lull.Classifier) lull.Verdict {
	v := lull.VerdictOf(err, classify)
	if v.Code == lull.CodeRetriedBelow {
		if inner, ok := errors.AsType[*lull.Error](err); ok && inner != nil {
			return verdictOf(inner)
		}
	}
	if v.Kind == lull.KindUnclassified && v.Code == "" {
		v.Code = lull.CodeUnclassified
	}
	return v
}
