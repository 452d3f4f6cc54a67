package queue

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/internal/sleep"
)

// workInHand is one delivery that the consumer has in hand.
type workInHand struct {
	c     *Consumer
	d     *Delivery
	lease *lease
	m     *Message

	plan         *engine.Plan  // as the policy was when the message came
	attempt      int           // as the engine counts
	lost         int           // as the engine counts Delivery.Lost
	crashes      int           // as the engine counts Delivery.Crashes
	lostInARow   int           // how often this process has lost the message in a row
	past         *history      // what this process knows of the message
	earlier      *workInHand   // still has the message in hand, which was lost
	done         chan struct{} // closed when it is settled
	turn         chan struct{} // closed when the handler may begin; nil: it may
	sendBack     bool          // the message goes back, for there is no room for it
	begun        bool          // it has a place in the crowd
	decidedEarly *disposition  // what happens to it, without its handler
	firstSeen    time.Time
	tries        int
	elapsed      time.Duration
	err          error // of the last try
	verdict      lull.Verdict
	cutOff       engine.CutOff // who ended the handler's context in the last try, before it returned
	failed       bool          // a try has failed
}

type disposition struct {
	engine.Redelivery
	deadLetterReason string // if the engine has none
}

func (f disposition) reason() string {
	if f.deadLetterReason == "" && f.Outcome == DeadLetter {
		return f.Reason.String()
	}
	return f.deadLetterReason
}

// planNow is the plan for a message that comes now. Messages are not hedged: a policy that
// hedges has no effect.
func (c *Consumer) planNow() *engine.Plan {
	if p := c.dependency.Plan(); !p.Hedges() {
		c.plan.Store(p)
	}
	return c.plan.Load()
}

// delivery describes w to the engine.
func (w *workInHand) delivery() engine.Delivery {
	d := engine.Delivery{
		BrokerCapabilities: w.c.capabilities.engine(), QuickRetries: engine.QuickRetries{MaxRuns: w.c.config.Quick, MaxWait: w.c.config.QuickWait},
		Attempt: w.attempt, Lost: w.lost, Crashes: w.crashes, SeenLost: w.lostInARow, Runs: w.tries, RetryLeft: engine.Never, LifeLeft: w.d.lifeLeft(), Stopping: w.stopping(),
	}
	if limit := w.plan.Policy().Deadline; limit > 0 {
		d.RetryLeft = limit - time.Since(w.firstSeen)
	}
	w.lease.describe(&d)
	return d
}

// receive takes d in hand.
func (c *Consumer) receive(d *Delivery) *workInHand {
	w := &workInHand{c: c, d: d, lease: c.hold(d), plan: c.planNow(), firstSeen: d.FirstSeen, attempt: d.Attempt, lost: d.Lost, crashes: d.Crashes, done: make(chan struct{})}
	if w.firstSeen.IsZero() {
		w.firstSeen = time.Now()
	}
	w.m = w.message()
	w.earlier = c.histories.recordInHand(w)
	return w
}

// decide asks the engine what happens to the message before its handler begins. afterStop: the
// consumer was to stop before the message came.
func (w *workInHand) decide(afterStop bool) {
	seen, row, known := w.c.histories.lookUp(w)
	w.lostInARow = row
	now := w.plan.Counted(w.delivery(), seen)
	w.attempt, w.lost, w.crashes = now.Attempt, now.Lost, now.Crashes
	w.m.Attempt = w.attempt
	if known != nil {
		w.err, w.verdict, w.failed, w.tries = known.err, known.verdict, known.failed, known.tries
		w.decidedEarly = &known.disposition
		return
	}
	now.Stopping = afterStop
	if r, ok := w.plan.Deliver(now, w.c.random); !ok {
		w.decidedEarly = &disposition{Redelivery: r}
	}
}

