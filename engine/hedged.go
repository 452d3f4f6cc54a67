package engine

import (
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/throttle"
)

// A HedgedCall is a [Call] whose attempts may run beside one another (Policy.Hedge), on a
// dependency for which Hedges is true:
//
//	call, step := s.Start(now, spec)          // may the call begin?
//	c := engine.HedgedCall{Call: &call}
//	step = c.Attempt(now, random)             // may its first attempt?
//	wait := c.First(now, &first)              // it has; when to ask for a hedge
//	step = c.Hedge(now, &second, random)      // may another attempt run beside it?
//	step = c.Ended(now, &first, v, random)    // one of them ended like this: what now?
//	c.Release(now, &second)                   // it has lost, and has returned
//
// From First on, the ends of attempts are reported to Ended, not to Next. It is used by one
// goroutine at a time.
type HedgedCall struct {
	*Call
	hedges          hedge.Flight
	inFlight        uint8        // attempts that are live
	stop            Reason       // why no further attempt may begin; Success: one may
	next            budget.Class // of the next attempt, unless it is paid for already
	free            bool         // the next attempt is free, as situation.free
	lastMayBeQueued bool         // the attempt that ended last may still be queued
	// notBefore is until when the server asked to wait, in answer to any attempt.
	notBefore time.Duration
}

// A HedgedAttempt is one attempt of a [HedgedCall], from First or Hedge until Ended or Release.
// The zero HedgedAttempt is none.
type HedgedAttempt struct {
	began   time.Duration
	receipt budget.Receipt
	live    bool
	first   bool
	paid    bool // receipt paid for it
	permit  bool // it has a place under the concurrency limit
	counted bool // as a hedge in flight
	passed  bool // the throttle must learn of its end
}

// Live reports whether the attempt has begun, and was neither Ended nor Released.
func (a *HedgedAttempt) Live() bool { return a.live }

// Began returns when the attempt began.
func (a *HedgedAttempt) Began() time.Duration { return a.began }

// InFlight returns how many attempts are live.
func (c *HedgedCall) InFlight() int { return int(c.inFlight) }

// First records that the attempt which Attempt has just begun is r. It returns when to ask Hedge
// for another beside it, or Never.
func (c *HedgedCall) First(now time.Duration, r *HedgedAttempt) time.Duration {
	*r = HedgedAttempt{began: c.began, live: true, first: true, permit: c.permit, passed: c.pass == underWay}
	c.permit, c.pass = false, noPass
	c.hedges, c.inFlight, c.stop = hedge.Flight{}, 1, Success
	c.next, c.free, c.lastMayBeQueued, c.notBefore = 0, false, false, now
	if c.s.Plan().hedges == nil || c.repeat != anyTime || c.token.Probe() {
		return Never
	}
	c.hedges = c.s.memory().hedger.Start(now)
	return c.untilHedge(now)
}

// untilHedge returns how long to wait before the next hedge while no attempt ends.
func (c *HedgedCall) untilHedge(now time.Duration) time.Duration {
	wait, ok := c.hedges.Delay()
	if !ok || wait >= c.left(now) || int(c.attempts) >= c.s.Plan().attempts {
		return Never
	}
	return wait
}

// Hedge decides whether another attempt may begin at now, beside those in flight or after the
// last of them. If the Step is neither Done nor Full the attempt has begun, and is r. If it is
// Full, it has not. Step.Wait is when to ask again if no attempt ends before, or Never.
//
// The operation must be repeatable, attempts and time must be left, and the breaker closed. Then
// the hedger must allow an attempt beside others, the throttle and the concurrency limit must let
// it pass, and the budget must pay.
func (c *HedgedCall) Hedge(now time.Duration, r *HedgedAttempt, random func() uint64) Step {
	*r = HedgedAttempt{}
	if c.Over() {
		return done(c.reason)
	}
	no, step := c.another(now, r, random)
	if no == Success && step.Wait == 0 {
		c.endWait()
		c.attempts++
		c.inFlight++
		r.began, r.live, r.passed = now, true, c.pass == passed
		c.pass, c.next, c.free, c.lastMayBeQueued = noPass, 0, false, false
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
	c.endPass(now)
	step.Full, step.Reason, step.Wait = true, no, Never
	return step
}

// another returns why no attempt may begin, or Success and how long the throttle holds the
// attempt back. It records in r what the attempt holds.
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
	if c.waits == forAnswers { // nothing is in flight
		if step := c.checkQueue(now, random); step.Done {
			return step.Reason, step
		}
	}
	m := c.s.memory()
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
		case wait > 0 && c.inFlight > 0: // a hedge never waits
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
	if c.paid { // in decide
		r.receipt, r.paid, c.paid = c.receipt, true, false
		return Success, Step{}
	}
	if c.free || c.hinted && c.inFlight == 0 {
		return Success, Step{}
	}
	if c.lastMayBeQueued && !c.noQueue() { // others are in flight, which may show more
		return Unanswered, Step{}
	}
	grant := c.withdraw(now, c.next, random)
	if !grant.OK {
		return BudgetExhausted, Step{Decision: Decision{Exhausted: grant.Exhausted}}
	}
	r.receipt, r.paid = grant.Receipt, m.budget != nil
	return Success, Step{}
}

