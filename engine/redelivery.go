package engine

import (
	"time"

	"github.com/lullgo/lull/engine/consumers"
	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
)

// A MessageOutcome is what happens to a message that was delivered.
type MessageOutcome uint8

const (
	// Ack: the message was handled.
	Ack MessageOutcome = iota + 1
	// Retry: handling failed, and the message is to be delivered again after a wait.
	Retry
	// Defer: the message was not tried, or its attempt does not count. It is to be delivered
	// again after a wait.
	Defer
	// DeadLetter: the message is not tried again, and is kept where somebody can look at it.
	DeadLetter
	// Drop: the message is not tried again, and nobody needs to look at it.
	Drop
)

var outcomeNames = [...]string{"none", "ack", "retry", "defer", "dead-letter", "drop"}

// String returns the outcome as a label, such as "dead-letter".
func (o MessageOutcome) String() string { return choice.Name("outcome", outcomeNames[:], o) }

// A BrokerCapabilities describes what a broker can do, as far as decisions depend on it.
type BrokerCapabilities struct {
	// MaxDelay is the longest that a message can be made to wait. Zero: it cannot.
	MaxDelay time.Duration
	// FreeDefer: a message that is deferred keeps its attempt number.
	FreeDefer bool
	// Losses: the broker counts deliveries that nobody settled apart from attempts
	// (Delivery.Lost), and keeps Delivery.Crashes.
	Losses bool
}

// A Delivery is one delivery of a message, when the engine decides.
type Delivery struct {
	BrokerCapabilities
	QuickRetries
	Attempt   int           // the number of the attempt, from 1
	Lost      int           // deliveries that nobody settled since the last that was settled
	Crashes   int           // deliveries whose end nobody knows; see Plan.Counted
	SeenLost  int           // deliveries in a row that this process lost, and whose end it knows
	Runs      int           // how often the handler has run in this delivery
	RetryLeft time.Duration // how long retries may still be asked for; Never: for ever
	KeepLeft  time.Duration // how long the message can be kept; Never: while it is handled
	Lease     time.Duration // how long it could be kept at first
	LifeLeft  time.Duration // what is left of the message's own time. Negative: it is over; zero: it has no end
	// Stopping: the consumer is to stop. Ending: this consumer must let go of the message.
	Stopping, Ending bool
}

// QuickRetries bounds how often the handler runs again in one delivery, and the wait before that.
type QuickRetries struct {
	MaxRuns int
	MaxWait time.Duration
}

// A Redelivery decides what happens to a message, and when it comes again. A call without a retry
// is over; a message must come back, or become a dead letter.
type Redelivery struct {
	Outcome MessageOutcome
	// After is how long the message waits before it is delivered again (Retry, Defer).
	After time.Duration
	// Reason is why it is a dead letter (DeadLetter).
	Reason Reason
	// Here: the consumer keeps the message, and may try it again after Wait. Otherwise Outcome is
	// what happens to a retry.
	Here bool
	Wait time.Duration
}

func deadLetter(why Reason) Redelivery { return Redelivery{Outcome: DeadLetter, Reason: why} }

// Within returns r for a message with that [Delivery].LifeLeft. A message that would come again
// after its time is a dead letter.
func (r Redelivery) Within(life time.Duration) Redelivery {
	if life != 0 && r.After >= life && (r.Outcome == Retry || r.Outcome == Defer) {
		return deadLetter(Expired)
	}
	return r
}

// TooLarge returns r for a message that is too large for the broker with what r adds to it. It
// cannot come again.
func (r Redelivery) TooLarge() Redelivery {
	if r.Outcome == Retry || r.Outcome == Defer {
		return deadLetter(TooLarge)
	}
	return r
}

// Counted returns d with its Attempt and Crashes, given what the broker reported. seen is how
// many deliveries the broker counts as lost though this process knows their end: these are
// neither attempts nor crashes.
//
// A broker with Losses counts attempts that have ended, and a message that was lost since it was
// settled last has made one crash. Elsewhere a message has certainly crashed only if it comes
// more often than the policy allows attempts.
func (p *Plan) Counted(d Delivery, seen int) Delivery {
	if d.Losses {
		d.Attempt -= d.Lost
		d.Crashes = max(d.Crashes+min(d.Lost, 1)-seen, 0)
		return d
	}
	d.Attempt, d.Lost, d.Crashes = max(d.Attempt-seen, 1), 0, 0
	if more := d.Attempt - p.attempts; more > 0 {
		d.Crashes = consumers.CrashesUntilAlone + more - 1
	}
	return d
}