// handle is the life of one delivery, from its fetching to its settlement.
func (w *workInHand) handle(afterStop bool) {
	defer close(w.done)
	if w.earlier != nil {
		select {
		case <-w.earlier.done: // the handler is not run twice at a time
			w.decide(afterStop || w.stopping())
			w.c.line.arrive(w)
		case <-w.lease.gone:
			if w.decide(afterStop); w.decidedEarly == nil {
				w.decidedEarly = &disposition{Redelivery: engine.Redelivery{Outcome: Defer}}
			}
		}
	}
	if w.decidedEarly == nil {
		f := w.enter()
		w.decidedEarly = &f
	}
	w.settle(*w.decidedEarly)
}

// enter runs the handler when it is its turn.
func (w *workInHand) enter() disposition {
	defer w.c.line.remove(w)
	if w.sendBack {
		return w.giveBack(false)
	}
	if w.turn != nil {
		select {
		case <-w.turn:
		case <-w.lease.gone:
			return w.giveBack(false)
		case <-w.c.stopping:
			return w.giveBack(true)
		}
	}
	f := w.try()
	for f.Here && w.waitForRerun(f) {
		f = w.try()
	}
	return f
}

// giveBack is for a message whose handler may not begin.
func (w *workInHand) giveBack(stopping bool) disposition {
	d := w.delivery()
	d.Ending, d.Stopping = true, stopping
	return disposition{Redelivery: w.c.dependency.State().Refused(w.c.dependency.Now(), engine.Limited, w.verdict, d, w.c.random)}
}

func (w *workInHand) over() bool     { return sleep.IsOver(w.done) }
func (w *workInHand) stopping() bool { return sleep.IsOver(w.c.stopping) }

func (w *workInHand) message() *Message {
	d := w.d
	m := &Message{
		ID: d.ID, Attempt: w.attempt, Of: w.plan.Attempts(), Enqueued: d.Enqueued, FirstSeen: d.FirstSeen,
		Group: d.Group, Headers: d.Headers, Body: d.Body, lease: w.lease,
	}
	if e, ok := EnvelopeOf(d.Headers); ok {
		m.Redrives, m.ID = e.Redrives, cmp.Or(e.OriginalID, d.ID)
	}
	return m
}

// waitForRerun waits until the handler is to be run again, and reports whether it may still run.
func (w *workInHand) waitForRerun(f disposition) bool {
	if f.Redelivery.Within(w.d.lifeLeft()).Reason == engine.Expired {
		return false // settle makes it one
	}
	w.c.notify(w.event(Event{Kind: EventRetriedHere, Outcome: Retry, After: f.Wait, Err: w.err, Code: w.verdict.Code}))
	return w.wait(f.Wait) && w.lease.held()
}

// wait holds the message for d. It returns false if the message must be given up earlier.
func (w *workInHand) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.lease.gone:
	case <-w.c.stopping:
	}
	return false
}

// try runs the handler once, if the engine admits it, and returns what happens to the
// message.
func (w *workInHand) try() disposition {
	call, r, ok := w.admit()
	if !ok {
		return disposition{Redelivery: r}
	}
	w.tries++
	w.m.Try = w.tries
	w.err = w.run()
	h, reason := w.handlerEnd()
	free := func(most int) bool { return w.c.probes.Free(w.d.ID, most) }
	f := disposition{Redelivery: call.Handled(w.c.dependency.Now(), h, w.delivery(), free, w.c.random)}
	if f.Outcome == DeadLetter && (h.Chosen.Outcome != 0 || f.Reason == engine.AttemptsExhausted) {
		f.deadLetterReason = reason
	}
	return f
}

