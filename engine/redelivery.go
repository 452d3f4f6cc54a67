package engine

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/internal/chance"
)

// An Outcome is what becomes of a message that was delivered.
type Outcome uint8

const (
	// Ack: it was handled.
	Ack Outcome = iota + 1
	// Retry: it failed, and is to be delivered again after a while.
	Retry
	// Defer: it was not tried, or this is not to count, and is to be delivered again
	// after a while.
	Defer
	// DeadLetter: it will not be tried again, and is put where somebody can look at it.
	DeadLetter
	// Drop: it will not be tried again, and nobody needs to look at it.
	Drop
)

var outcomeNames = [...]string{"none", "ack", "retry", "defer", "dead-letter", "drop"}

// String is the outcome as a label, such as "dead-letter".
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// A Broker is what a broker can do, as far as the engine decides by it.
type Broker struct {
	// MaxDelay is the longest that a message can be made to wait. Zero: it cannot.
	MaxDelay time.Duration
	// FreeDefer: a message that is deferred keeps its attempt number.
	FreeDefer bool
}

// A Delivery is one delivery of a message, as far as the engine decides about it.
type Delivery struct {
	Broker
	Attempt int           // the number of the attempt that it is, from 1
	Left    time.Duration // for how long retries may still be asked for; Never: for ever
}

// A Redelivery is what becomes of a message, and when it comes again. A call that gets no
// retry is over; a message has to come back, or be a dead letter. What the Step of a call
// means for a message is decided here, and queue consumers carry it out.
type Redelivery struct {
	Outcome Outcome
	// After is how long the message waits before it is delivered again (Retry, Defer).
	After time.Duration
	// Reason is why it is a dead letter (DeadLetter).
	Reason Reason
	// Here: the retry is granted, and may as well be made in this delivery, after Wait.
	Here bool
	Wait time.Duration
}

func deadLetter(why Reason) Redelivery { return Redelivery{Outcome: DeadLetter, Reason: why} }

// Deliver returns whether the message of d may be handled at all. One that was delivered
// more often than the policy allows attempts has made its consumers crash.
func (p *Plan) Deliver(d Delivery) (r Redelivery, ok bool) {
	if d.Attempt > p.attempts {
		return deadLetter(Crashed), false
	}
	return Redelivery{}, true
}

// ResumeDelivery is Resume for the attempt that d is. Again: the message may be handled
// again in this delivery, so that the engine grants a retry even of the last attempt.
func (s *State) ResumeDelivery(now time.Duration, spec Spec, d Delivery, again bool) (Call, Step) {
	made := d.Attempt - 1
	if again {
		made = max(min(made, s.Current().plan.attempts-2), 0)
	}
	return s.Resume(now, spec, made)
}

// Redeliver is Next for an attempt that was a delivery of a message, and decides what
// becomes of the message. The call is Done afterwards: the retry, if there is one, is a
// call of its own, in this process or another.
func (c *Call) Redeliver(now time.Duration, v Verdict, d Delivery, random func() uint64) Redelivery {
	step := c.Next(now, v, random)
	if !step.Done {
		c.finish(now, Resumed, random)
	}
	if v.Kind == KindSuccess {
		return Redelivery{Outcome: Ack}
	}
	return c.s.redeliver(d, v, step, random)
}

// RedeliverAbandoned decides what becomes of a message of which an attempt failed with v
// without showing anything of the dependency, so that its call was abandoned or never
// began. After is how long the message has to wait at least. It is kept below the longest
// wait of the policy.
func (s *State) RedeliverAbandoned(d Delivery, v Verdict, after time.Duration, random func() uint64) Redelivery {
	r := s.redeliver(d, v, done(Canceled), random)
	if r.Outcome == Retry {
		r.After = max(r.After, min(after, s.plan.policy.LongestRedelivery(d.Attempt, d.Broker)))
	}
	return r
}

// redeliver decides what becomes of a message whose attempt ended with v, which the engine
// answered with step.
func (s *State) redeliver(d Delivery, v Verdict, step Step, random func() uint64) Redelivery {
	p := s.plan
	r := Redelivery{Outcome: Retry}
	if step.Done {
		switch step.Reason {
		case Permanent, HintTooLong:
			return deadLetter(step.Reason)
		}
		if v.After > p.policy.HintLimit { // another reason came before this one
			return deadLetter(HintTooLong)
		}
	}
	if d.Attempt >= p.attempts {
		r = deadLetter(AttemptsExhausted)
		if step.Done {
			return r
		}
	}
	switch {
	case !step.Done:
		r.After, r.Wait, r.Here = step.Wait, step.Wait, true
	case step.Reason == Canceled, step.Reason == CircuitOpen:
		r.After = s.Wait(d.Attempt, v, random)
	case step.Reason == BudgetExhausted, step.Reason == Unanswered:
		r.After = max(p.afterBudget(d.Attempt, random), v.After)
	default:
		r.After = max(upperHalf(p.policy.longestBackoff(), random), v.After)
	}
	return p.Bound(r, d)
}