// crashesAlone is how many more crashes a message that is handled alone may make at least. A single
// one may have another cause: somebody stops the consumer, or its machine fails.
const crashesAlone = 3

// mayCrash returns how many crashes make d a dead letter. A deployment may cut off attempts, too,
// so it is at least as many as attempts may fail.
func (p *Plan) mayCrash(d Delivery) int {
	most := consumers.CrashesUntilAlone + crashesAlone
	if d.Losses {
		most = max(most, p.attempts)
	}
	return most
}

// WorstCrashes returns how often a message may crash its consumer beside its attempts, and the
// sum of the longest waits between crashes. Without Losses, the attempts are among the crashes.
func (p Policy) WorstCrashes(b BrokerCapabilities) (crashes int, waits time.Duration) {
	p = p.WithDefaults()
	if !b.Losses {
		return crashesAlone, 0
	}
	crashes = (&Plan{attempts: p.allowed()}).mayCrash(Delivery{BrokerCapabilities: b})
	for n := 1; n < crashes; n++ {
		waits = saturating.Add(waits, min(p.Backoff.Max(n), b.MaxDelay))
	}
	return crashes, waits
}

// longestBroken is the longest wait of a message whose connection broke: nothing is wrong with
// the message, nor with what its handler calls.
const longestBroken = 10 * time.Second

// Deliver decides whether the message of d, which is Counted, may be handled. It is a dead letter
// if it crashed its consumer alone again and again, or if its time is over. It is deferred if it
// was lost, so that the loss is recorded, by the wait after as many failures; and if the consumer
// is to stop and a deferral is free.
func (p *Plan) Deliver(d Delivery, random func() uint64) (r Redelivery, ok bool) {
	switch {
	case d.Crashes >= p.mayCrash(d):
		return deadLetter(Crashed), false
	case d.LifeLeft < 0:
		return deadLetter(Expired), false
	case d.Stopping && d.FreeDefer:
		return Redelivery{Outcome: Defer}, false
	case d.Losses && d.Lost > 0:
		wait := p.waits.Delay(max(d.Crashes, 1), 0, random)
		if d.Crashes == 0 {
			wait = min(p.waits.Delay(max(d.SeenLost, 1), 0, random), longestBroken)
		}
		return Redelivery{Outcome: Defer, After: min(wait, d.MaxDelay)}, false
	}
	return Redelivery{}, true
}

// ResumeDelivery is Resume for the attempt that d is. If the handler may run again in this
// delivery, even the last attempt may be granted a retry.
func (s *State) ResumeDelivery(now time.Duration, spec Spec, d Delivery) (Call, Step) {
	made := min(d.Attempt, s.Current().Plan().attempts) - 1 // after crashes Attempt may be larger
	if d.Runs < d.MaxRuns {
		made = max(min(made, s.Current().Plan().attempts-2), 0)
	}
	return s.Resume(now, spec, made)
}

// Refused decides what happens to a message whose attempt was refused before it began; why is the
// Reason of ResumeDelivery, Attempt or JoinQueue. Where a deferral is free the message is given
// back, else it is kept until it may be tried. If the handler has run in this delivery and failed
// with v, that was an attempt.
func (s *State) Refused(now time.Duration, why Reason, v Verdict, d Delivery, random func() uint64) Redelivery {
	s = s.Current()
	var wait time.Duration
	if !d.Stopping {
		wait = s.refusedWait(now, why, random)
		if !d.FreeDefer && !d.Ending {
			return Redelivery{Here: true, Wait: wait}
		}
		wait = min(wait, d.MaxDelay)
	}
	if d.Runs == 0 {
		return Redelivery{Outcome: Defer, After: wait}
	}
	return s.abandoned(v, wait, d, random)
}

// circuitPoll is how often to ask a breaker that does not know when it lets a probe pass: it was
// forced open, or its probes are under way.
const circuitPoll = 250 * time.Millisecond

// minRefusedWait is the shortest wait of a message that was refused for another reason than
// CircuitOpen.
const minRefusedWait = 10 * time.Millisecond

// refusedWait returns how long a message waits whose attempt was refused at now: until the
// breaker lets a probe pass, or about as long as after a first rate-limited failure.
func (s *State) refusedWait(now time.Duration, why Reason, random func() uint64) time.Duration {
	if b := s.Breaker(); b != nil && why == CircuitOpen {
		if at := b.RetryAt(now); at > now {
			return at - now
		}
		return circuitPoll
	}
	return max(s.Wait(1, Verdict{Kind: KindRateLimited}, random), minRefusedWait)
}

