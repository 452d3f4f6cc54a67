package lull

import (
	"context"
	"errors"
	"time"

	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/internal/choice"
)

// Drive makes one call to d on the real clock: it waits, bounds each attempt in time, reports to
// the observers, and leaves every decision to an [engine.Call]. [Do] and the drivers of protocols
// are built on it; use it to write another.
//
// Drive runs attempt on its caller's goroutine, in a context that ends with the attempt's
// timeout. Before it waits for another attempt it calls discard, if that is not nil, to release
// what the last one returned. Discard must return within the given time, the rest of the call;
// its time is part of the wait. A panic in attempt releases what the call holds and is raised
// again. lastErr, if not nil, returns the last attempt's error for observers.
func (d *Dependency) Drive(ctx context.Context, spec engine.Spec, attempt func(context.Context) Verdict, discard func(within time.Duration), lastErr func() error) engine.Result {
	op := operation{attempt, discard, lastErr}
	now := d.Now()
	var r run
	r.setCaller(ctx)
	r.d, r.operation, r.start = d, spec.Operation, now
	if no := r.startCall(&spec, now); no != engine.Success {
		return r.ended(nil, now, doneFor(no), Verdict{})
	}
	defer r.endAfterPanic()
	if !r.call.FirstAttempt(now) {
		return r.startLater(&op, now)
	}
	v := r.makeAttempt(&op, now)
	if v.Kind != KindSuccess || d.wiring.timing || !r.call.CanUseSucceed() {
		return r.continueAfter(&op, v, 0)
	}
	// A first attempt that succeeded: this path must be short. The clock is read
	// again once in a millisecond at most (recordStep).
	due := r.call.NeedsEndTime()
	at := now
	if due {
		at = d.Now()
	}
	r.call.Succeed(d.wiring.LastRead(at), due)
	if d.wiring.observer != nil {
		r.observeSuccess(v)
	}
	return engine.Result{Attempts: 1, Verdict: v}
}

// operation has the functions of a run. It is a parameter beside the run, so that its closures
// stay on the stack of Drive's caller.
type operation struct {
	attempt func(context.Context) Verdict
	discard func(within time.Duration)
	lastErr func() error
}

// run is one call on the real clock.
type run struct {
	ctx            context.Context
	d              *Dependency
	operation      string
	start          time.Duration
	callerDeadline time.Duration // the deadline of ctx; 0, never: none
	call           engine.Call
	reserved       *attempt.Context // for the first attempt; nil: it is allocated
	timer          *time.Timer      // for all waits
	times          attemptTimes
	earlier        *event.Earlier // the attempts whose failures were reported
}

// attemptTimes has the times of a call's attempts that observers receive.
type attemptTimes struct {
	ended int           // the attempt whose end must be reported; 0: none
	took  time.Duration // how long it took
	quiet bool          // no attempt is under way, after the first
	// Of the Spec. They stand here because there is room: 8 more bytes of Drive's frame cost 2 ns.
	notIdempotent, fallback bool
	since                   time.Duration // quiet only: since when
	idle                    time.Duration // how long it was quiet before that
}

// attemptEnded records the end of an attempt. last: none is under way now.
func (t *attemptTimes) attemptEnded(number int, began, now time.Duration, last bool) {
	t.ended, t.took = number, max(now-began, 1)
	t.quiet, t.since = last, now
}

func (t *attemptTimes) reported() { t.ended, t.took = 0, 0 }

func (t *attemptTimes) attemptBegan(now time.Duration) { t.idle, t.quiet = t.waited(now), false }

// waited returns how long no attempt has been under way.
func (t *attemptTimes) waited(now time.Duration) time.Duration {
	if t.quiet {
		return t.idle + max(now-t.since, 0)
	}
	return t.idle
}

// Continue is Drive for the rest of an answer that broke off with v after Drive had returned
// Success, such as a download: made is how many attempts the call has made, with those of an earlier
// Continue. Each further attempt is decided and paid for like any retry, and one that succeeds puts
// nothing back. spec.Deadline is when the call ends; zero: the deadline of ctx alone counts.
// Observers get its events as those of a call, whose attempts count on from made.
func (d *Dependency) Continue(ctx context.Context, spec engine.Spec, made int, v Verdict, attempt func(context.Context) Verdict, discard func(within time.Duration), lastErr func() error) engine.Result {
	op := operation{attempt, discard, lastErr}
	now := d.Now()
	r := run{d: d, ctx: ctx, operation: spec.Operation, start: now}
	r.times.notIdempotent, r.times.fallback = spec.NotIdempotent, spec.Fallback
	if t, ok := ctx.Deadline(); ok {
		r.limitTo(t, &spec)
	}
	spec.Rest = true
	var step engine.Step
	r.call, step = d.state.Resume(now, spec, max(made, 1))
	if err := ctx.Err(); err != nil && !step.Done {
		step = r.call.Stop(now, endedBy(err), d.wiring.rand)
	}
	if step.Done {
		return r.ended(&op, now, step, v)
	}
	defer r.endAfterPanic()
	return r.continueAfter(&op, v, r.call.Attempts()) // which had ended with Drive
}