// afterBudget draws the wait of a message for whose retry no budget was left after attempt
// n. In a call that is the end. A message comes back as if it had failed three times more:
// eight times as late with the usual factor of two. It need not be as late as the policy
// ever has it: what failed in the seconds before a breaker opens would then be the last to
// be handled when all is well again, by minutes.
func (p *Plan) afterBudget(n int, random func() uint64) time.Duration {
	longest := max(p.policy.Backoff.Max(n+3), p.policy.ThrottleBase)
	return upperHalf(min(longest, p.policy.longestBackoff()), random)
}

// upperHalf draws a wait between half of the longest and the longest.
func upperHalf(longest time.Duration, random func() uint64) time.Duration {
	return longest/2 + time.Duration(chance.UpTo(uint64(longest/2), random))
}

// longestBackoff is the longest wait that the schedule comes to, given a policy with its
// defaults filled in.
func (p Policy) longestBackoff() time.Duration {
	return max(p.Backoff.Max(max(p.allowed()-1, 1)), p.ThrottleBase)
}

// LongestRedelivery is the longest wait of a message after attempt n, from 1, whatever it
// is for.
func (p Policy) LongestRedelivery(n int, b Broker) time.Duration {
	p = p.WithDefaults()
	return min(max(p.LongestWait(n), p.longestBackoff(), p.HintLimit), b.MaxDelay)
}

// Bound is r, held to what the broker can do and the policy's deadline allows. A retry that
// would begin after the deadline is not made: the message is a dead letter.
func (p *Plan) Bound(r Redelivery, d Delivery) Redelivery {
	r.After = min(r.After, d.MaxDelay)
	if r.Wait >= d.Left {
		r.Here = false
	}
	switch {
	case r.Outcome == DeadLetter:
		r.After = 0
	case r.Outcome == Retry && r.After >= d.Left:
		return deadLetter(Deadline)
	}
	return r
}

// FreeProbe is r for a message whose attempt, which failed with v, was a probe of a breaker
// that is not closed. It counts as no attempt, where the broker can and free, which is asked
// last, returns true ([Probes.Free]).
func (s *State) FreeProbe(r Redelivery, d Delivery, v Verdict, free func() bool, random func() uint64) Redelivery {
	if !d.FreeDefer || r.Here || r.Outcome != Retry && r.Reason != AttemptsExhausted || !free() {
		return r
	}
	return s.plan.Bound(Redelivery{Outcome: Defer, After: s.Wait(d.Attempt, v, random)}, d)
}

// BehindOpenCircuit is r for a message that failed because the circuit breaker of something
// that its handler calls is open, until retryAt from now. Tried: that was called before
// the breaker opened. Where it was not, and a deferral is free, the message has made no
// attempt.
func (s *State) BehindOpenCircuit(r Redelivery, d Delivery, retryAt time.Duration, tried bool, random func() uint64) Redelivery {
	if r.Outcome == Retry {
		r.After = max(r.After, min(retryAt, s.plan.policy.LongestRedelivery(d.Attempt, d.Broker)))
		r.Here = false
	}
	if !tried && d.FreeDefer {
		r = Redelivery{Outcome: Defer, After: max(r.After, retryAt, s.Wait(d.Attempt, Verdict{Kind: KindTransient}, random))}
	}
	return s.plan.Bound(r, d)
}

// RecheckCircuit is how often to look at a breaker that does not know when it lets a probe
// pass: one that was forced open, or whose probes are under way.
const RecheckCircuit = 250 * time.Millisecond

// leastHold is the shortest wait of a message that was refused for another reason than an
// open circuit.
const leastHold = 10 * time.Millisecond

// AskAgain is how long a message waits whose attempt was refused at now before it began:
// until the breaker lets a probe pass, or for about as long as after a first failure that
// asks for fewer calls.
func (s *State) AskAgain(now time.Duration, why Reason, random func() uint64) time.Duration {
	if b := s.Breaker(); b != nil && why == CircuitOpen {
		if at := b.RetryAt(now); at > now {
			return at - now
		}
		return RecheckCircuit
	}
	return max(s.Wait(1, Verdict{Kind: KindRateLimited}, random), leastHold)
}
