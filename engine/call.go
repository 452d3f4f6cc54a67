package engine

import (
	"math"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/throttle"
)

// Spec describes a call before its first attempt. The zero Spec
// is an idempotent operation without a name or a deadline of its own.
type Spec struct {
	Operation string
	// Deadline is when the caller's patience ends, on the driver's clock; zero
	// means that the policy's deadline alone counts.
	Deadline time.Duration
	// NotIdempotent: carrying the operation out twice is not the same as once. It
	// is then repeated only when an attempt was provably never sent.
	NotIdempotent bool
	// NotReplayable: the request cannot be made a second time, whatever became of
	// the first (a stream that was read). It gets one attempt.
	NotReplayable bool
	// UnlessUnsent: NotReplayable does not hold for an attempt that was provably never sent (the
	// stream was not read yet).
	UnlessUnsent bool
	// Once: the caller wants one attempt, whatever the policy allows.
	Once bool
	// Stream: once the dependency has accepted it, the operation may be silent for as long as
	// it likes ([Call.Acceptor]). While the circuit is half-open it keeps no call out that ends.
	Stream bool
	// ForRetry: the driver knows that the call is made for a request which is itself a
	// retry. Policy.Nested then applies, as after [Call.NestedIn].
	ForRetry bool
}

// A Step is the engine's answer: go on (after Wait), or the call is Done.
type Step struct {
	Decision
	Wait    time.Duration // Next, Attempt: how long to wait before the next attempt; Queue: how long at most to wait for room
	Ceiling time.Duration // Next: the wait before jitter
}

// A Decision is a Step without its times. (It is a struct of its own
// because the compiler keeps one of at most four fields in registers.)
type Decision struct {
	Done      bool
	Reason    Reason // if Done
	Full      bool   // Attempt, Queue: the concurrency limit has no room now, but the policy allows to wait for it
	Exhausted bool   // Next: the retry budget has just refused for the first time since it last paid
}

func done(r Reason) Step { return Step{Decision: Decision{Done: true, Reason: r}} }

// A Call is one logical call in flight. It never reads a clock, sleeps, or draws a random
// number that it was not handed.
//
//	c, step := s.Start(now, spec)         // may the call begin?
//	step = c.Attempt(now, random)         // may the next attempt? (throttle, concurrency limit)
//	step = c.Next(now, verdict, random)   // it ended like this: what now?
//
// Every call for which Start did not return Done must be brought to a Step that is
// Done, or be given up with Abandon; whatever it holds is given back then. Time
// is a duration since an epoch of the driver's choosing, the same for all calls
// to one dependency. Randomness is handed in as a source of 64 uniform bits,
// which is asked when a wait, the budget or the breaker's open time needs it;
// nil stands for the middle of every range. A Call is used by one goroutine at
// a time; of its copies only one may be used on.
type Call struct {
	// What every attempt needs comes first, so that drivers with millions of calls
	// can keep it, and what they need themselves, in one line of the cache.
	s        *State
	began    time.Duration // the attempt under way, or the call before the first
	deadline time.Duration // of the call: the nearer of policy's and caller's
	wait     time.Duration // the last one drawn, for decorrelated jitter
	attempts int16
	reason   Reason
	repeat   repetition
	shown    evidence // by the last attempt
	paid     bool     // an attempt is under way that receipt paid for
	permit   bool     // a place under the concurrency limit is held
	ended    bool     // for reason

	receipt        budget.Receipt // of the last retry
	token          breaker.Ticket
	pass           pass
	looks          uint8 // that are left, of a retry that may be in a line: its waits, and one
	deferred       bool  // the breaker learns of the end from LearnBreaker, not from finish
	stream         bool  // Spec.Stream
	hinted         bool  // an attempt is under way, or waited for, at the time that the server asked for
	paidRetries    uint8 // by the budget; at most 255 are counted
	attemptsBefore int16 // of attempts: those that were made before Resume
}

// pass is the attempt whose end must still be reported to the dependency's throttle.
type pass uint8

const (
	noPass   pass = iota
	passed        // the next attempt may be sent
	underWay      // it has been
)

// evidence of the health of the dependency, from the end of an attempt.
type evidence uint8