func (r *run) setCaller(ctx context.Context) { r.ctx, r.reserved = attempt.CallerOf(ctx) }

// limitTo puts the caller's deadline into spec, if that is the nearer.
func (r *run) limitTo(t time.Time, spec *engine.Spec) {
	if r.callerDeadline = r.d.wiring.Deadline(t); spec.Deadline == 0 || r.callerDeadline < spec.Deadline {
		spec.Deadline = r.callerDeadline
	}
}

// startCall starts the call. It returns why the call may not start, or Success.
func (r *run) startCall(spec *engine.Spec, now time.Duration) Reason {
	r.times.notIdempotent, r.times.fallback = spec.NotIdempotent, spec.Fallback
	if err := r.ctx.Err(); err != nil {
		return endedBy(err)
	}
	if t, ok := r.ctx.Deadline(); ok {
		r.limitTo(t, spec)
	}
	return r.d.state.StartIn(&r.call, now, spec)
}

// endAfterPanic is deferred. If the call has not ended, attempt panicked or ended its goroutine.
func (r *run) endAfterPanic() {
	if r.call.Over() {
		return
	}
	now := r.d.Now()
	r.call.Panicked(now)
	if n := r.call.Attempts(); n > 0 && !r.times.quiet {
		r.times.attemptEnded(n, r.call.Began(), now, true)
	}
	r.panicked(now)
}

func doneFor(why Reason) engine.Step {
	return engine.Step{Decision: engine.Decision{Done: true, Reason: why}}
}

func (r *run) panicked(now time.Duration) {
	unknown := r.times.notIdempotent && r.times.ended > 0
	r.observeEnd(nil, now, doneFor(engine.Panicked), Verdict{Kind: KindPermanent, Code: engine.CodePanic}, unknown, false)
}

// continueAfter makes the rest of the call after an attempt that ended with v. reported is the attempt
// whose end the observers know already; 0: none.
func (r *run) continueAfter(op *operation, v Verdict, reported int) engine.Result {
	random := r.d.wiring.rand
	if v.Kind != KindSuccess {
		r.call.NestedIn(inbound.From(r.ctx).Attempt())
	}
	for {
		now := r.d.Now()
		r.times.attemptEnded(r.call.Attempts(), r.call.Began(), now, true)
		if r.call.Attempts() == reported {
			r.times.reported()
		}
		step := r.call.Next(now, v, random)
		if step.Done {
			return r.ended(op, now, step, v)
		}
		r.observeWait(op, event.RetryScheduled, now, step, 0, v)
		r.times.reported()
		slept := now
		if op.discard != nil {
			op.discard(r.left())
		}
		err := r.sleepFrom(now, step.Wait)
		now = r.d.Now()
		if err != nil {
			return r.ended(op, now, r.call.Stop(now, endedBy(err), random), v)
		}
		if r.d.wiring.observer != nil {
			r.observeWait(op, event.RetryStarted, now, step, now-slept, v)
			now = r.d.Now()
		}
		if step, now = r.beginAttempt(now); step.Done {
			return r.ended(op, now, step, v)
		}
		r.times.attemptBegan(now)
		v = r.makeAttempt(op, now)
	}
}

func (r *run) startLater(op *operation, now time.Duration) engine.Result {
	step, now := r.beginAttempt(now)
	if step.Done {
		return r.ended(op, now, step, Verdict{})
	}
	return r.continueAfter(op, r.makeAttempt(op, now), 0)
}

// beginAttempt begins the next attempt, waits before that for the throttle and for room, and
// returns when it began.
func (r *run) beginAttempt(now time.Duration) (engine.Step, time.Duration) {
	for {
		step := r.call.Attempt(now, r.d.wiring.rand)
		switch {
		case step.Full:
			return r.waitForRoom(now)
		case step.Done || step.Wait <= 0:
			return step, now
		}
		err := r.sleep(step.Wait)
		if now = r.d.Now(); err != nil {
			return r.call.Stop(now, endedBy(err), r.d.wiring.rand), now
		}
	}
}

