package engine

import (
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
)

// A MessageOutcome is what happens to a message that was delivered.
type MessageOutcome uint8

const (
	// Ack: it was handled.
	Ack MessageOutcome = iota + 1
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
func (o MessageOutcome) String() string { return choice.Name("outcome", outcomeNames[:], o) }

// A BrokerCapabilities describes what a broker can do, as far as decisions depend on it.
type BrokerCapabilities struct {
	// MaxDelay is the longest that a message can be made to wait. Zero: it cannot.
	MaxDelay time.Duration
	// FreeDefer: a message that is deferred keeps its attempt number.
	FreeDefer bool
	// Losses: it tells the deliveries that nobody settled apart from the attempts
	// (Delivery.Lost), and keeps Delivery.Crashes.
	Losses bool
}

// A Delivery is one delivery of a message, as it stands when the engine is asked.
type Delivery struct {
	BrokerCapabilities
	QuickRetries
	Attempt   int           // the number of the attempt that it is, from 1
	Lost      int           // how many deliveries nobody has settled since the last that was settled
	Crashes   int           // how many deliveries ended and nobody knows how; see Plan.Counted
	SeenLost  int           // how many this process has lost in a row, and knows how they ended
	Runs      int           // how often the handler has run in this delivery
	RetryLeft time.Duration // for how long retries may still be asked for; Never: for ever
	KeepLeft  time.Duration // for how long the message can be kept; Never: while it is handled
	Lease     time.Duration // for how long it could be kept at first
	LifeLeft  time.Duration // what is left of the message's own time. Negative: it is over; zero: it has no end
	// Stopping: the consumer is to stop. Ending: this consumer must let go of the message.
	Stopping, Ending bool
}

// QuickRetries is how often the handler is run again in one delivery at most, and the longest
// wait before that.
type QuickRetries struct {
	MaxRuns int
	MaxWait time.Duration
}

// A Redelivery decides what happens to a message, and when it comes again. A call that gets no
// retry is over; a message has to come back, or be a dead letter. What the Step of a call
// means for a message is decided here, and queue consumers carry it out.
type Redelivery struct {
	Outcome MessageOutcome
	// After is how long the message waits before it is delivered again (Retry, Defer).
	After time.Duration
	// Reason is why it is a dead letter (DeadLetter).
	Reason Reason
	// Here: the consumer keeps the message, and may try it again after Wait. Otherwise
	// Outcome is what happens to a retry.
	Here bool
	Wait time.Duration
}

func deadLetter(why Reason) Redelivery { return Redelivery{Outcome: DeadLetter, Reason: why} }

// Within returns r for a message of which life is left ([Delivery].Life). One that would come again
// when its time is over is a dead letter.
func (r Redelivery) Within(life time.Duration) Redelivery {
	if life != 0 && r.After >= life && (r.Outcome == Retry || r.Outcome == Defer) {
		return deadLetter(Expired)
	}
	return r
}

// TooLarge returns r for a message for which the broker has no room, with what its outcome adds to
// it. It cannot come again.
func (r Redelivery) TooLarge() Redelivery {
	if r.Outcome == Retry || r.Outcome == Defer {
		return deadLetter(TooLarge)
	}
	return r
}

// Counted returns d with the Attempt and the Crashes that it has, given what the broker told
// of it and that this process has seen the end of so many of its deliveries that the broker
// takes for lost: these are neither attempts nor crashes.
//
// A broker that tells losses counts attempts that have ended, and a message that was lost once or
// more since it was settled last has made one crash. Elsewhere only a message that comes
// more often than the policy allows attempts has certainly crashed.
func (p *Plan) Counted(d Delivery, seen int) Delivery {
	if d.Losses {
		d.Attempt -= d.Lost
		d.Crashes = max(d.Crashes+min(d.Lost, 1)-seen, 0)
		return d
	}
	d.Attempt, d.Lost, d.Crashes = max(d.Attempt-seen, 1), 0, 0
	if more := d.Attempt - p.attempts; more > 0 {
		d.Crashes = crashesUntilAlone + more - 1
	}
	return d
}

const (
	// crashesUntilAlone is after how many crashes a message is handled alone.
	crashesUntilAlone = 3
	// crashesAlone is how many more it may make then at least. One may be chance: whoever
	// stops the consumer, or a machine that fails, may hit it when it is alone, too.
	crashesAlone = 3
)

// mayCrash is how many crashes make d a dead letter. Attempts may be cut off for other
// reasons than the message, such as a deployment: as many as may fail.
func (p *Plan) mayCrash(d Delivery) int {
	most := crashesUntilAlone + crashesAlone
	if d.Losses {
		most = max(most, p.attempts)
	}
	return most
}

// WorstCrashes returns how often a message may crash its consumer beside its attempts, and the
// longest that it waits between these, all together. Where losses are not told, the attempts
// are among the crashes.
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

// longestBroken is the longest that a message waits whose connection broke. It may have to be
// quick when that is mended: nothing is wrong with the message, nor with what its handler calls.
const longestBroken = 10 * time.Second

// Deliver returns whether the message of d, which is Counted, may be handled at all. One that
// has made its consumer crash when it was alone there, again and again, may not. One that
// was lost is put off, for that to be noted: by as long as it waits after as many failures,
// for what broke the connection may do so again. The time of another may be over. One that comes
// when the consumer is to stop is given back, where that is free.
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

// ResumeDelivery is Resume for the attempt that d is. A message that may be handled again
// in this delivery is granted a retry even of its last attempt.
func (s *State) ResumeDelivery(now time.Duration, spec Spec, d Delivery) (Call, Step) {
	made := min(d.Attempt, s.Current().Plan().attempts) - 1 // it may be more, of one that has crashed
	if d.Runs < d.MaxRuns {
		made = max(min(made, s.Current().Plan().attempts-2), 0)
	}
	return s.Resume(now, spec, made)
}

// Refused decides what happens to a message whose attempt was refused before it began:
// why is of the Step that ResumeDelivery, Attempt or Queue returned. Where a deferral is
// free the message is given back, else it is kept until it may be tried. If the handler
// has run in this delivery and failed, with v, that was an attempt.
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

// circuitPoll is how often to look at a breaker that does not know when it lets a probe
// pass: one that was forced open, or whose probes are under way.
const circuitPoll = 250 * time.Millisecond

// minRefusedWait is the shortest wait of a message that was refused for another reason than an
// open circuit.
const minRefusedWait = 10 * time.Millisecond

// refusedWait is how long a message waits whose attempt was refused at now before it began:
// until the breaker lets a probe pass, or for about as long as after a first failure that
// asks for fewer calls.
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
	// Chosen is what the handler decided itself: Defer, DeadLetter or Drop. Zero: nothing.
	Chosen Redelivery
	// Panicked: a bug of the handler shows nothing of the dependency.
	Panicked bool
	// CutOff is who ended its context before it returned. The consumer is its caller: it does that
	// when the lease ends and when the consumer stops.
	CutOff CutOff
	// Behind: it failed because the circuit breaker of something that it calls is open,
	// until RetryAt from now. Called: that was called before the breaker opened.
	Behind, Called bool
	RetryAt        time.Duration
}

