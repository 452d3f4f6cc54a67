package queue

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
)

// work is one delivery in the hands of the consumer.
type work struct {
	c     *Consumer
	d     *Delivery
	lease *lease
	m     *Message

	engine  *engine // as the policy was when the message came
	last    bool    // it allows no attempt after this one
	probe   bool    // the last try was let through by a breaker that is not closed
	seen    time.Time
	tries   int
	elapsed time.Duration
	err     error // of the last try
	verdict lull.Verdict
	failed  bool // a try has failed
}

// handle is the life of one delivery, from its fetching to its settlement.
func (c *Consumer) handle(d *Delivery, l *lease, late bool) {
	w := &work{c: c, d: d, lease: l, engine: c.engineNow(), seen: d.FirstSeen}
	w.last = d.Attempt >= w.engine.allowed
	if w.seen.IsZero() {
		w.seen = time.Now()
	}
	w.m = w.message()
	if d.Attempt > w.engine.allowed {
		w.settle(plan{outcome: DeadLetter, reason: ReasonCrashed})
		return
	}
	if late {
		w.settle(plan{outcome: Defer})
		return
	}
	p := w.try()
	for w.again(&p) {
		p = w.try()
	}
	w.settle(p)
}

func (w *work) message() *Message {
	d := w.d
	m := &Message{
		ID: d.ID, Attempt: d.Attempt, Of: w.engine.allowed, Enqueued: d.Enqueued, FirstSeen: d.FirstSeen,
		Group: d.Group, Headers: d.Headers, Body: d.Body, lease: w.lease,
	}
	if e, ok := EnvelopeOf(d.Headers); ok {
		m.Redrives = e.Redrives
		if e.OriginalID != "" {
			m.ID = e.OriginalID
		}
	}
	return m
}

// again tells whether the handler is to be run again at once, and waits for that.
func (w *work) again(p *plan) bool {
	c := w.c
	if !p.quick || w.tries > c.config.Quick || p.wait > c.config.QuickWait || w.stopping() {
		return false
	}
	// It is not begun where the lease may end before the handler could: an attempt
	// that is cut off is one wasted.
	if end := w.lease.ends(); !end.IsZero() && time.Until(end) < p.wait+w.lease.room(w.engine.policy.AttemptTimeout) {
		return false
	}
	c.tell(w.event(Event{Kind: EventRetriedHere, Outcome: Retry, After: p.wait, Err: w.err, Code: w.verdict.Code}))
	return w.wait(p.wait) && w.lease.held()
}

// room is what a handler may need of a lease that is not extended: all that an attempt may
// take, or half of the lease.
func (l *lease) room(timeout time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if timeout > 0 {
		return min(timeout, l.first/2)
	}
	return l.first / 2
}

func (w *work) stopping() bool {
	select {
	case <-w.c.stopping:
		return true
	default:
		return false
	}
}

// wait holds the message for d. It says no if it must be let go of earlier.
func (w *work) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.lease.gone:
	case <-w.c.stopping:
	}
	return false
}