// A Handled is how the handler of a message has ended.
type Handled struct {
	Verdict Verdict
	// Chosen is the handler's own decision: Defer, DeadLetter or Drop. Zero: none.
	Chosen Redelivery
	// Panicked: a bug of the handler shows nothing of the dependency.
	Panicked bool
	// CutOff is who ended its context before it returned. The consumer is its caller: it does so
	// when the lease ends, and when it stops.
	CutOff CutOff
	// Behind: it failed because the circuit breaker of something that it calls is open, for
	// another RetryAt. Called: it had called that before the breaker opened.
	Behind, Called bool
	RetryAt        time.Duration
}

// FromBelow returns the verdict on an attempt of a message whose handler failed because a call of
// it ended for the reason why; v is the verdict on that call's last attempt. For a caller further
// up, that end is final, since the call has made its retries. But a message comes again much
// later. So what the call gave up on, could not repeat safely, or found no room for, is transient
// here. It is permanent only if the dependency refused the request for good.
func FromBelow(why Reason, v Verdict, attempts int) Verdict {
	below := Verdict{Kind: KindTransient, Code: why.String(), NeverSent: attempts == 0}
	switch why {
	case HintTooLong:
		below.Kind, below.After = KindRateLimited, v.After
	case Overloaded:
		below.Kind = KindOverloaded
	case Deadline, Unanswered:
		below.Code = CodeTimeout
	case Canceled: // nobody knows by whom
		below.Kind = KindUnclassified
	case Permanent:
		below.Kind, below.Code = KindUnclassified, CodeRetriedBelow
		if v.Kind == KindPermanent && !v.NeverSent {
			below.Kind = KindPermanent
		}
	case Limited:
	default:
		if v.Kind == KindRateLimited {
			below.Kind = KindRateLimited
		}
	}
	return below
}

// Handled is Next for an attempt that was a delivery of a message, and decides what becomes of
// the message. The call is Done afterwards: the retry is a call of its own, in this process or
// another. d is the delivery after the handler has run. free reports whether a probe is no
// attempt of the message ([consumers.ProbeCounter.Free]), and is called last.
func (c *Call) Handled(now time.Duration, h Handled, d Delivery, free func(most int) bool, random func() uint64) Redelivery {
	s := c.s
	stopped := d.Stopping && h.CutOff == CutByCaller // this may cause a panic, too
	if h.Panicked {
		c.Abandon(now)
		if stopped {
			return Redelivery{Outcome: Defer}
		}
		return s.abandoned(h.Verdict, 0, d, random)
	}
	if h.Verdict.Kind != KindSuccess {
		h.Verdict = h.Verdict.Failed(h.CutOff)
	}
	step := c.next(now, h.Verdict, situation{message: true}, random)
	if !c.Over() {
		c.finish(now, Resumed, random)
	}
	switch {
	case h.Verdict.Kind == KindSuccess:
		return Redelivery{Outcome: Ack}
	case h.Chosen.Outcome == Defer && !d.FreeDefer && !d.Stopping && d.Attempt >= s.Plan().attempts:
		return deadLetter(AttemptsExhausted) // or its next deliveries would look like crashes
	case h.Chosen.Outcome != 0:
		return s.Plan().limitTo(h.Chosen, d)
	case stopped || d.Stopping && h.Verdict.Kind != KindPermanent:
		// What it uses may end at the same time as the consumer, or before (a child process, a
		// database's pool): it is no failure of the message.
		return Redelivery{Outcome: Defer}
	}
	r := s.redeliver(h.Verdict, step, d, random)
	if h.CutOff == CutByCaller {
		return r
	}
	if c.Probe() {
		r = s.freeProbe(r, h.Verdict, d, free, random)
	}
	if h.Behind && h.Verdict.Kind != KindPermanent && h.Verdict.Kind != KindUnclassified {
		r = s.behindCircuit(r, h, d, random)
	}
	return s.Plan().limitQuick(r, d)
}

// abandoned decides what happens to a message whose attempt failed with v and shows nothing of
// the dependency, so that its call was abandoned or never began. after is how long the message
// must wait at least, up to the longest wait of the policy.
func (s *State) abandoned(v Verdict, after time.Duration, d Delivery, random func() uint64) Redelivery {
	r := s.redeliver(v, done(Canceled), d, random)
	if r.Outcome == Retry {
		r.After = max(r.After, min(after, s.Plan().policy.LongestRedelivery(d.Attempt, d.BrokerCapabilities)))
	}
	return r
}

