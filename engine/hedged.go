package engine

import (
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/throttle"
)

// A HedgedCall is a [Call] whose attempts may run beside one another, as
// Policy.Hedge allows. It begins as any call does, on a dependency for which Hedges
// is true:
//
//	call, step := s.Start(now, spec)          // may the call begin?
//	c := engine.HedgedCall{Call: &call}
//	step = c.Attempt(now, random)             // may its first attempt?
//	wait := c.First(now, &first)              // it has; when to ask for a hedge
//	step = c.Hedge(now, &second, random)      // may another attempt run beside it?
//	step = c.Ended(now, &first, v, random)    // one of them ended like this: what now?
//	c.Release(now, &second)                   // it has lost, and has returned
//
// From First on, the ends of attempts are reported to Ended, not to Next. It is used by
// one goroutine at a time.
type HedgedCall struct {
	*Call
	hedges   hedge.Flight
	inFlight uint8        // attempts that hold what they took
	stop     Reason       // no further attempt begins, for this reason; Success: one may
	next     budget.Class // of the next attempt, unless it is paid for already
	free     bool         // the next attempt takes the place of one that cost nothing and failed on the caller's side
	unsure   bool         // there may be a line that the attempt is in which ended last
	// notBefore is until when the server asked to wait, in answer to any attempt.
	notBefore time.Duration
}

// A HedgedAttempt is one attempt of a [HedgedCall], from First or Hedge until Ended or
// Release. The zero HedgedAttempt is none.
type HedgedAttempt struct {
	began   time.Duration
	receipt budget.Receipt
	live    bool
	first   bool
	paid    bool // receipt paid for it
	permit  bool // it has a place under the concurrency limit
	counted bool // as a hedge in flight
	passed  bool // its end is yet to be reported to the throttle
}

// Live reports whether the attempt has begun and holds what it took.
func (a *HedgedAttempt) Live() bool { return a.live }

// Began is when the attempt began.
func (a *HedgedAttempt) Began() time.Duration { return a.began }

// InFlight is the number of attempts that hold what they took.
func (c *HedgedCall) InFlight() int { return int(c.inFlight) }

// First notes that the attempt which Attempt has just begun is r, and returns after
// how long to ask Hedge for another beside it; the largest duration if never.
func (c *HedgedCall) First(now time.Duration, r *HedgedAttempt) time.Duration {
	*r = HedgedAttempt{began: c.began, live: true, first: true, permit: c.permit, passed: c.pass == underWay}
	c.permit, c.pass = false, noPass
	c.hedges, c.inFlight, c.stop = hedge.Flight{}, 1, Success
	c.next, c.free, c.unsure, c.notBefore = 0, false, false, now
	if c.s.Plan().hedges == nil || c.repeat != anyTime || c.token.Probe() {
		return Never
	}
	c.hedges = c.s.remember().hedger.Start(now)
	return c.untilHedge(now)
}

// untilHedge is how long to wait before the next hedge while no attempt ends.
func (c *HedgedCall) untilHedge(now time.Duration) time.Duration {
	wait, ok := c.hedges.Delay()
	if !ok || wait >= c.left(now) || int(c.attempts) >= c.s.Plan().attempts {
		return Never
	}
	return wait
}

// Hedge asks whether another attempt may begin at now: beside those in flight, or
// after the last of them has failed. If the Step is neither Done nor Full it has
// begun, and is r. If it is Full, it has not. Either way Step.Wait is when to ask
// again if no attempt has ended by then; the largest duration if never.
//
// It asks: may the operation be done again? Are there attempts left, and is there
// time? Is the breaker closed? If others are in flight, does the hedger allow one
// more? Does the throttle? Is there room under the concurrency limit? And does the
// retry budget pay?
func (c *HedgedCall) Hedge(now time.Duration, r *HedgedAttempt, random func() uint64) Step {
	*r = HedgedAttempt{}
	if c.Over() {
		return done(c.reason)
	}
	no, step := c.another(now, r, random)
	if no == Success && step.Wait == 0 {
		c.attempts++
		c.inFlight++
		r.began, r.live, r.passed = now, true, c.pass == passed
		c.pass, c.next, c.free, c.unsure = noPass, 0, false, false
		return Step{Wait: c.untilHedge(now)}
	}
	c.giveBack(now, r)
	if no == Success {
		return Step{Decision: Decision{Full: true}, Wait: step.Wait}
	}
	if c.inFlight == 0 {
		exhausted := step.Exhausted
		step = c.finish(now, no, random)
		step.Exhausted = exhausted
		return step
	}
	c.forget(now)
	step.Full, step.Reason, step.Wait = true, no, Never
	return step
}

