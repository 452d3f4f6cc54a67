package queue

import (
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// This file is what the engine (lull.Call) does not do yet, in one place.
//
// A Call counts the attempts that it has made itself. The attempts of a message are
// made by many processes, each of which makes one, so each would be a first. What is
// needed is to start a Call of which attempts have been made elsewhere:
//
//	// Resume is Start for a call of which the given number of attempts were made
//	// before, elsewhere. Its next attempt is number made+1. It is no new call to the
//	// budget, and Spec.Deadline alone is its deadline: it says until when retries are
//	// made, and neither refuses nor bounds the attempt that comes next.
//	func (d *Dependency) Resume(now time.Duration, spec Spec, made int) (Call, Step)
//
// and, for a driver that is not built on Drive: Dependency.Classify(error) Verdict
// and Dependency.Observe(context.Context, Event).
//
// Until then: each delivery is a Call of its own for the breaker, the budget, the
// throttle and the limit, with Spec.NotReplayable at the last attempt, for the question
// about attempts left comes right after it and both come before the budget is charged; and the
// wait is drawn here, from the policy's schedules, for the attempt that it is.

// engine is a policy as messages see it.
type engine struct {
	policy    lull.Policy // with defaults
	can       Capabilities
	allowed   int
	waits     backoff.Schedule
	throttled backoff.Schedule
	random    func() uint64
}

func newEngine(p lull.Policy, can Capabilities) *engine {
	p = p.WithDefaults()
	e := &engine{policy: p, can: can, allowed: p.Attempts, waits: p.Backoff, throttled: throttled(p), random: rand.Uint64}
	if p.Hedge.Attempts > 1 {
		e.allowed = 1
	}
	if limit := p.Backoff.Limit(); limit > 0 {
		e.allowed = min(e.allowed, limit+1)
	}
	return e
}

// throttled is lull.Policy.throttled.
func throttled(p lull.Policy) backoff.Schedule {
	s := p.Backoff
	if s.Kind == backoff.Ethernet || s.Kind == backoff.Immediate {
		s = backoff.Schedule{Jitter: s.Jitter}
	}
	if base := s.Ceiling(1); base < p.ThrottleBase || s.FastFirst {
		s.FastFirst = false
		s.Base = max(s.Base, p.ThrottleBase)
		if s.Cap != 0 {
			s.Cap = max(s.Cap, s.Base)
		}
	}
	return s
}

// draw is the wait after attempt n of a message, from the schedule for such failures.
func (e *engine) draw(n int, kind lull.Kind) time.Duration {
	s := &e.waits
	if kind == lull.KindThrottled {
		s = &e.throttled
	}
	if s.Jitter != backoff.Decorrelated {
		return s.Delay(n, 0, e.random)
	}
	// The last wait was drawn by another process. Drawing all of them anew gives this
	// one the distribution that it should have.
	var wait time.Duration
	for i := 1; i <= n; i++ {
		wait = s.Delay(i, wait, e.random)
	}
	return wait
}

// later is a wait for when there should be no retry any time soon: no budget, or the
// server said to stop. In a call that is the end; a message has to come back, so it
// comes as late as the policy ever has it.
func (e *engine) later() time.Duration {
	last := max(e.allowed-1, 1)
	half := max(e.waits.Max(last), e.throttled.Max(last)) / 2
	return half + time.Duration(chance.UpTo(uint64(half), e.random))
}

// longest is the longest wait after attempt n, whatever for.
func (e *engine) longest(n int) time.Duration {
	last := max(e.allowed-1, 1)
	longest := max(e.waits.Max(n), e.throttled.Max(n), e.waits.Max(last), e.throttled.Max(last))
	hint := e.policy.HintLimit
	longest = max(longest, saturating.Add(hint, max(hint/2, e.throttled.Max(1))))
	return min(longest, e.can.MaxDelay)
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
	}
	if n >= e.allowed {
		p = plan{outcome: DeadLetter, reason: lull.AttemptsExhausted.String()}
		if step.Done {
			return p
		}
	}
	switch {
	case !step.Done && v.After > 0:
		p.after, p.wait, p.quick = step.Wait, step.Wait, true // the hint, and jitter
	case !step.Done:
		p.wait, p.quick = e.draw(n, v.Kind), true
		p.after = p.wait
	case step.Reason == lull.CallerCanceled, step.Reason == lull.CircuitOpen:
		p.after = max(e.draw(n, v.Kind), v.After)
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

// classified is Dependency.Classify: the marks of an error first, then the classifier.
// A mark is found by marking once more: each leaves the code of the one before.
func classified(err error, classify lull.Classifier) lull.Verdict {
	if lull.Classify(lull.Transient(err)).Code == "transient" && lull.Classify(lull.Permanent(err)).Code == "permanent" {
		return classify(err)
	}
	return lull.Classify(err)
}