const (
	noAttempt      evidence = iota // none has ended
	resultOnly                     // it succeeded or failed, and nothing else is known
	refusedByReply                 // a permanent failure that was an answer of the dependency itself
	rateLimited                    // it is well, and asked for fewer requests
	cutShort                       // it timed out, as attempts do that are given so little time
	nothing                        // the caller's side has failed
)

// evidenceOf returns the evidence of an attempt that began at that time and ended with v.
func (c *Call) evidenceOf(began time.Duration, v Verdict) evidence {
	switch {
	case v.CallerSide():
		return nothing
	case v.Kind == KindRateLimited:
		return rateLimited
	case v.answers():
		return refusedByReply
	case v.Kind == KindTransient && v.Code == CodeTimeout && c.tooShort(began):
		return cutShort
	}
	return resultOnly
}

// tooShort notes that the attempt that began then timed out, and reports whether it was
// given less time than attempts usually take that succeed. (The policy's own timeout is
// not the caller's choice, and is never too short.)
func (c *Call) tooShort(began time.Duration) bool {
	given, patient := c.given(began)
	if patient || c.s.Plan().empty {
		return false
	}
	m := c.s.remember()
	p := m.patience.Load()
	if p == nil {
		m.patience.CompareAndSwap(nil, new(patience))
		p = m.patience.Load()
	}
	return p.tooShort(given, c.s.Current().answered.usualClass())
}

// given is how much time the call had left for an attempt that began then. Patient
// reports that this was all that the policy gives to an attempt.
func (c *Call) given(began time.Duration) (given time.Duration, patient bool) {
	given = c.left(began)
	limit := c.s.Plan().policy.AttemptTimeout
	return given, given == Never || limit > 0 && given >= limit
}

// show notes what an attempt shows. One that was given too little time, or failed on the
// caller's side, takes nothing away from what others of the call have shown.
func (c *Call) show(e evidence) {
	if e != cutShort && e != nothing || c.shown == noAttempt {
		c.shown = e
	}
}

// repetition is when the operation of a call may be repeated.
type repetition uint8

const (
	anyTime     repetition = iota
	ifNeverSent            // Spec.NotIdempotent
	ifUnread               // Spec.NotReplayable and UnlessUnsent
	notAtAll               // Spec.NotReplayable
	onlyOnce               // Spec.Once
	notAgain               // NestedIn a retry
)

// Never is the time that does not come, and the duration without end.
const Never = time.Duration(math.MaxInt64)

// Start asks whether a call may begin at now: is there time left, is the circuit
// closed (or the call admitted as a probe)? If the Step is Done the call was
// refused, and the Call must not be used.
func (s *State) Start(now time.Duration, spec Spec) (Call, Step) {
	var c Call
	if no := s.StartIn(&c, now, &spec); no != Success {
		return c, done(no)
	}
	return c, Step{}
}

// StartIn is Start for a Call that the driver has a place for: c is overwritten. It returns
// why the call was refused, or Success.
func (s *State) StartIn(c *Call, now time.Duration, spec *Spec) Reason {
	s = s.Current()
	p := s.mem.Load().plan
	c.s, c.began, c.deadline, c.wait = s, now, Never, 0
	c.attempts, c.reason, c.repeat = 0, Success, anyTime
	c.shown, c.paid, c.permit, c.ended, c.hinted = noAttempt, false, false, false, false
	if !p.empty { // or they are never looked at
		c.receipt, c.paidRetries, c.looks, c.token, c.pass, c.deferred, c.stream, c.attemptsBefore = 0, 0, 0, breaker.Ticket{}, noPass, false, spec.Stream, 0
	}
	c.repeatAs(spec)
	if limit := p.policy.Deadline; limit > 0 {
		c.deadline = saturating.Add(max(now, 0), limit)
	}
	if spec.Deadline != 0 {
		c.deadline = min(c.deadline, spec.Deadline)
	}
	if now >= c.deadline {
		return c.refuse(Deadline)
	}
	return c.admit(s, now, spec)
}

