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

// Spec describes a call before its first attempt. The zero Spec is an idempotent operation
// without a name or a deadline of its own.
type Spec struct {
	Operation string
	// Deadline is when the caller's patience ends, on the driver's clock; zero: the policy's
	// deadline alone counts.
	Deadline time.Duration
	// NotIdempotent: carrying the operation out twice is not the same as once. It is repeated
	// only after an attempt that was provably never sent.
	NotIdempotent bool
	// NotReplayable: the request cannot be made a second time (a stream that was read). The
	// operation gets one attempt.
	NotReplayable bool
	// UnlessUnsent: NotReplayable does not count after an attempt that was provably never sent:
	// the stream was not read yet.
	UnlessUnsent bool
	// Once: the caller wants one attempt, whatever the policy allows.
	Once bool
	// Stream: once the dependency has accepted the operation, it may be silent for any time
	// ([Call.Acceptor]). A half-open circuit then lets calls pass beside it.
	Stream bool
	// ForRetry: the call is made for a request which is itself a retry, as after [Call.NestedIn].
	ForRetry bool
	// Rest: the call is for the rest of an answer of which the caller has a part (a download that
	// broke off). It has earned when the answer began, and what its retries cost is not put back,
	// since the answer may break off again. It is for [State.Resume].
	Rest bool
	// Fallback: the caller has another answer if the call fails and [Result.Degrades]. Only
	// observers use it.
	Fallback bool
}

// A Step is the engine's answer: go on (after Wait), or the call is Done.
type Step struct {
	Decision
	Wait    time.Duration // Next, Attempt: the wait before the next attempt; JoinQueue: the longest wait for room
	Ceiling time.Duration // Next: the wait before jitter
}

// A Decision is a Step without its times. (The compiler keeps a struct of at most four fields in
// registers.)
type Decision struct {
	Done      bool
	Reason    Reason // if Done
	Full      bool   // Attempt, JoinQueue: the concurrency limit has no room now, but the policy allows to wait for it
	Exhausted bool   // Next: the retry budget has just refused for the first time since it last paid
}

func done(r Reason) Step { return Step{Decision: Decision{Done: true, Reason: r}} }

// A Call is one logical call. It reads no clock, never sleeps and draws no random number of its
// own.
//
//	c, step := s.Start(now, spec)         // may the call begin?
//	step = c.Attempt(now, random)         // may the next attempt? (throttle, concurrency limit)
//	step = c.Next(now, verdict, random)   // it ended like this: what now?
//
// If Start did not return Done, the Call must be brought to a Step that is Done, or to Abandon,
// which give back what it holds. Time is a duration since an epoch that the driver chooses, the
// same for all calls to one dependency. Randomness is a source of 64 uniform bits; nil means the
// middle of each range. A Call is used by one goroutine at a time; of its copies only one may be
// used on.
type Call struct {
	// What every attempt needs comes first, so that a driver with millions of calls
	// has it in one line of the cache, with what it needs itself.
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
	waits          waiting
	deferred       bool // the breaker learns of the end from LearnBreaker, not from finish
	answer         answerKind
	hinted         bool  // the attempt under way, or waited for, is at the time that the server asked for
	paidRetries    uint8 // retries that the budget paid for; at most 255 are counted
	attemptsBefore int16 // the attempts that were made before Resume
}

// answerKind is what is special about the answer that a call is for.
type answerKind uint8

const (
	wholeAnswer  answerKind = iota
	stream                  // Spec.Stream
	restOfAnswer            // Spec.Rest
)

// pass is the state of the throttle's permission for an attempt. The throttle must learn how that
// ended.
type pass uint8

const (
	noPass   pass = iota
	passed        // the next attempt may begin
	underWay      // it has begun
)

// evidence is what the end of an attempt shows of the dependency's health.
type evidence uint8

const (
	noAttempt      evidence = iota // no attempt has ended
	resultAlone                    // it succeeded or failed, and nothing else is known
	refusedByReply                 // a permanent failure that was an answer of the dependency itself
	rateLimited                    // it is well, and asked for fewer requests
	givenTooLittle                 // it timed out, as attempts do that are given so little time
	noEvidence                     // the caller's side has failed
)