// makeAttempt makes the attempt that began at now, in a context of its own if it needs one.
func (r *run) makeAttempt(op *operation, now time.Duration) Verdict {
	in := r.attemptContext(now)
	if in == nil {
		return r.verdictFor(r.ctx, op.attempt(r.ctx))
	}
	defer in.End()
	v := op.attempt(in)
	if v.Kind == KindSuccess {
		return v
	}
	if in.Lost() {
		r.call.NotReplayable()
	}
	return v.Failed(attempt.CutOff(in, r.ctx))
}

// verdictFor returns the verdict on the attempt with that context; v is the operation's own.
func (r *run) verdictFor(ctx context.Context, v Verdict) Verdict {
	if v.Kind == KindSuccess {
		return v
	}
	return v.Failed(attempt.CutOff(ctx, r.ctx))
}

func endedBy(err error) Reason {
	return choice.Either(errors.Is(err, context.DeadlineExceeded), engine.Deadline, engine.Canceled)
}

// attemptContext returns a context for the attempt that begins at now. It returns nil if the
// caller's own is enough: its deadline is no later, the attempt is the first, and the driver has
// reserved none.
func (r *run) attemptContext(now time.Duration) *attempt.Context {
	until := r.attemptEnd(now)
	if until == engine.Never && r.call.Attempts() == 1 && r.reserved == nil && !r.call.Probe() && attempt.From(r.ctx) == nil {
		return nil
	}
	in := r.reserved
	if in == nil || r.call.Attempts() > 1 {
		in = new(attempt.Context)
	}
	r.initContext(in, until)
	return in
}

// attemptEnd returns when the attempt that begins at now times out; Never if that is not before
// the caller's own deadline.
func (r *run) attemptEnd(now time.Duration) time.Duration {
	d := r.call.Timeout(now)
	if d == engine.Never || r.callerDeadline != 0 && d >= r.callerDeadline-now {
		return engine.Never
	}
	return now + d
}

func (r *run) initContext(in *attempt.Context, until time.Duration) {
	ctx := r.ctx
	if r.call.Probe() {
		ctx = attempt.Probe{Context: ctx, Accepted: r.call.Acceptor()}
	}
	in.Init(ctx, &r.d.wiring.Clock, until)
	in.Limit, in.Number = r.call.Deadline(), int32(r.call.Attempts())
	in.State, in.Dependency, in.Operation = r.call.State(), &r.d.name, r.operation
}

// left returns how much time the call has left, at least zero.
func (r *run) left() time.Duration {
	if r.call.Deadline() == engine.Never {
		return engine.Never
	}
	return max(r.call.Deadline()-r.d.Now(), 0)
}

// sleepFrom sleeps until the wait that was granted at that time is over.
func (r *run) sleepFrom(granted, wait time.Duration) error {
	if wait > 0 {
		wait -= r.d.Now() - granted
	}
	return r.sleep(wait)
}

// sleep returns the context's error if that ended first.
func (r *run) sleep(t time.Duration) error {
	if t > 0 {
		select {
		case <-r.startTimer(t):
		case <-r.ctx.Done():
		}
	}
	return r.ctx.Err()
}

func (r *run) startTimer(t time.Duration) <-chan time.Time {
	if r.timer == nil {
		r.timer = time.NewTimer(t)
	} else {
		r.timer.Reset(t)
	}
	return r.timer.C
}

func (r *run) waitForRoom(now time.Duration) (engine.Step, time.Duration) {
	c, random := &r.call, r.d.wiring.rand
	turn := make(chan struct{})
	place := &bulkhead.Waiter{Admit: func() { close(turn) }}
	step := c.JoinQueue(now, place, random)
	if !step.Full {
		return step, now
	}
	patience := r.startTimer(max(step.Wait, 0))
	select {
	case <-turn:
		step = c.Admitted(r.d.Now(), random)
	case <-patience:
		step = c.LeaveQueue(r.d.Now(), place, engine.Limited, random)
	case <-r.ctx.Done():
		step = c.LeaveQueue(r.d.Now(), place, endedBy(r.ctx.Err()), random)
	}
	return step, r.d.Now()
}

