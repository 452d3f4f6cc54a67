package lull

import (
	"context"
	"time"

	"github.com/lullgo/lull/bulkhead"
)

// A Result is how a call went, for drivers that are built on [Drive].
type Result struct {
	Reason   Reason
	Attempts int           // 0 if the call was refused before the first
	Elapsed  time.Duration // 0 for a first attempt that succeeded, unless WithTiming
	Verdict  Verdict       // on the last attempt
	RetryAt  time.Duration // CircuitOpen only: how long until the breaker may admit a probe
	Cause    error         // what ended the caller's context, if that ended the call
}

// Drive makes one call to d on the real clock: it waits, bounds each attempt in
// time, tells the observers, and leaves every decision to a [Call]. It is what
// [Do] and the protocol drivers stand on; use it to write another of those.
//
// Drive runs attempt on its caller's goroutine, with a context that ends with
// the attempt's timeout, and takes its verdict. Before it waits for another
// attempt it calls discard, if that is not nil, to let go of what the last one
// returned. A panic in attempt gives back everything and goes on up. lastErr, if
// not nil, is asked for the last attempt's error when an observer is told.
func Drive(ctx context.Context, d *Dependency, spec Spec, attempt func(context.Context) Verdict, discard func(), lastErr func() error) Result {
	now := d.Now()
	if err := ctx.Err(); err != nil {
		return d.refuse(ctx, now, spec, endedBy(err))
	}
	var theirs time.Duration // the caller's deadline
	if t, ok := ctx.Deadline(); ok {
		theirs = max(t.Sub(d.plan.epoch), 1)
		if spec.Deadline == 0 || theirs < spec.Deadline {
			spec.Deadline = theirs
		}
	}
	var c Call
	if step := c.begin(d, now, spec); step.Done {
		return d.refuse(ctx, now, spec, step.Reason)
	}
	defer func() {
		if !c.ended { // attempt panicked, or ended its goroutine
			c.Abandon(d.Now())
		}
	}()
	w := waiter{ctx: ctx, d: d}
	var v Verdict
	for {
		step := c.Attempt(now, d.plan.rand)
		if step.Full {
			step = w.queue(&c, now)
			now = d.Now()
		}
		if step.Done {
			return d.ended(ctx, &c, now, step, v, lastErr)
		}
		if in := d.attemptContext(ctx, &c, now, theirs); in != nil {
			v = runIn(in, attempt)
		} else {
			v = attempt(ctx)
		}
		if v.Kind == KindSuccess && c.attempts == 1 && !d.plan.timed && !c.token.Probe() {
			// All that depends on the time of this end is the slot of the budget's
			// window that the success falls into.
			c.succeed(d.nowAbout(now))
			if o := d.plan.observer; o != nil {
				o.Observe(ctx, Event{Kind: EventCallEnded, Attempt: 1, Of: d.plan.attempts, Dependency: d.name, Operation: spec.Operation, Verdict: v})
			}
			return Result{Attempts: 1, Verdict: v}
		}
		now = d.Now()
		if v.Kind != KindSuccess && ctx.Err() != nil && endedBy(ctx.Err()) == CallerCanceled {
			v.Kind = KindCanceled
		}
		step = c.Next(now, v, d.plan.rand)
		if step.Done {
			return d.ended(ctx, &c, now, step, v, lastErr)
		}
		d.observeWait(ctx, &c, EventRetryScheduled, now, step, 0, v, lastErr)
		if discard != nil {
			discard()
		}
		if err := w.sleep(step.Wait); err != nil {
			now = d.Now()
			return d.ended(ctx, &c, now, c.Stop(now, endedBy(err), d.plan.rand), v, lastErr)
		}
		slept := now
		now = d.Now()
		d.observeWait(ctx, &c, EventRetryStarted, now, step, now-slept, v, lastErr)
	}
}

// endedBy is the reason that goes with the error of an ended context.
func endedBy(err error) Reason {
	if err == context.DeadlineExceeded {
		return DeadlineReached
	}
	return CallerCanceled
}

// runIn runs attempt in a context of its own, which ends when it returns or
// panics.
func runIn(in *attemptContext, attempt func(context.Context) Verdict) Verdict {
	defer in.end()
	return attempt(in)
}