func (c *Call) evidenceOf(began time.Duration, v Verdict) evidence {
	switch {
	case v.CallerSide():
		return noEvidence
	case v.Kind == KindRateLimited:
		return rateLimited
	case v.answers():
		return refusedByReply
	case v.Kind == KindTransient && v.Code == CodeTimeout && c.tooShort(began):
		return givenTooLittle
	}
	return resultAlone
}

// tooShort reports whether the caller gave the attempt that began at began less time than a success
// usually takes. The policy's own timeout is never too short.
func (c *Call) tooShort(began time.Duration) bool {
	given, limit := c.left(began), c.s.Plan().policy.AttemptTimeout
	return (limit <= 0 || given < limit) && given < c.s.Current().answered.usualTime()
}

// recordEvidence records what an attempt shows. One that was given too little time, or failed on
// the caller's side, does not replace what others have shown.
func (c *Call) recordEvidence(e evidence) {
	if e != givenTooLittle && e != noEvidence || c.shown == noAttempt {
		c.shown = e
	}
}

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

// Start decides whether a call may begin at now: time must be left, and the circuit closed, or
// the call admitted as a probe. If the Step is Done the call was refused, and the Call must not
// be used.
func (s *State) Start(now time.Duration, spec Spec) (Call, Step) {
	var c Call
	if no := s.StartIn(&c, now, &spec); no != Success {
		return c, done(no)
	}
	return c, Step{}
}