// try runs the handler once, if the engine admits it, and says what is to become of the
// message.
func (w *work) try() plan {
	c := w.c
	call, p, ok := w.admit()
	if !ok {
		return p
	}
	w.tries++
	w.m.Try = w.tries
	err := w.run()
	w.err = err
	now := c.dep.Now()
	if err == nil {
		w.verdict = lull.Verdict{Kind: lull.KindSuccess}
		call.Next(now, w.verdict, c.random)
		return plan{outcome: Ack}
	}
	w.failed = true
	left := w.engine.left(w.seen, time.Now())
	if p, ok := errors.AsType[*PanicError](err); ok && p == err {
		// A bug of ours says nothing about the dependency.
		call.Abandon(now)
		w.verdict = lull.Verdict{Kind: lull.KindTransient, Code: ReasonPanicked}
		next := w.engine.plan(w.d.Attempt, w.verdict, canceled, left)
		if next.outcome == DeadLetter && w.last {
			next.reason = ReasonPanicked
		}
		return next
	}
	if said, ok := errors.AsType[*decided](err); ok {
		return w.obey(&call, now, said, left)
	}
	w.verdict = classified(err, c.classify)
	if w.interrupted(err) {
		w.verdict.Kind = lull.KindCanceled
		call.Next(now, w.verdict, c.random)
		return w.giveBack(left)
	}
	step := call.Next(now, w.verdict, c.random)
	if !step.Done {
		// The retry that it may have is a call of its own, here or elsewhere. This one ends
		// with its failure, and that is what the breaker is to learn.
		call.Stop(now, lull.DeadlineReached, c.random)
	}
	next := w.engine.plan(w.d.Attempt, w.verdict, step, left)
	if w.probe && step.Done && w.free(next) {
		return w.engine.limit(plan{outcome: Defer, after: w.engine.dep.State().Wait(w.d.Attempt, w.verdict, c.random)}, left)
	}
	if inner, ok := errors.AsType[*lull.Error](err); ok && inner != nil && inner.Reason == lull.CircuitOpen && w.verdict.Kind != lull.KindPermanent && w.verdict.Kind != lull.KindUnclassified {
		next = w.innerOpen(next, inner, left)
	}
	return next
}

// canceled is the step of a call that ended without saying anything.
var canceled = lull.Step{Decision: lull.Decision{Done: true, Reason: lull.CallerCanceled}}

// interrupted tells of a handler that failed because this consumer ended its context,
// and not because its time was over.
func (w *work) interrupted(err error) bool {
	if w.c.handlers.Err() == nil && !w.lease.isEnding() {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, ErrDraining) || errors.Is(err, ErrLeaseLost) || w.verdict.Kind == lull.KindCanceled
}

func (l *lease) isEnding() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending
}

// giveBack is for a message whose handler was interrupted by us: it is no failure of
// the message.
func (w *work) giveBack(left time.Duration) plan {
	if w.c.handlers.Err() != nil {
		return plan{outcome: Defer}
	}
	return w.engine.plan(w.d.Attempt, w.verdict, canceled, left)
}

// obey does what the handler said with an error of this package.
func (w *work) obey(call *lull.Call, now time.Duration, said *decided, left time.Duration) plan {
	c := w.c
	w.verdict = lull.Verdict{Kind: lull.KindPermanent, Code: said.outcome.String()}
	p := plan{outcome: said.outcome, after: said.after, reason: said.reason}
	if p.outcome == Defer {
		w.failed = w.d.Attempt > 1 || w.tries > 1
		w.verdict.Kind = lull.KindCanceled
	} else if p.outcome == DeadLetter && p.reason == "" {
		p.reason = lull.FailedPermanent.String()
	}
	call.Next(now, w.verdict, c.random)
	return w.engine.limit(p, left)
}

// innerOpen is for a handler that could do nothing, because the circuit breaker of
// something that it calls is open. Where it is free that is no attempt.
func (w *work) innerOpen(p plan, inner *lull.Error, left time.Duration) plan {
	if p.outcome == Retry {
		p.after = max(p.after, min(inner.RetryAt, w.engine.longest(w.d.Attempt)))
		p.quick = false
	}
	if inner.Attempts == 0 && w.c.can.FreeDefer {
		p = plan{outcome: Defer, after: max(p.after, inner.RetryAt, w.c.dep.State().Wait(w.d.Attempt, lull.Verdict{Kind: lull.KindTransient}, w.c.random))}
	}
	return w.engine.limit(p, left)
}