// attemptContext is the context for the attempt that begins at now, or nil if
// the caller's own will do: the caller's deadline is no later than the attempt's,
// and the attempt is the first, which an operation assumes when it is told
// nothing.
func (d *Dependency) attemptContext(ctx context.Context, c *Call, now, theirs time.Duration) *attemptContext {
	t := c.Timeout(now)
	ours := t != never && (theirs == 0 || t < theirs-now)
	if !ours && c.attempts == 1 && ctx.Value(attemptKey{}) == nil {
		return nil
	}
	in := &attemptContext{Context: ctx, attempt: Attempt{Dependency: d.name, Operation: c.spec.Operation, Number: int(c.attempts), Of: d.plan.attempts}}
	if ours {
		in.until = d.plan.epoch.Add(now + t)
	}
	return in
}

// refuse reports a call that ended before its first attempt.
func (d *Dependency) refuse(ctx context.Context, now time.Duration, spec Spec, r Reason) Result {
	c := Call{d: d, spec: spec, start: now, ended: true}
	return d.ended(ctx, &c, now, Step{Done: true, Reason: r}, Verdict{}, nil)
}

// ended tells the observers how the call went, and makes its Result.
func (d *Dependency) ended(ctx context.Context, c *Call, now time.Duration, step Step, v Verdict, lastErr func() error) Result {
	r := Result{Reason: step.Reason, Attempts: int(c.attempts), Elapsed: now - c.start, Verdict: v}
	switch r.Reason {
	case CircuitOpen:
		if b := d.Breaker(); b != nil {
			r.RetryAt = max(b.RetryAt(now)-now, 0)
		}
	case CallerCanceled, DeadlineReached:
		r.Cause = context.Cause(ctx)
	}
	if o := d.plan.observer; o != nil {
		e := Event{Kind: EventCallEnded, Reason: r.Reason, Attempt: r.Attempts, Of: d.plan.attempts, Dependency: d.name, Operation: c.spec.Operation, Verdict: v, Elapsed: r.Elapsed}
		if lastErr != nil && r.Attempts > 0 {
			e.Err = lastErr()
		}
		if step.Exhausted {
			spent := e
			spent.Kind = EventBudgetExhausted
			o.Observe(ctx, spent)
		}
		o.Observe(ctx, e)
	}
	return r
}

// observeWait tells the observers of a wait that begins or has ended.
func (d *Dependency) observeWait(ctx context.Context, c *Call, kind EventKind, now time.Duration, step Step, slept time.Duration, v Verdict, lastErr func() error) {
	o := d.plan.observer
	if o == nil {
		return
	}
	e := Event{Kind: kind, Dependency: d.name, Operation: c.spec.Operation, Attempt: int(c.attempts), Of: d.plan.attempts, Elapsed: now - c.start, Verdict: v, Ceiling: step.Ceiling, Delay: step.Wait, Slept: slept}
	if kind == EventRetryStarted {
		e.Attempt++
	}
	if lastErr != nil {
		e.Err = lastErr()
	}
	o.Observe(ctx, e)
}

// waiter waits on the real clock. One timer serves all the waits of a call, and
// a wait of nothing needs none.
type waiter struct {
	ctx   context.Context
	d     *Dependency
	timer *time.Timer
}

func (w *waiter) set(t time.Duration) <-chan time.Time {
	if w.timer == nil {
		w.timer = time.NewTimer(t)
	} else {
		w.timer.Reset(t)
	}
	return w.timer.C
}

// sleep returns the context's error if that ended first.
func (w *waiter) sleep(t time.Duration) error {
	if t <= 0 {
		return w.ctx.Err()
	}
	select {
	case <-w.set(t):
		return w.ctx.Err()
	case <-w.ctx.Done():
		w.timer.Stop()
		return w.ctx.Err()
	}
}

// queue stands in line for room under the concurrency limit.
func (w *waiter) queue(c *Call, now time.Duration) Step {
	turn := make(chan struct{})
	place := &bulkhead.Waiter{Admit: func() { close(turn) }}
	random := w.d.plan.rand
	step := c.Queue(now, place, random)
	if !step.Full {
		return step
	}
	select {
	case <-turn:
		w.timerStop()
		return c.Admitted()
	case <-w.set(max(step.Wait, 0)):
		return c.LeaveQueue(w.d.Now(), place, random)
	case <-w.ctx.Done():
		w.timerStop()
		now = w.d.Now()
		if step := c.LeaveQueue(now, place, random); step.Done {
			step.Reason = endedBy(w.ctx.Err())
			return step
		}
		return c.Stop(now, endedBy(w.ctx.Err()), random)
	}
}

func (w *waiter) timerStop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