// admit asks the breaker, and counts the call. It returns why the call was refused, or
// Success.
func (c *Call) admit(s *State, now time.Duration, spec *Spec) Reason {
	m := s.mem.Load()
	if m.blank {
		if m.plan.lazy {
			// Nothing has ever failed here, so there is nothing to ask.
			c.token = breaker.LateTicket(now)
			return Success
		}
		m = s.remember()
	}
	if b := m.breaker; b != nil {
		token, ok := start(b, now, spec.Stream)
		if !ok {
			return c.refuse(CircuitOpen)
		}
		c.token = token
	}
	if b := m.budget; b != nil && c.attemptsBefore == 0 {
		b.Start(now)
	}
	return Success
}

// start asks the breaker.
func start(b *breaker.Breaker, now time.Duration, stream bool) (breaker.Ticket, bool) {
	if stream {
		return b.StartStream(now)
	}
	return b.Start(now)
}

// Acceptor returns a function that notes that the dependency has accepted the attempt under
// way, which may be silent from now on. A half-open breaker does not wait for it any longer:
// other calls are let through beside it, and that it has not failed for
// breaker.Config.ProbeTimeout (the policy's Deadline, if that is not set) is a success. The
// function may be called at any time, concurrently with everything else. It is for calls for
// which Probe is true.
func (c *Call) Acceptor() func(now time.Duration) {
	b, token := c.s.remember().breaker, c.token
	return func(now time.Duration) { b.Accepted(now, token) }
}

// repeatAs notes when the operation may be repeated.
func (c *Call) repeatAs(spec *Spec) {
	switch {
	case spec.NotReplayable && spec.UnlessUnsent:
		c.repeat = ifUnread
	case spec.NotReplayable:
		c.repeat = notAtAll
	case spec.Once:
		c.repeat = onlyOnce
	case spec.NotIdempotent:
		c.repeat = ifNeverSent
	}
	if spec.ForRetry {
		c.NestedIn(2)
	}
}

func (c *Call) refuse(why Reason) Reason {
	c.ended, c.reason = true, why
	return why
}

// State returns the state that the call was started on; nil before. It is the version of then
// (State.Update).
func (c *Call) State() *State { return c.s }

// Probe reports whether a half-open breaker waits for the result of the call.
func (c *Call) Probe() bool { return c.token.Probe() }

// Over reports whether the call is Done, or was never started.
func (c *Call) Over() bool { return c.ended || c.s == nil }

// Began is when the latest attempt began; before the first, when the call did.
func (c *Call) Began() time.Duration { return c.began }

// Attempts is the number of attempts begun so far, with those that were made before Resume.
func (c *Call) Attempts() int { return int(c.attempts) }

// Deadline is when the call ends at the latest, on the driver's clock; the
// largest duration if never.
func (c *Call) Deadline() time.Duration { return c.deadline }

// Timeout is how long an attempt that begins at now may take: the policy's
// AttemptTimeout or what is left of the call, whichever is less; the largest
// duration if it may take for ever.
func (c *Call) Timeout(now time.Duration) time.Duration {
	left := c.left(now)
	if t := c.s.Plan().policy.AttemptTimeout; t > 0 {
		return min(t, left)
	}
	return left
}

func (c *Call) left(now time.Duration) time.Duration {
	if c.deadline == Never {
		return Never
	}
	return c.deadline - now
}

// Attempt asks whether the next attempt may begin at now. If the Step is neither
// Done nor Full, and has no Wait, it has begun, and its end must be reported to Next.
// If it is Full, ask Queue. If it has a Wait, the attempt is held back for so long, by the
// throttle (Policy.Throttle) or because there may be a line (Policy.Timeouts): ask again then.
func (c *Call) Attempt(now time.Duration, random func() uint64) Step {
	if c.Over() {
		return done(c.reason)
	}
	if no := c.recheck(now); no != Success {
		return c.finish(now, no, random)
	}
	if c.looks > 0 {
		switch step := c.look(now, random); {
		case step.Done:
			return c.finishWith(now, step, random)
		case step.Wait > 0:
			return step
		}
	}
	if c.s.Plan().throttles != nil && c.pass == noPass {
		wait, ok := c.s.remember().throttle.Start(now, random)
		if !ok {
			return c.finish(now, Throttled, random)
		}
		c.pass = passed
		if wait >= c.left(now) {
			return c.finish(now, Deadline, random)
		}
		if wait > 0 {
			return Step{Wait: wait}
		}
	}
	switch {
	case c.tryStart(now):
		return Step{}
	case c.s.Plan().policy.Limit.MaxWait > 0:
		return Step{Decision: Decision{Full: true}}
	}
	return c.finish(now, Limited, random)
}