// limitQuick returns r without a retry in this delivery, unless that is allowed and the lease
// leaves time for it.
func (p *Plan) limitQuick(r Redelivery, d Delivery) Redelivery {
	room := d.Lease / 2
	if t := p.AttemptTimeout(); t > 0 {
		room = min(t, room)
	}
	if d.Runs > d.MaxRuns || r.Wait > d.MaxWait || d.Stopping || d.KeepLeft < r.Wait+room {
		r.Here = false
	}
	return r
}

// redeliver decides what happens to a message whose attempt ended with v, for which the engine
// returned step. Only a failure that is known to be permanent shows that no attempt can succeed.
// After one of which nothing is known, a call ends; a message comes again, as often as the policy
// allows.
func (s *State) redeliver(v Verdict, step Step, d Delivery, random func() uint64) Redelivery {
	p := s.Plan()
	r := Redelivery{Outcome: Retry}
	if step.Done {
		if step.Reason == HintTooLong || step.Reason == Permanent && v.Kind == KindPermanent {
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
	case step.Reason == Canceled, step.Reason == CircuitOpen, step.Reason == Permanent: // of the last nothing is known
		r.After = s.Wait(d.Attempt, v, random)
	case step.Reason == BudgetExhausted, step.Reason == Unanswered:
		r.After = max(p.afterBudget(d.Attempt, random), v.After)
	default:
		r.After = max(upperHalf(p.policy.longestBackoff(), random), v.After)
	}
	return p.limitTo(r, d)
}

// afterBudget draws the wait of a message for whose retry no budget was left after attempt n: the
// wait after three more failures, eight times as long with the usual factor of two.
func (p *Plan) afterBudget(n int, random func() uint64) time.Duration {
	longest := max(p.policy.Backoff.Max(n+3), p.policy.RateLimitedBase)
	return upperHalf(min(longest, p.policy.longestBackoff()), random)
}

// upperHalf draws a wait between half of the longest and the longest.
func upperHalf(longest time.Duration, random func() uint64) time.Duration {
	return longest/2 + time.Duration(chance.UpTo(uint64(longest/2), random))
}

// longestBackoff returns the longest wait of the schedule, for a policy with its defaults filled
// in.
func (p Policy) longestBackoff() time.Duration {
	return max(p.Backoff.Max(max(p.allowed()-1, 1)), p.RateLimitedBase)
}

// LongestRedelivery returns the longest wait of a message after attempt n, from 1, for any
// reason.
func (p Policy) LongestRedelivery(n int, b BrokerCapabilities) time.Duration {
	p = p.WithDefaults()
	return min(max(p.LongestWait(n), p.longestBackoff(), p.HintLimit), b.MaxDelay)
}

// limitTo returns r within what the broker can do and the policy's deadline allows. A message
// whose retry would begin after the deadline is a dead letter.
func (p *Plan) limitTo(r Redelivery, d Delivery) Redelivery {
	r.After = min(r.After, d.MaxDelay)
	if r.Wait >= d.RetryLeft {
		r.Here = false
	}
	switch {
	case r.Outcome == DeadLetter:
		r.After = 0
	case r.Outcome == Retry && r.After >= d.RetryLeft:
		return deadLetter(Deadline)
	}
	return r
}

// freeProbe returns r for a message whose attempt failed with v and was a probe. It counts as no
// attempt, if a deferral is free and free allows it.
func (s *State) freeProbe(r Redelivery, v Verdict, d Delivery, free func(most int) bool, random func() uint64) Redelivery {
	if !d.FreeDefer || r.Here || r.Outcome != Retry && r.Reason != AttemptsExhausted || !free(s.Plan().attempts) {
		return r
	}
	return s.Plan().limitTo(Redelivery{Outcome: Defer, After: s.Wait(d.Attempt, v, random)}, d)
}

// behindCircuit returns r for a message that failed behind an open circuit (Handled.Behind). If
// nothing was called, and a deferral is free, the message has made no attempt.
func (s *State) behindCircuit(r Redelivery, h Handled, d Delivery, random func() uint64) Redelivery {
	if r.Outcome == Retry {
		r.After = max(r.After, min(h.RetryAt, s.Plan().policy.LongestRedelivery(d.Attempt, d.BrokerCapabilities)))
		r.Here = false
	}
	if !h.Called && d.FreeDefer {
		r = Redelivery{Outcome: Defer, After: max(r.After, h.RetryAt, s.Wait(d.Attempt, Verdict{Kind: KindTransient}, random))}
	}
	return s.Plan().limitTo(r, d)
}
