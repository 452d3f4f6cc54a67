package queue

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/inbound"
)

// work is one delivery in the hands of the consumer.
type work struct {
	c     *Consumer
	d     *Delivery
	lease *lease
	m     *Message

	plan    *engine.Plan // as the policy was when the message came
	seen    time.Time
	tries   int
	elapsed time.Duration
	err     error // of the last try
	verdict lull.Verdict
	failed  bool // a try has failed
}

// A fate is what becomes of a message.
type fate struct {
	engine.Redelivery
	label string // of a dead letter, if the engine knows no reason
}

// reason is why the message is a dead letter.
func (f fate) reason() string {
	if f.label == "" && f.Outcome == DeadLetter {
		return f.Reason.String()
	}
	return f.label
}

// planNow is the plan for a message that comes now. Messages are not hedged: a policy that
// hedges has no effect.
func (c *Consumer) planNow() *engine.Plan {
	if p := c.dep.Plan(); !p.Hedges() {
		c.plan.Store(p)
	}
	return c.plan.Load()
}

// delivery is the delivery as the engine sees it now.
func (w *work) delivery() engine.Delivery {
	d := engine.Delivery{Broker: w.c.can.engine(), Attempt: w.d.Attempt, Left: engine.Never}
	if limit := w.plan.Policy().Deadline; limit > 0 {
		d.Left = limit - time.Since(w.seen)
	}
	return d
}

// handle is the life of one delivery, from its fetching to its settlement.
func (c *Consumer) handle(d *Delivery, l *lease, late bool) {
	w := &work{c: c, d: d, lease: l, plan: c.planNow(), seen: d.FirstSeen}
	if w.seen.IsZero() {
		w.seen = time.Now()
	}
	w.m = w.message()
	if r, ok := w.plan.Deliver(w.delivery()); !ok {
		w.settle(fate{Redelivery: r})
		return
	}
	if late {
		w.settle(deferred(0))
		return
	}
	f := w.try()
	for w.again(&f) {
		f = w.try()
	}
	w.settle(f)
}

func deferred(after time.Duration) fate {
	return fate{Redelivery: engine.Redelivery{Outcome: Defer, After: after}}
}