// another returns why no attempt may begin, or Success; then with how long the
// throttle holds it back. What it has taken it notes in r.
func (c *HedgedCall) another(now time.Duration, r *HedgedAttempt, random func() uint64) (Reason, Step) {
	switch {
	case c.stop != Success:
		return c.stop, Step{}
	case int(c.attempts) >= c.s.Plan().attempts:
		return AttemptsExhausted, Step{}
	}
	if no := c.recheck(now); no != Success {
		return no, Step{}
	}
	if c.looks > 0 { // nothing is in flight
		switch step := c.look(now, random); {
		case step.Done:
			return step.Reason, step
		case step.Wait > 0:
			return Success, step
		}
	}
	m := c.s.remember()
	if c.inFlight > 0 {
		switch m.hedger.Fire(now, &c.hedges) {
		case hedge.Granted:
		case hedge.TooManyInFlight:
			return TooManyHedges, Step{}
		case hedge.AttemptsInUse:
			return AttemptsExhausted, Step{}
		default:
			return TooManyLate, Step{}
		}
		r.counted = true
	}
	if m.throttle != nil && c.pass == noPass {
		wait, ok := m.throttle.Start(now, random)
		if !ok {
			return Throttled, Step{}
		}
		switch c.pass = passed; {
		case wait >= c.left(now):
			return Deadline, Step{}
		case wait > 0 && c.inFlight > 0: // it comes at once or not at all
			return Throttled, Step{}
		case wait > 0:
			return Success, Step{Wait: wait}
		}
	}
	if m.limiter != nil {
		if !m.limiter.TryAcquire() {
			return Limited, Step{}
		}
		r.permit = true
	}
	if c.paid { // when it was decided on
		r.receipt, r.paid, c.paid = c.receipt, true, false
		return Success, Step{}
	}
	if c.free || c.hinted && c.inFlight == 0 {
		return Success, Step{}
	}
	if c.unsure && !c.noLine() { // it comes beside others, which may show more
		return Unanswered, Step{}
	}
	grant := c.charge(now, c.next, random)
	if !grant.OK {
		return BudgetExhausted, Step{Decision: Decision{Exhausted: grant.Exhausted}}
	}
	r.receipt, r.paid = grant.Receipt, m.budget != nil
	return Success, Step{}
}

// Ended decides after the attempt r has ended with v. The first success is the
// call's result. So is a permanent failure with which the dependency is known to
// answer, since any other attempt would meet it too, and that the caller went away.
// Any other failure is waited out while attempts are in flight: however slow they
// are, it cannot beat a success.
//
// If the Step is not Done, Step.Wait is when to ask Hedge for another attempt: at
// once after a transient failure, as gRFC A6 has it; later if the server asked for
// that, or throttles; the largest duration if never. When the last attempt has
// failed and no other may follow, the call is Done with its failure.
//
// When the call is Done, the attempts that still run have lost: cancel them, and
// call Release when they have returned. Until then they hold what they took from
// limits. Their times are no measure of anything, and none is taken.
func (c *HedgedCall) Ended(now time.Duration, r *HedgedAttempt, v Verdict, random func() uint64) Step {
	if c.Over() || !r.live {
		c.Release(now, r)
		return done(c.reason)
	}
	if r.first && c.hedges != (hedge.Flight{}) {
		c.s.remember().hedger.Done(now, &c.hedges, v.Kind == KindSuccess)
	}
	shows := c.evidenceOf(r.began, v)
	if r.passed {
		r.passed = false
		c.s.remember().throttle.Done(now, load(v, shows))
	}
	paid := r.paid
	c.Release(now, r)
	free := shows == nothing && !c.repay(now, paid, &r.receipt)
	c.began, c.receipt = r.began, r.receipt
	step := c.decide(now, v, shows, flight{hedged: true, beside: c.inFlight > 0, stop: c.stop, free: free}, random)
	switch {
	case step.Done && (v.Kind == KindSuccess || v.Kind == KindCanceled || shows == refusedByReply):
		return c.decided(now, step, random)
	case step.Done && c.inFlight == 0:
		return c.finishWith(now, step, random)
	case step.Done:
		c.stop = step.Reason
		return Step{Wait: Never}
	}
	c.next, c.free, c.unsure = class(v), free, c.inFlight > 0 && c.doubtful(v)
	if step.Wait > 0 {
		c.notBefore = max(c.notBefore, saturating.Add(now, step.Wait))
	}
	step.Wait = max(c.notBefore-now, 0)
	return step
}

// decided ends the call, whatever is in flight. That the first attempt had not
// succeeded by now is all that is known of its latency.
func (c *HedgedCall) decided(now time.Duration, step Step, random func() uint64) Step {
	if c.hedges != (hedge.Flight{}) {
		c.s.remember().hedger.Done(now, &c.hedges, false)
	}
	return c.finishWith(now, step, random)
}

// Release gives back what r holds, which has not ended with a verdict. Ended gives it back itself.
func (c *HedgedCall) Release(now time.Duration, r *HedgedAttempt) {
	if !r.live {
		return
	}
	r.live = false
	c.inFlight--
	c.giveBack(now, r)
	if r.passed {
		r.passed = false
		c.s.remember().throttle.Done(now, throttle.Neutral)
	}
}

// AttemptPanicked is Release for an attempt that panicked. What it has cost is put back, unless the call
// is over.
func (c *HedgedCall) AttemptPanicked(now time.Duration, r *HedgedAttempt) {
	paid := r.paid && !c.Over()
	c.Release(now, r)
	c.repay(now, paid, &r.receipt)
}

func (c *HedgedCall) giveBack(now time.Duration, r *HedgedAttempt) {
	if r.permit {
		c.s.remember().limiter.Release()
	}
	if r.paid {
		c.s.remember().budget.Release(now, r.receipt)
	}
	if r.counted {
		c.s.remember().hedger.Release()
	}
	r.permit, r.paid, r.counted = false, false, false
}