// StartIn is Start for a Call that the driver keeps: it overwrites c. It returns why the call was
// refused, or Success.
func (s *State) StartIn(c *Call, now time.Duration, spec *Spec) Reason {
	s = s.Current()
	p := s.mem.Load().plan
	c.s, c.began, c.deadline, c.wait = s, now, Never, 0
	c.attempts, c.reason, c.repeat = 0, Success, anyTime
	c.shown, c.paid, c.permit, c.ended, c.hinted = noAttempt, false, false, false, false
	if !p.empty { // else nobody reads them
		c.receipt, c.paidRetries, c.waits, c.token, c.pass, c.deferred, c.answer, c.attemptsBefore = 0, 0, forNothing, breaker.Ticket{}, noPass, false, wholeAnswer, 0
		if spec.Stream {
			c.answer = stream
		}
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

// admit asks the breaker, and counts the call. It returns why the call was refused, or Success.
func (c *Call) admit(s *State, now time.Duration, spec *Spec) Reason {
	m := s.mem.Load()
	if m.blank() {
		if m.plan.lazy {
			// Nothing has ever failed here, so there is nothing to ask.
			c.token = breaker.LateTicket(now)
			return Success
		}
		m = s.memory()
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

func start(b *breaker.Breaker, now time.Duration, stream bool) (breaker.Ticket, bool) {
	if stream {
		return b.StartStream(now)
	}
	return b.Start(now)
}

// Acceptor returns a function that records that the dependency has accepted the attempt under
// way, which may be silent from now on. A half-open breaker then lets other calls pass beside it.
// If it has not failed for breaker.Config.ProbeTimeout (if zero: the policy's Deadline), that is
// a success. The function may be called at any time, concurrently with everything else. Acceptor
// is for calls for which Probe is true.
func (c *Call) Acceptor() func(now time.Duration) {
	b, token := c.s.memory().breaker, c.token
	return func(now time.Duration) { b.Accepted(now, token) }
}

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

// State returns the version of the state that the call was started on ([State.Update]); nil
// before.
func (c *Call) State() *State { return c.s }

// Probe reports whether a half-open breaker waits for the result of the call.
func (c *Call) Probe() bool { return c.token.Probe() }

// Over reports whether the call is Done, or was never started.
func (c *Call) Over() bool { return c.ended || c.s == nil }

// Began returns when the latest attempt began; before the first, when the call did.
func (c *Call) Began() time.Duration { return c.began }

// Attempts returns how many attempts have begun, with those that were made before Resume.
func (c *Call) Attempts() int { return int(c.attempts) }

// Deadline returns when the call ends at the latest, on the driver's clock, or Never.
func (c *Call) Deadline() time.Duration { return c.deadline }

// Timeout returns how long an attempt that begins at now may take: the policy's AttemptTimeout or
// what is left of the call, whichever is less, or Never.
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

// Attempt decides whether the next attempt may begin at now. If the Step is neither Done nor
// Full, and has no Wait, the attempt has begun, and its end must be reported to Next. If the Step
// is Full, call JoinQueue. If it has a Wait, the throttle holds the attempt back
// (Policy.Throttle), or the last one may still wait in the dependency's queue (Policy.Timeouts):
// call Attempt again after it.
func (c *Call) Attempt(now time.Duration, random func() uint64) Step {
	if c.Over() {
		return done(c.reason)
	}
	if no := c.recheck(now); no != Success {
		return c.finish(now, no, random)
	}
	if c.waits == forAnswers {
		if step := c.checkQueue(now, random); step.Done {
			return c.finishWith(now, step, random)
		}
	}
	if c.s.Plan().throttles != nil && c.pass == noPass {
		wait, ok := c.s.memory().throttle.Start(now, random)
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
		c.endWait()
		return Step{}
	case c.s.Plan().policy.Limit.MaxWait > 0:
		return Step{Decision: Decision{Full: true}}
	}
	return c.finish(now, Limited, random)
}

// recheck returns why no attempt may begin after a wait, or Success. The breaker has admitted the first
// attempt of a call; after Resume that may be a retry, if Next was called first (lull.Dependency.Continue).
func (c *Call) recheck(now time.Duration) Reason {
	switch {
	case now >= c.deadline:
		return Deadline
	case (c.attempts > c.attemptsBefore || c.shown != noAttempt) && !c.closed(now):
		return CircuitOpen
	}
	return Success
}

// FirstAttempt is Attempt for a first attempt. If it returns true the attempt has begun. If not,
// nothing has changed: call Attempt.
func (c *Call) FirstAttempt(now time.Duration) bool {
	return c.s.Plan().throttles == nil && c.tryStart(now)
}

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

func (c *Call) limiter() *bulkhead.Limiter {
	if !c.s.Plan().limited {
		return nil
	}
	return c.s.memory().limiter
}

func (c *Call) closed(now time.Duration) bool { return c.s.mem.Load().closed(now) }

// JoinQueue waits for room under the concurrency limit, after Attempt returned Full. If the Step
// is neither Done nor Full the attempt has begun. If it is Full, the driver must call Admitted
// when w.Admit is called, or LeaveQueue after Step.Wait.
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

// Admitted begins the attempt for which w.Admit was called. If the wait was too long, or the call
// has ended, it gives the room back.
func (c *Call) Admitted(now time.Duration, random func() uint64) Step {
	c.permit = true
	if c.Over() {
		return c.finish(now, c.reason, random)
	}
	if no := c.recheck(now); no != Success {
		return c.finish(now, no, random)
	}
	c.start(now)
	c.endWait()
	return Step{}
}

// LeaveQueue ends the wait for room, because Step.Wait is over (why is Limited) or because the
// caller's context ended (why is as for Stop). Then the call is Done. Only if why is Limited and
// w was admitted at the same moment has the attempt begun.
func (c *Call) LeaveQueue(now time.Duration, w *bulkhead.Waiter, why Reason, random func() uint64) Step {
	if !c.Over() {
		if l := c.limiter(); l != nil && !l.Leave(w) {
			if why == Limited {
				return c.Admitted(now, random)
			}
			c.permit = true // for finish to give back
		}
	}
	switch {
	case why != Limited:
		return c.Stop(now, why, random)
	case now >= c.deadline:
		return c.finish(now, Deadline, random)
	}
	return c.finish(now, Limited, random)
}

// NestedIn records that a server makes the call for a request that is the given attempt of its
// caller, from 1. Beyond the first, the call is not retried (Policy.Nested). It may be called
// before any Step.
func (c *Call) NestedIn(attempt int) {
	if attempt > 1 && c.repeat != notAtAll && c.repeat != onlyOnce && c.s.Plan().policy.Nested == NestedNever {
		c.repeat = notAgain
	}
}

// NotReplayable records that the request cannot be made again from now on, as Spec.NotReplayable.
func (c *Call) NotReplayable() { c.repeat = notAtAll }

// Next decides what follows an attempt that ended with v. It checks these conditions in this
// order. The first that is not met ends the call with its reason:
//
//  1. The attempt failed.
//  2. The failure is transient, and the server did not ask not to retry.
//  3. The operation is safe to repeat, and not made on behalf of a retry.
//  4. Attempts are left.
//  5. The breaker is closed.
//  6. The server did not ask for a wait longer than HintLimit.
//  7. The wait (the server's plus jitter, or backoff) ends before the deadline.
//  8. After a timeout, the dependency answers others (Policy.Timeouts). If that is not known
//     yet, the retry waits, and Attempt decides.
//  9. Not too many calls wait already (Policy.Limit).
//  10. The retry budget pays, before the wait. A retry at the time that the server asked for
//     may be free.
func (c *Call) Next(now time.Duration, v Verdict, random func() uint64) Step {
	return c.next(now, v, situation{}, random)
}

func (c *Call) next(now time.Duration, v Verdict, with situation, random func() uint64) Step {
	if c.Over() {
		return done(c.reason)
	}
	paid := c.paid
	c.release(now)
	shows := c.evidenceOf(c.began, v)
	c.reportToThrottle(now, throttleEvidence(v, shows))
	with.free = shows == noEvidence && !c.refund(now, paid, &c.receipt)
	step := c.decide(now, v, shows, with, random)
	if step.Done {
		return c.finishWith(now, step, random)
	}
	return step
}

// release gives back what an attempt holds: its room under the concurrency limit, and its place
// in a budget of concurrent retries. A call that waits holds neither.
func (c *Call) release(now time.Duration) {
	if c.permit && c.s != nil {
		c.permit = false
		c.s.memory().limiter.Release()
	}
	if c.paid {
		c.paid = false
		c.s.memory().budget.Release(now, c.receipt)
	}
}

// reportToThrottle reports how the attempt that the throttle let pass has ended.
func (c *Call) reportToThrottle(now time.Duration, o throttle.Evidence) {
	if c.pass != noPass {
		c.pass = noPass
		c.s.memory().throttle.Done(now, o)
	}
}

// throttleEvidence returns what the end of an attempt shows of the dependency's load. An answer
// that is a failure was work done. A timeout that the caller chose is no sign of load, nor is a
// failure on the caller's side.
func throttleEvidence(v Verdict, shows evidence) throttle.Evidence {
	if shows == givenTooLittle || shows == noEvidence {
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

// endPass reports to the throttle an attempt that it let pass and of which nothing else is known.
func (c *Call) endPass(now time.Duration) {
	switch c.pass {
	case passed:
		c.s.memory().throttle.Done(now, throttle.Unsent)
	case underWay:
		c.s.memory().throttle.Done(now, throttle.Neutral)
	}
	c.pass = noPass
}

func (c *Call) finishWith(now time.Duration, step Step, random func() uint64) Step {
	end := c.finish(now, step.Reason, random)
	end.Exhausted = step.Exhausted
	return end
}

// finish ends the call: the breaker learns its result, and a success earns budget.
func (c *Call) finish(now time.Duration, r Reason, random func() uint64) Step {
	c.release(now)
	if c.Over() {
		return done(c.reason)
	}
	if c.pass != noPass {
		c.endPass(now)
	}
	c.endWait()
	c.reason = r
	c.ended = true
	outcome := c.breakerEvidence(r)
	if outcome == breaker.Success && c.s.mustRecord(c.began) {
		c.s.answered.record(c.began, c.took(now, r == Success))
	}
	m := c.s.mem.Load()
	if m.blank() {
		if outcome != breaker.Failure {
			return done(r)
		}
		m = c.s.memory()
	}
	if b := m.budget; b != nil {
		b.Done(now, r == Success && c.answer != restOfAnswer, c.receipt, int(c.paidRetries))
	}
	if b := m.breaker; b != nil && !c.deferred { // last, since its listeners may panic
		b.DoneWithUsualTime(now, c.token, outcome, c.s.Current().answered.usualTime(), random)
	}
	return done(r)
}

// CanUseSucceed reports whether Succeed may replace Next for a first attempt that succeeded: no
// half-open breaker waits for the call, and none counts slow calls.
func (c *Call) CanUseSucceed() bool { return !c.token.Probe() && !c.s.Plan().timed }

// NeedsEndTime reports whether Succeed needs the exact time of the end of the first attempt.
func (c *Call) NeedsEndTime() bool { return c.s.mustRecord(c.began) }

// Succeed is Next for a first attempt that succeeded, and leaves the same state by a shorter
// path. due is the result of NeedsEndTime. If it is false, now may be a little earlier than the
// end of the attempt.
func (c *Call) Succeed(now time.Duration, due bool) {
	c.release(now)
	c.reportToThrottle(now, throttle.Accepted)
	c.ended = true
	if due {
		c.s.answered.record(c.began, c.took(now, true))
	}
	m := c.s.mem.Load()
	if m.blank() {
		return
	}
	if b := m.budget; b != nil {
		b.Done(now, true, 0, 0)
	}
	if b := m.breaker; b != nil {
		b.Done(now, c.token, breaker.Success, nil)
	}
}

// took returns how long the attempt took that ended at now, or unknownTime if it did not succeed.
// A stream that was answered later than any attempt may be was silent, not slow.
func (c *Call) took(now time.Duration, succeeded bool) time.Duration {
	took := max(now-c.began, 0)
	if limit := c.s.Plan().policy.AttemptTimeout; !succeeded || c.answer == stream && limit > 0 && took > limit {
		return unknownTime
	}
	return took
}

// DeferBreaker makes the breaker learn of the end of the call only from LearnBreaker. The
// breaker's listeners are the user's code, so a driver that ends calls under a lock calls
// LearnBreaker after it.
func (c *Call) DeferBreaker() { c.deferred = true }

// LearnBreaker reports the end of the call to the breaker, after DeferBreaker and a Step that is
// Done.
func (c *Call) LearnBreaker(now time.Duration, random func() uint64) {
	if m := c.s.mem.Load(); m.breaker != nil {
		m.breaker.DoneWithUsualTime(now, c.token, c.breakerEvidence(c.reason), c.s.Current().answered.usualTime(), random)
	}
}

// breakerEvidence returns what the call shows of the dependency's health. An answer shows that it
// is well, even a refusal (not found, forbidden). Neutral are: an error of which nothing is
// known; a caller that went away; a call without an attempt; a call that was asked to slow down
// (429, RESOURCE_EXHAUSTED), for who asks is well; a caller that gave less time than a success
// usually takes; and a failure on the caller's side.
func (c *Call) breakerEvidence(r Reason) breaker.Evidence {
	switch {
	case r == Success:
		return breaker.Success
	case r == Canceled || c.attempts == 0 || c.attempts == c.attemptsBefore:
		return breaker.Neutral
	case r == Permanent && c.shown == refusedByReply:
		return breaker.Success
	case r == Permanent, c.shown == rateLimited, c.shown == givenTooLittle, c.shown == noEvidence:
		return breaker.Neutral
	}
	return breaker.Failure
}

// Stop ends a call whose caller's context ended while it waited. why is Deadline, or any other
// reason, which counts as Canceled and shows nothing of the dependency.
func (c *Call) Stop(now time.Duration, why Reason, random func() uint64) Step {
	if why != Deadline {
		why = Canceled
	}
	return c.finish(now, why, random)
}

// Panicked is Abandon for a call whose operation panicked. The budget gets back what the last
// retry cost.
func (c *Call) Panicked(now time.Duration) {
	if paid := c.paid; !c.Over() {
		c.release(now)
		c.refund(now, paid, &c.receipt)
	}
	c.Abandon(now)
}

// Abandon ends a call whose operation will not return, and gives back what it holds. It does
// nothing to a call that is Done.
func (c *Call) Abandon(now time.Duration) {
	c.finish(now, Canceled, nil)
}