// handlerEnd describes to the engine how the handler ended. reason is that of the dead letter, if the engine has none.
func (w *workInHand) handlerEnd() (h engine.Handled, reason string) {
	defer func() { w.verdict = h.Verdict }()
	if w.err == nil {
		return engine.Handled{Verdict: lull.Verdict{Kind: lull.KindSuccess}}, ""
	}
	h.CutOff = w.cutOff
	if p, ok := errors.AsType[*PanicError](w.err); ok && p == w.err {
		w.failed = true
		h.Verdict, h.Panicked = lull.Verdict{Kind: lull.KindTransient, Code: ReasonPanicked}, true
		return h, ReasonPanicked
	}
	by, decides := errors.AsType[*decided](w.err)
	w.failed = !decides || by.outcome != Defer || w.attempt > 1 || w.tries > 1
	if decides {
		h.Verdict = lull.Verdict{Kind: lull.KindPermanent, Code: by.outcome.String()}
		if by.outcome == Defer {
			h.Verdict.Kind = engine.KindCanceled
		}
		h.Chosen = engine.Redelivery{Outcome: by.outcome, After: by.after, Reason: engine.Permanent}
		return h, by.reason
	}
	h.Verdict = classified(w.err, w.c.classify).Failed(w.cutOff)
	if inner, ok := errors.AsType[*lull.Error](w.err); ok && inner != nil && inner.Reason == engine.CircuitOpen {
		h.Behind, h.RetryAt, h.Called = true, inner.RetryAt, inner.Attempts > 0
	}
	return h, ""
}

// admit asks the engine whether the handler may run: breaker, throttle, concurrency
// limit. If not, it returns what happens to the message.
func (w *workInHand) admit() (engine.Call, engine.Redelivery, bool) {
	c := w.c
	for {
		if r := (engine.Redelivery{Outcome: Defer}).Within(w.d.lifeLeft()); r.Outcome == DeadLetter {
			return engine.Call{}, r, false
		}
		s := c.dependency.State()
		call, step := s.ResumeDelivery(c.dependency.Now(), engine.Spec{Operation: c.name}, w.delivery())
		if !step.Done {
			step = w.begin(&call)
		}
		if !step.Done {
			return call, engine.Redelivery{}, true
		}
		r := s.Refused(c.dependency.Now(), step.Reason, w.verdict, w.delivery(), c.random)
		if !r.Here {
			return call, r, false
		}
		c.held.Add(1)
		held := w.wait(r.Wait)
		c.held.Add(-1)
		if !held {
			d := w.delivery()
			d.Stopping = true
			return call, s.Refused(c.dependency.Now(), step.Reason, w.verdict, d, c.random), false
		}
	}
}

// begin begins the attempt, waiting for the throttle and in line for room if need be.
func (w *workInHand) begin(call *engine.Call) engine.Step {
	c := w.c
	for {
		now := c.dependency.Now()
		step := call.Attempt(now, c.random)
		switch {
		case step.Full:
			return w.queue(call)
		case step.Done || step.Wait <= 0:
			return step
		case !w.wait(step.Wait):
			return call.Stop(c.dependency.Now(), engine.Canceled, c.random)
		}
	}
}

func (w *workInHand) queue(call *engine.Call) engine.Step {
	c := w.c
	turn := make(chan struct{})
	place := &bulkhead.Waiter{Admit: func() { close(turn) }}
	step := call.JoinQueue(c.dependency.Now(), place, c.random)
	if !step.Full {
		return step
	}
	select {
	case <-turn:
		return call.Admitted(c.dependency.Now(), c.random)
	case <-time.After(step.Wait):
		return call.LeaveQueue(c.dependency.Now(), place, engine.Limited, c.random)
	case <-w.lease.gone:
	case <-c.stopping:
	}
	return call.LeaveQueue(c.dependency.Now(), place, engine.Canceled, c.random)
}

// run runs the handler in a goroutine of its own, which the handler may end (as (*testing.T).FailNow does).
func (w *workInHand) run() (err error) {
	c := w.c
	cause, cancel := context.WithCancelCause(c.handlers)
	defer cancel(context.Canceled)
	timeout := w.plan.AttemptTimeout()
	if end := w.lease.boundHandler(true); !end.IsZero() {
		defer w.lease.boundHandler(false)
		if left := max(time.Until(end), 1); timeout <= 0 || left < timeout {
			timeout = left
		}
	}
	ctx, in := inbound.With(cause, w.attempt+w.tries-1, timeout)
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
	defer func() {
		w.cutOff = attempt.CutOff(ctx, cause)
		w.elapsed += time.Since(began)
	}()
	select {
	case err := <-returned:
		return err
	case <-w.lease.gone:
		cancel(w.lease.lossReason())
		return <-returned
	}
}