// ended reports the end of the call to the observers, and returns its Result.
func (r *run) ended(op *operation, now time.Duration, step engine.Step, v Verdict) engine.Result {
	res := engine.Result{Reason: step.Reason, Attempts: r.call.Attempts(), Elapsed: r.elapsed(now), Verdict: v}
	switch res.Reason {
	case engine.CircuitOpen:
		if b := r.d.Breaker(); b != nil {
			res.RetryAt = max(b.RetryAt(now)-now, 0)
		}
	case engine.Canceled, engine.Deadline:
		res.Cause = context.Cause(r.ctx)
	}
	var last error
	if res.Reason != engine.Success {
		if res.Reason.GaveUp() {
			inbound.From(r.ctx).GiveUp()
		}
		if res.Attempts > 0 && op != nil && op.lastErr != nil {
			last = op.lastErr()
		}
		if res.Reason != engine.Canceled {
			r.d.failed(now, last)
		}
		res.OutcomeUnknown = res.Attempts > 0 && (v.OutcomeUnknown(r.times.notIdempotent) || !v.NeverSent && unknownBelow(last, r.times.notIdempotent))
	}
	r.observeLayers(op, now, step.Reason)
	r.observeEnd(op, now, step, v, res.OutcomeUnknown, r.times.fallback && degrades(res, last))
	return res
}

// elapsed returns how long the call has gone on: at least 1 ns if it made an attempt.
func (r *run) elapsed(now time.Duration) time.Duration {
	return max(now-r.start, min(time.Duration(r.call.Attempts()), 1))
}

func (r *run) maxAttempts() int {
	if s := r.call.State(); s != nil {
		return s.Plan().Attempts()
	}
	return r.d.Plan().Attempts() // the context ended before the call began
}

// event returns an event with the fields that all events of this call have.
func (r *run) event(op *operation, kind event.Kind, now time.Duration, v Verdict) Event {
	e := Event{Kind: kind, Attempt: r.call.Attempts(), MaxAttempts: r.maxAttempts(), Dependency: r.d.name, Operation: r.operation, Verdict: v, Elapsed: r.elapsed(now)}
	if v.Kind != KindSuccess && op != nil && op.lastErr != nil {
		e.Err = op.lastErr()
	}
	return e
}

// observe reports e to the observers. An observer may give its context to what writes events
// down, and that must not lose them because the caller has gone. (For the first attempt that
// succeeds, a context that does not end would cost an allocation.)
func (r *run) observe(e Event) {
	ctx := r.ctx
	atOnce := e.Kind == event.CallEnded && e.Reason == engine.Success && e.Attempt == 1
	if atOnce && ctx.Err() != nil || !atOnce && ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	r.d.wiring.observer.Observe(ctx, e)
}

func (r *run) observeEnd(op *operation, now time.Duration, step engine.Step, v Verdict, unknown, fallback bool) {
	if r.d.wiring.observer == nil {
		return
	}
	e := r.event(op, event.CallEnded, now, v)
	if step.Exhausted {
		x := e
		x.Kind, x.Reason = event.BudgetExhausted, engine.BudgetExhausted
		r.observe(x)
	}
	e.Reason, e.EndedAttempt, e.AttemptTook, e.Waited = step.Reason, r.times.ended, r.times.took, r.times.waited(now)
	e.Earlier, e.Fallback, e.OutcomeUnknown = r.earlier, fallback, unknown
	r.observe(e)
}

// observeSuccess is observeEnd for the short path.
func (r *run) observeSuccess(v Verdict) {
	ctx := r.ctx
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	r.d.wiring.observer.Observe(ctx, Event{Kind: event.CallEnded, Attempt: 1, EndedAttempt: 1, MaxAttempts: r.maxAttempts(), Dependency: r.d.name, Operation: r.operation, Verdict: v})
}

func (r *run) observeWait(op *operation, kind event.Kind, now time.Duration, step engine.Step, slept time.Duration, v Verdict) {
	if r.d.wiring.observer == nil {
		return
	}
	e := r.event(op, kind, now, v)
	e.Ceiling, e.Delay, e.Slept = step.Ceiling, step.Wait, slept
	e.EndedAttempt, e.AttemptTook = r.times.ended, r.times.took
	switch kind {
	case event.RetryScheduled:
		r.earlier = &event.Earlier{Attempt: e.Attempt, Verdict: v, Err: e.Err, Took: e.AttemptTook, Ceiling: e.Ceiling, Delay: e.Delay, Before: r.earlier}
	case event.RetryStarted:
		e.Attempt++
		r.earlier.Slept = slept
	}
	r.observe(e)
}