// Ended decides what follows the end of the attempt r with v. A success is the call's result at
// once. So is a permanent failure that was an answer, since any other attempt would get it too,
// and the end of the caller. After another failure the call waits for the attempts in flight.
//
// If the Step is not Done, Step.Wait is when to ask Hedge for another attempt: at once after a
// transient failure (gRFC A6), later if the server asked for that or throttles, or Never. When
// the last attempt has failed and no other may follow, the call is Done with its failure.
//
// When the call is Done, the attempts that still run have lost: cancel them, and call Release
// when they return. Until then they hold their room. Nothing is learned from their durations.
func (c *HedgedCall) Ended(now time.Duration, r *HedgedAttempt, v Verdict, random func() uint64) Step {
	if c.Over() || !r.live {
		c.Release(now, r)
		return done(c.reason)
	}
	if r.first && c.hedges != (hedge.Flight{}) {
		c.s.memory().hedger.Done(now, &c.hedges, v.Kind == KindSuccess)
	}
	shows := c.evidenceOf(r.began, v)
	if r.passed {
		r.passed = false
		c.s.memory().throttle.Done(now, throttleEvidence(v, shows))
	}
	paid := r.paid
	c.Release(now, r)
	free := shows == noEvidence && !c.refund(now, paid, &r.receipt)
	c.began, c.receipt = r.began, r.receipt
	step := c.decide(now, v, shows, situation{hedged: true, othersInFlight: c.inFlight > 0, stopReason: c.stop, atLeast: c.notBefore - now, free: free}, random)
	switch {
	case step.Done && (v.Kind == KindSuccess || v.Kind == KindCanceled || shows == refusedByReply):
		return c.decided(now, step, random)
	case step.Done && c.inFlight == 0:
		return c.finishWith(now, step, random)
	case step.Done:
		c.stop = step.Reason
		return Step{Wait: Never}
	}
	c.next, c.free, c.lastMayBeQueued = budgetClass(v), free, c.inFlight > 0 && c.mayBeQueued(v)
	if step.Wait > 0 {
		c.notBefore = max(c.notBefore, saturating.Add(now, step.Wait))
	}
	step.Wait = max(c.notBefore-now, 0)
	return step
}

// decided ends the call while attempts may be in flight. The hedger learns that the first attempt
// had not succeeded by now.
func (c *HedgedCall) decided(now time.Duration, step Step, random func() uint64) Step {
	if c.hedges != (hedge.Flight{}) {
		c.s.memory().hedger.Done(now, &c.hedges, false)
	}
	return c.finishWith(now, step, random)
}

// Release gives back what r holds if it was not Ended.
func (c *HedgedCall) Release(now time.Duration, r *HedgedAttempt) {
	if !r.live {
		return
	}
	r.live = false
	c.inFlight--
	c.giveBack(now, r)
	if r.passed {
		r.passed = false
		c.s.memory().throttle.Done(now, throttle.Neutral)
	}
}

// AttemptPanicked is Release for an attempt that panicked. The budget gets back its cost, unless
// the call is over.
func (c *HedgedCall) AttemptPanicked(now time.Duration, r *HedgedAttempt) {
	paid := r.paid && !c.Over()
	c.Release(now, r)
	c.refund(now, paid, &r.receipt)
}

func (c *HedgedCall) giveBack(now time.Duration, r *HedgedAttempt) {
	if r.permit {
		c.s.memory().limiter.Release()
	}
	if r.paid {
		c.s.memory().budget.Release(now, r.receipt)
	}
	if r.counted {
		c.s.memory().hedger.Release()
	}
	r.permit, r.paid, r.counted = false, false, false
}