// recheck asks again what may have changed while the call waited for a retry or for room.
// It returns why no attempt may begin, or Success.
func (c *Call) recheck(now time.Duration) Reason {
	switch {
	case now >= c.deadline:
		return Deadline
	case c.attempts > 0 && !c.closed(now) && c.attempts > c.attemptsBefore:
		return CircuitOpen
	}
	return Success
}

// FirstAttempt is Attempt for a first attempt that nothing stands in the way of: it has
// begun if the result is true. If it is false nothing has changed; ask Attempt.
func (c *Call) FirstAttempt(now time.Duration) bool {
	return c.s.Plan().throttles == nil && c.tryStart(now)
}

// tryStart begins an attempt if the concurrency limit has room for it.
func (c *Call) tryStart(now time.Duration) bool {
	if l := c.limiter(); l != nil {
		if !l.TryAcquire() {
			return false
		}
		c.permit = true
	}
	c.start(now)
	return true
}

func (c *Call) start(now time.Duration) {
	c.attempts++
	c.began = now
	if c.pass == passed {
		c.pass = underWay
	}
}

// limiter is the dependency's, or nil. Where there is one, the state is known.
func (c *Call) limiter() *bulkhead.Limiter {
	if !c.s.Plan().limited {
		return nil
	}
	return c.s.remember().limiter
}

// closed reports whether the breaker, if any, is closed.
func (c *Call) closed(now time.Duration) bool { return c.s.mem.Load().closed(now) }

// JoinQueue waits in line for room under the concurrency limit, after Attempt returned
// Full. If the Step is neither Done nor Full the attempt has begun. If it is
// Full, w is in line: w.Admit is called when its turn comes, and then Admitted
// must be; after Step.Wait at the latest, LeaveQueue must be.
func (c *Call) JoinQueue(now time.Duration, w *bulkhead.Waiter, random func() uint64) Step {
	if c.Over() {
		return done(c.reason)
	}
	l := c.limiter()
	if l == nil {
		return c.Attempt(now, random)
	}
	switch l.Join(now, w) {
	case bulkhead.Admitted:
		return c.Admitted(now, random)
	case bulkhead.Queued:
		return Step{Decision: Decision{Full: true}, Wait: min(w.Deadline-now, c.left(now))}
	}
	return c.finish(now, Limited, random)
}

// Admitted begins the attempt for which w.Admit was called, unless the wait was
// too long for it, or the call has ended: then the place is given back.
func (c *Call) Admitted(now time.Duration, random func() uint64) Step {
	c.permit = true
	if c.Over() {
		return c.finish(now, c.reason, random)
	}
	if no := c.recheck(now); no != Success {
		return c.finish(now, no, random)
	}
	c.start(now)
	return Step{}
}

// LeaveQueue gives up waiting, because Step.Wait is over (why is Limited) or
// because the caller's context ended (as for Stop). The call is Done then, unless
// why is Limited and w was admitted in the same moment: then the attempt has
// begun after all.
func (c *Call) LeaveQueue(now time.Duration, w *bulkhead.Waiter, why Reason, random func() uint64) Step {
	if l := c.roomFor(); l != nil && !l.Leave(w) {
		if why == Limited {
			return c.Admitted(now, random)
		}
		c.permit = true // for finish to give back
	}
	switch {
	case why != Limited:
		return c.Stop(now, why, random)
	case now >= c.deadline:
		return c.finish(now, Deadline, random)
	}
	return c.finish(now, Limited, random)
}

// roomFor is the limiter of a call that is not over.
func (c *Call) roomFor() *bulkhead.Limiter {
	if c.Over() {
		return nil
	}
	return c.limiter()
}

// NestedIn notes that a server makes the call for a request that is the given
// attempt of its caller, from 1: beyond the first, the call is not retried
// (Policy.Nested). It may be called at any time before the Step that it is to influence.
func (c *Call) NestedIn(attempt int) {
	if attempt > 1 && c.repeat != notAtAll && c.repeat != onlyOnce && c.s.Plan().policy.Nested == NestedNever {
		c.repeat = notAgain
	}
}