// FromBelow returns the verdict on an attempt of a message whose handler failed because a call
// that it made has ended for the reason why, after attempts of which v is the verdict on the
// last. To a caller further up that end is final, for that layer has made the retries. A
// message comes again after a wait of another order. So what the call gave up on is transient
// here, and so is what it could not repeat safely, and a call that found no room. It is permanent
// only if the dependency refused the request for good.
func FromBelow(why Reason, v Verdict, attempts int) Verdict {
	below := Verdict{Kind: KindTransient, Code: why.String(), NeverSent: attempts == 0}
	switch why {
	case HintTooLong:
		below.Kind, below.After = KindRateLimited, v.After
	case Overloaded:
		below.Kind = KindOverloaded
	case Deadline, Unanswered:
		below.Code = CodeTimeout
	case Canceled: // by whom is not known here
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

// Handled is Next for an attempt that was a delivery of a message, and decides what
// becomes of the message. The call is Done afterwards: the retry, if there is one, is a
// call of its own, in this process or another. d is the delivery with the run that has
// ended. Free returns whether a probe is no attempt of the message ([ProbeCounter.Free]), and
// is asked last.
func (c *Call) Handled(now time.Duration, h Handled, d Delivery, free func(most int) bool, random func() uint64) Redelivery {
	s := c.s
	stopped := d.Stopping && h.CutOff == CutByCaller // of which a panic may be a result, too
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
	step := c.Next(now, h.Verdict, random)
	if c.queueChecks > 0 { // a message does not wait here to see more
		step = done(Unanswered)
	}
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

// abandoned decides what happens to a message of which an attempt failed with v without
// showing anything of the dependency, so that its call was abandoned or never began. After
// is how long the message has to wait at least. It is kept below the longest wait of the
// policy.
func (s *State) abandoned(v Verdict, after time.Duration, d Delivery, random func() uint64) Redelivery {
	r := s.redeliver(v, done(Canceled), d, random)
	if r.Outcome == Retry {
		r.After = max(r.After, min(after, s.Plan().policy.LongestRedelivery(d.Attempt, d.BrokerCapabilities)))
	}
	return r
}

// quick is r, with a retry in this delivery only where it is allowed and there is time for
// it. It is not begun where the lease may end before the handler could: an attempt that is
// cut off is one wasted.
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

// redeliver decides what happens to a message whose attempt ended with v, which the engine
// answered with step. Only a failure that is known to be permanent shows that no attempt can
// succeed. A call ends with a failure of which nothing is known; a message comes again, for as many
// attempts as the policy allows.
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

// afterBudget draws the wait of a message for whose retry no budget was left after attempt
// n. It comes back as if it had failed three times more: eight times as late with the usual
// factor of two.
func (p *Plan) afterBudget(n int, random func() uint64) time.Duration {
	longest := max(p.policy.Backoff.Max(n+3), p.policy.RateLimitedBase)
	return upperHalf(min(longest, p.policy.longestBackoff()), random)
}

// upperHalf draws a wait between half of the longest and the longest.
func upperHalf(longest time.Duration, random func() uint64) time.Duration {
	return longest/2 + time.Duration(chance.UpTo(uint64(longest/2), random))
}

// longestBackoff is the longest wait that the schedule comes to, given a policy with its
// defaults filled in.
func (p Policy) longestBackoff() time.Duration {
	return max(p.Backoff.Max(max(p.allowed()-1, 1)), p.RateLimitedBase)
}

// LongestRedelivery is the longest wait of a message after attempt n, from 1, whatever it
// is for.
func (p Policy) LongestRedelivery(n int, b BrokerCapabilities) time.Duration {
	p = p.WithDefaults()
	return min(max(p.LongestWait(n), p.longestBackoff(), p.HintLimit), b.MaxDelay)
}

// bound is r, held to what the broker can do and the policy's deadline allows. A retry that
// would begin after the deadline is not made: the message is a dead letter.
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

// freeProbe is r for a message whose attempt, which failed with v, was a probe of a breaker
// that is not closed. It counts as no attempt, where the broker can and free allows it.
func (s *State) freeProbe(r Redelivery, v Verdict, d Delivery, free func(most int) bool, random func() uint64) Redelivery {
	if !d.FreeDefer || r.Here || r.Outcome != Retry && r.Reason != AttemptsExhausted || !free(s.Plan().attempts) {
		return r
	}
	return s.Plan().limitTo(Redelivery{Outcome: Defer, After: s.Wait(d.Attempt, v, random)}, d)
}

// behindCircuit is r for a message that failed behind an open circuit (Handled.Behind). If
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