func (w *work) message() *Message {
	d := w.d
	m := &Message{
		ID: d.ID, Attempt: d.Attempt, Of: w.plan.Attempts(), Enqueued: d.Enqueued, FirstSeen: d.FirstSeen,
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
func (w *work) again(f *fate) bool {
	c := w.c
	if !f.Here || w.tries > c.config.Quick || f.Wait > c.config.QuickWait || w.stopping() {
		return false
	}
	// It is not begun where the lease may end before the handler could: an attempt
	// that is cut off is one wasted.
	if end := w.lease.ends(); !end.IsZero() && time.Until(end) < f.Wait+w.lease.room(w.plan.AttemptTimeout()) {
		return false
	}
	c.tell(w.event(Event{Kind: EventRetriedHere, Outcome: Retry, After: f.Wait, Err: w.err, Code: w.verdict.Code}))
	return w.wait(f.Wait) && w.lease.held()
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
	select {
	case <-time.After(d):
		return true
	case <-w.lease.gone:
	case <-w.c.stopping:
	}
	return false
}

// try runs the handler once, if the engine admits it, and returns what is to become of the
// message.
func (w *work) try() fate {
	c := w.c
	call, f, ok := w.admit()
	if !ok {
		return f
	}
	w.tries++
	w.m.Try = w.tries
	probe := call.Probe()
	err := w.run()
	w.err = err
	now := c.dep.Now()
	if err == nil {
		w.verdict = lull.Verdict{Kind: lull.KindSuccess}
		return fate{Redelivery: call.Redeliver(now, w.verdict, w.delivery(), c.random)}
	}
	w.failed = true
	if p, ok := errors.AsType[*PanicError](err); ok && p == err {
		// A bug of ours shows nothing of the dependency.
		call.Abandon(now)
		w.verdict = lull.Verdict{Kind: lull.KindTransient, Code: ReasonPanicked}
		f := w.abandoned(0)
		if f.Reason == engine.AttemptsExhausted {
			f.label = ReasonPanicked
		}
		return f
	}
	if by, ok := errors.AsType[*decided](err); ok {
		return w.obey(&call, now, by)
	}
	w.verdict = classified(err, c.classify)
	interrupted := w.interrupted(err)
	w.verdict = w.verdict.Failed(interrupted)
	d := w.delivery()
	r := call.Redeliver(now, w.verdict, d, c.random)
	switch {
	case interrupted && c.handlers.Err() != nil:
		return deferred(0) // it is no failure of the message
	case interrupted:
		return fate{Redelivery: r}
	}
	s := call.State()
	if probe {
		r = s.FreeProbe(r, d, w.verdict, func() bool { return c.probes.Free(w.d.ID, w.plan.Attempts()) }, c.random)
	}
	if inner, ok := errors.AsType[*lull.Error](err); ok && inner != nil && inner.Reason == engine.CircuitOpen &&
		w.verdict.Kind != lull.KindPermanent && w.verdict.Kind != lull.KindUnclassified {
		r = s.BehindOpenCircuit(r, d, inner.RetryAt, inner.Attempts > 0, c.random)
	}
	return fate{Redelivery: r}
}

// abandoned is what becomes of a message whose last try failed and shows nothing of the
// dependency.
func (w *work) abandoned(after time.Duration) fate {
	return fate{Redelivery: w.c.dep.State().Current().RedeliverAbandoned(w.delivery(), w.verdict, after, w.c.random)}
}

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

// obey does what the handler decided with an error of this package.
func (w *work) obey(call *engine.Call, now time.Duration, by *decided) fate {
	w.verdict = lull.Verdict{Kind: lull.KindPermanent, Code: by.outcome.String()}
	f := fate{engine.Redelivery{Outcome: by.outcome, After: by.after, Reason: engine.Permanent}, by.reason}
	if f.Outcome == Defer {
		w.failed = w.d.Attempt > 1 || w.tries > 1
		w.verdict.Kind = lull.KindCanceled
	}
	d := w.delivery()
	call.Redeliver(now, w.verdict, d, w.c.random)
	f.Redelivery = w.plan.Bound(f.Redelivery, d)
	return f
}

// admit asks the engine whether the handler may run: breaker, throttle, concurrency
// limit. What is refused was not tried: it is given back where that is free, else held
// until it may.
func (w *work) admit() (engine.Call, fate, bool) {
	c := w.c
	for {
		call, step := c.dep.State().ResumeDelivery(c.dep.Now(), engine.Spec{Operation: c.name}, w.delivery(), w.tries < c.config.Quick)
		if !step.Done {
			step = w.begin(&call)
		}
		if !step.Done {
			return call, fate{}, true
		}
		if w.stopping() {
			return call, w.refused(0), false
		}
		wait := c.dep.State().AskAgain(c.dep.Now(), step.Reason, c.random)
		if c.can.FreeDefer || w.lease.isEnding() {
			return call, w.refused(min(wait, c.can.MaxDelay)), false
		}
		// On hold.
		c.held.Add(1)
		held := w.wait(wait)
		c.held.Add(-1)
		if !held {
			return call, w.refused(0), false
		}
	}
}

// refused is what becomes of a message that cannot be tried now. It is deferred, unless a
// try has failed before: then that was an attempt.
func (w *work) refused(after time.Duration) fate {
	if w.tries == 0 {
		return deferred(after)
	}
	return w.abandoned(after)
}

// begin begins the attempt, waiting for the throttle and in line for room if need be.
func (w *work) begin(call *engine.Call) engine.Step {
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
			return call.Stop(c.dep.Now(), engine.Canceled, c.random)
		}
	}
}

func (w *work) queue(call *engine.Call) engine.Step {
	c := w.c
	turn := make(chan struct{})
	place := &bulkhead.Waiter{Admit: func() { close(turn) }}
	step := call.Queue(c.dep.Now(), place, c.random)
	if !step.Full {
		return step
	}
	select {
	case <-turn:
		return call.Admitted(c.dep.Now(), c.random)
	case <-time.After(step.Wait):
		return call.LeaveQueue(c.dep.Now(), place, engine.Limited, c.random)
	case <-w.lease.gone:
	case <-c.stopping:
	}
	return call.LeaveQueue(c.dep.Now(), place, engine.Canceled, c.random)
}

// run runs the handler, in a goroutine of its own: one that ends its goroutine, as
// (*testing.T).FailNow does, ends that, and not the consumer's.
func (w *work) run() (err error) {
	c := w.c
	cause, cancel := context.WithCancelCause(c.handlers)
	defer cancel(context.Canceled)
	timeout := w.plan.AttemptTimeout()
	if end := w.lease.bounds(true); !end.IsZero() {
		defer w.lease.bounds(false)
		if left := max(time.Until(end), 1); timeout <= 0 || left < timeout {
			timeout = left
		}
	}
	ctx, in := inbound.With(cause, w.d.Attempt+w.tries-1, timeout)
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