// Next decides after the attempt under way has ended with v. It asks, in this
// order, and the first no ends the call with that reason:
//
//  1. Did it succeed?
//  2. Is the failure permanent, or did the server ask not to retry?
//  3. Is the operation safe to repeat, and not made on behalf of a retry?
//  4. Are there attempts left?
//  5. Is the breaker still closed?
//  6. How long to wait: what the server asked for, plus jitter, or backoff with
//     jitter. Is that no longer than the policy is willing to wait?
//  7. Would the wait end before the deadline?
//  8. If the attempt timed out: has the dependency answered another one that began
//     later, or not long before? (Policy.Timeouts) If it is not known whether there is a line,
//     the retry waits, and Attempt decides.
//  9. Does the retry budget pay for it? It is charged here, before the wait. A retry at
//     the time that the server asked for may be free.
func (c *Call) Next(now time.Duration, v Verdict, random func() uint64) Step {
	if c.Over() {
		return done(c.reason)
	}
	paid := c.paid
	c.release(now)
	shows := c.evidenceOf(c.began, v)
	c.report(now, load(v, shows))
	free := shows == nothing && !c.repay(now, paid, &c.receipt)
	step := c.decide(now, v, shows, flight{free: free}, random)
	if step.Done {
		return c.finishWith(now, step, random)
	}
	return step
}

// release gives back what an attempt holds: its place under the concurrency limit
// (so that a call that waits holds none), and its count in budgets of concurrent
// retries.
func (c *Call) release(now time.Duration) {
	if c.permit && c.s != nil {
		c.permit = false
		c.s.remember().limiter.Release()
	}
	if c.paid {
		c.paid = false
		c.s.remember().budget.Release(now, c.receipt)
	}
}

// report reports to the throttle how the attempt that it let pass has ended.
func (c *Call) report(now time.Duration, o throttle.Evidence) {
	if c.pass != noPass {
		c.pass = noPass
		c.s.remember().throttle.Done(now, o)
	}
}

// load returns the throttle's outcome of an attempt: what it shows of the dependency's load. A failure that
// it is known to answer with was work taken on. A timeout that the caller chose is no sign
// of load, nor is a failure of the caller's side.
func load(v Verdict, shows evidence) throttle.Evidence {
	if shows == cutShort || shows == nothing {
		return throttle.Neutral
	}
	switch v.Kind {
	case KindSuccess:
		return throttle.Accepted
	case KindRateLimited, KindOverloaded:
		return throttle.RateLimited
	case KindTransient:
		return throttle.Unanswered
	case KindPermanent:
		if v.answers() {
			return throttle.Accepted
		}
	}
	return throttle.Neutral
}

// forget reports to the throttle an attempt that it let pass, of which nothing else
// is known.
func (c *Call) forget(now time.Duration) {
	switch c.pass {
	case passed:
		c.s.remember().throttle.Done(now, throttle.Unsent)
	case underWay:
		c.s.remember().throttle.Done(now, throttle.Neutral)
	}
	c.pass = noPass
}

// finishWith ends the call with the reason of step, which is Done.
func (c *Call) finishWith(now time.Duration, step Step, random func() uint64) Step {
	end := c.finish(now, step.Reason, random)
	end.Exhausted = step.Exhausted
	return end
}

// finish ends the call: the breaker learns its result, a success earns budget.
func (c *Call) finish(now time.Duration, r Reason, random func() uint64) Step {
	c.release(now)
	if c.Over() {
		return done(c.reason)
	}
	if c.pass != noPass {
		c.forget(now)
	}
	c.reason = r
	c.ended = true
	outcome := c.outcome(r)
	if outcome == breaker.Success && c.s.due(c.began) {
		c.s.answered.note(c.began, c.took(now, r == Success))
	}
	m := c.s.mem.Load()
	if m.blank {
		if outcome != breaker.Failure {
			return done(r)
		}
		m = c.s.remember()
	}
	if outcome == breaker.Success {
		c.inTime(m, now)
	}
	if b := m.budget; b != nil {
		b.Done(now, r == Success, c.receipt, int(c.paidRetries))
	}
	if b := m.breaker; b != nil && !c.deferred { // last, since its listeners may panic
		b.DoneWithUsualTime(now, c.token, outcome, c.s.Current().answered.usual(), random)
	}
	return done(r)
}