// admit asks the engine whether the handler may run: breaker, throttle, concurrency
// limit. What is refused was not tried: it is given back where that is free, else held
// until it may.
func (w *work) admit() (lull.Call, plan, bool) {
	c := w.c
	for {
		call, step := w.engine.resume(w.d.Attempt, lull.Spec{Operation: c.name}, w.tries < c.config.Quick)
		if !step.Done {
			step = w.begin(&call)
		}
		if !step.Done {
			b := c.dep.Breaker()
			w.probe = b != nil && b.State(c.dep.Now()) == breaker.HalfOpen
			return call, plan{}, true
		}
		if w.stopping() {
			return call, w.refused(plan{outcome: Defer}), false
		}
		wait := w.patience(step.Reason)
		if c.can.FreeDefer || w.lease.isEnding() {
			return call, w.refused(plan{outcome: Defer, after: min(wait, c.can.MaxDelay)}), false
		}
		// On hold.
		c.held.Add(1)
		held := w.wait(wait)
		c.held.Add(-1)
		if !held {
			return call, w.refused(plan{outcome: Defer}), false
		}
	}
}

// refused is p, unless a try has failed before: then that was an attempt.
func (w *work) refused(p plan) plan {
	if w.tries == 0 {
		return p
	}
	left := w.engine.left(w.seen, time.Now())
	next := w.engine.plan(w.d.Attempt, w.verdict, canceled, left)
	if next.outcome == Retry {
		next.after = max(next.after, min(p.after, w.engine.longest(w.d.Attempt)))
	}
	return next
}

// patience is how long to wait until a call that was refused may be asked for again.
func (w *work) patience(why lull.Reason) time.Duration {
	c := w.c
	if b := c.dep.Breaker(); b != nil && why == lull.CircuitOpen {
		now := c.dep.Now()
		if at := b.RetryAt(now); at > now {
			return at - now
		}
		return lookAgain
	}
	return max(c.dep.State().Wait(1, lull.Verdict{Kind: lull.KindThrottled}, c.random), 10*time.Millisecond)
}

// begin begins the attempt, waiting for the throttle and in line for room if need be.
func (w *work) begin(call *lull.Call) lull.Step {
	c := w.c
	for {
		now := c.dep.Now()
		step := call.Attempt(now, c.random)
		switch {
		case step.Full:
			return w.queue(call)
		case step.Done || step.Wait <= 0:
			return step
		case !w.wait(step.Wait):
			return call.Stop(c.dep.Now(), lull.CallerCanceled, c.random)
		}
	}
}

func (w *work) queue(call *lull.Call) lull.Step {
	c := w.c
	turn := make(chan struct{})
	place := &bulkhead.Waiter{Admit: func() { close(turn) }}
	step := call.Queue(c.dep.Now(), place, c.random)
	if !step.Full {
		return step
	}
	patience := time.NewTimer(max(step.Wait, 0))
	defer patience.Stop()
	select {
	case <-turn:
		return call.Admitted(c.dep.Now(), c.random)
	case <-patience.C:
		return call.LeaveQueue(c.dep.Now(), place, lull.Limited, c.random)
	case <-w.lease.gone:
	case <-c.stopping:
	}
	return call.LeaveQueue(c.dep.Now(), place, lull.CallerCanceled, c.random)
}

// run runs the handler, in a goroutine of its own: one that ends its goroutine, as
// (*testing.T).FailNow does, ends that, and not the consumer's.
func (w *work) run() (err error) {
	c := w.c
	cause, cancel := context.WithCancelCause(c.handlers)
	defer cancel(context.Canceled)
	timeout := w.engine.policy.AttemptTimeout
	if end := w.lease.bounds(true); !end.IsZero() {
		defer w.lease.bounds(false)
		if left := max(time.Until(end), 1); timeout <= 0 || left < timeout {
			timeout = left
		}
	}
	ctx, in := lull.WithInbound(cause, w.d.Attempt+w.tries-1, timeout)
	defer in.End()

	began := time.Now()
	returned := make(chan error, 1)
	go func() {
		normal := false
		var err error
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			} else if !normal {
				err = &PanicError{Value: errGoexit}
			}
			returned <- err
		}()
		err = c.handler(ctx, w.m)
		normal = true
	}()
	defer func() { w.elapsed += time.Since(began) }()
	select {
	case err := <-returned:
		return err
	case <-w.lease.gone:
		cancel(w.lease.ended())
		return <-returned
	}
}