// MaySucceed reports whether a first attempt that succeeded may be handed to Succeed instead
// of Next: no half-open breaker waits for the call, and none counts slow calls.
func (c *Call) MaySucceed() bool { return !c.token.Probe() && !c.s.Plan().timed }

// Due reports whether Succeed needs the exact time of the end of the first attempt.
func (c *Call) Due() bool { return c.s.due(c.began) }

// Succeed is Next for a first attempt that succeeded, and leaves the same state in a
// straight line. Due is what Due has returned. If it is false, now may be a little
// earlier than the end of the attempt.
func (c *Call) Succeed(now time.Duration, due bool) {
	c.release(now)
	c.report(now, throttle.Accepted)
	c.ended = true
	if due {
		c.s.answered.note(c.began, c.took(now, true))
	}
	m := c.s.mem.Load()
	if m.blank {
		return
	}
	c.inTime(m, now)
	if b := m.budget; b != nil {
		b.Done(now, true, 0, 0)
	}
	if b := m.breaker; b != nil {
		b.Done(now, c.token, breaker.Success, nil)
	}
}

// took is how long the attempt took that ended at now, if that shows the time of a success;
// else noTime. A stream that was answered later than any attempt may be was silent, not slow.
func (c *Call) took(now time.Duration, succeeded bool) time.Duration {
	took := max(now-c.began, 0)
	if limit := c.s.Plan().policy.AttemptTimeout; !succeeded || c.stream && limit > 0 && took > limit {
		return noTime
	}
	return took
}

// DeferBreaker makes the breaker learn of the end of the call from LearnBreaker only. The
// breaker's listeners are the user's code: a driver that ends calls under a lock of its own
// calls LearnBreaker when it has let go of the lock.
func (c *Call) DeferBreaker() { c.deferred = true }

// LearnBreaker makes the breaker learn of the end of a call that is Done, after DeferBreaker.
func (c *Call) LearnBreaker(now time.Duration, random func() uint64) {
	if m := c.s.mem.Load(); m.breaker != nil {
		m.breaker.DoneWithUsualTime(now, c.token, c.outcome(c.reason), c.s.Current().answered.usual(), random)
	}
}

// inTime notes that the attempt succeeded at now that began at c.began.
func (c *Call) inTime(m *memory, now time.Duration) {
	if p := m.patience.Load(); p != nil {
		given, patient := c.given(c.began)
		p.succeeded(given, patient || now > c.deadline)
	}
}

// outcome returns what the call shows of the health of the dependency. An answer is a good
// sign, even a refusal (a permanent failure that is known to be one: not found, forbidden).
// These show nothing: an error of which nothing is known; a caller that went away; a call
// without an attempt; a call that was asked to slow down in the end (429,
// RESOURCE_EXHAUSTED), for who asks is well, and the throttle does the rest; a call whose
// caller gave it less time than successes usually take; and one that failed on the caller's side.
func (c *Call) outcome(r Reason) breaker.Evidence {
	switch {
	case r == Success:
		return breaker.Success
	case r == Canceled || c.attempts == 0 || c.attempts == c.attemptsBefore:
		return breaker.Neutral
	case r == Permanent && c.shown == refusedByReply:
		return breaker.Success
	case r == Permanent, c.shown == rateLimited, c.shown == cutShort, c.shown == nothing:
		return breaker.Neutral
	}
	return breaker.Failure
}

// Stop ends a call whose caller's context ended while it waited: because its
// deadline was reached, or for any other reason. Any other is Canceled, from which
// nothing is learned about the dependency.
func (c *Call) Stop(now time.Duration, why Reason, random func() uint64) Step {
	if why != Deadline {
		why = Canceled
	}
	return c.finish(now, why, random)
}

// Panicked is Abandon for a call whose operation panicked. What its last retry has cost is put back.
func (c *Call) Panicked(now time.Duration) {
	if paid := c.paid; !c.Over() {
		c.release(now)
		c.repay(now, paid, &c.receipt)
	}
	c.Abandon(now)
}

// Abandon gives back everything that the call holds and reports nothing, for
// an operation that will not return. It does nothing to a call that is Done.
func (c *Call) Abandon(now time.Duration) {
	c.finish(now, Canceled, nil)
}
