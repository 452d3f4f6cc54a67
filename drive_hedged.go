package lull

import (
	"context"
	"sync"
	"time"

	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/internal/saturating"
)

// DriveHedged is [Dependency.Drive] for an operation whose attempts may run beside one another by
// Policy.Hedge: the first on the caller's goroutine, others on goroutines of their own when it is
// slow. Result.Slot is the attempt that had the result.
//
// It returns when the attempt on the caller's goroutine has returned, which is cancelled if
// another succeeds: an operation that ignores its context gains nothing by hedges. It does not
// wait for the other attempts.
//
// A panic in an attempt is raised again on the caller's goroutine, after all others have been
// cancelled; in an attempt that has lost, on its own goroutine.
func (d *Dependency) DriveHedged(ctx context.Context, spec engine.Spec, op driver.Hedgeable) engine.Result {
	return new(race).drive(ctx, d, spec, op)
}

// race is one call on the real clock whose attempts may run beside one another.
type race struct {
	run
	hedged       engine.HedgedCall // run.call
	op           driver.Hedgeable
	firstAttempt engine.HedgedAttempt
	firstContext attempt.Context
	rivals       []*rival // the attempts after the first, by slot-1
	alarm        alarm    // guarded by alarms.mu
	deferred     bool     // Call.DeferBreaker was called

	mu         sync.Mutex    // guards rivals and what follows; also call and the attempts, after the first began
	alarmSet   bool          // alarm may be set, for the first call of hedgeDue
	laterTimer *time.Timer   // for further calls of hedgeDue
	due        time.Duration // when hedgeDue is to be called, or Never
	over       time.Duration // when the call ended
	wake       chan struct{} // closed at the end of the call; nil if the caller does not wait for it
	step       engine.Step   // how the call ended
	slot       int           // the latest attempt that has returned and did not lose
	verdict    Verdict       // on it
	panicValue any           // of an attempt or an observer on another goroutine; nil: none panicked

	// Observers are called outside of the lock, by one goroutine at a time, so that they
	// receive events in order.
	pending        []pendingEvent
	breakerPending bool          // the breaker must learn of the end; its listeners are observers
	delivering     bool          // a goroutine delivers events
	delivered      chan struct{} // closed when it has finished, if the caller waits for that
	allDelivered   bool          // the call is over, and all events but its end were delivered
}

// pendingEvent is an event for observers. It gets the error of the attempt in the slot, if that
// is not negative.
type pendingEvent struct {
	event Event
	slot  int
}

// rival is an attempt after the first.
type rival struct {
	engine.HedgedAttempt
	in attempt.Context
}

func (r *race) drive(ctx context.Context, d *Dependency, spec engine.Spec, op driver.Hedgeable) engine.Result {
	now := d.Now()
	r.run, r.op, r.due = run{ctx: ctx, d: d, operation: spec.Operation, start: now}, op, engine.Never
	r.hedged.Call = &r.call
	if no := r.startCall(&spec, now); no != engine.Success {
		return r.ended(nil, now, doneFor(no), Verdict{})
	}
	own, ending := 0, false // the slot of the attempt on this goroutine; the end is being reported
	defer func() {
		if !ending {
			r.unwind(own)
		}
	}()
	step, now := r.beginAttempt(now)
	if step.Done {
		ending = true
		return r.ended(nil, now, step, Verdict{})
	}
	if r.deferred = d.wiring.observer != nil; r.deferred {
		r.call.DeferBreaker()
	}
	r.initAttemptContext(&r.firstContext, now)
	r.call.NestedIn(inbound.From(ctx).Attempt())
	if wait := r.hedged.First(now, &r.firstAttempt); wait != engine.Never {
		r.due, r.alarmSet = saturating.Add(now, wait), true
		d.clockState().alarms.add(r, now, r.due)
	}
	over := false
	for own >= 0 {
		own, over = r.runAttempt(own, false)
	}
	if !over {
		r.wait()
	}
	if !r.allDelivered {
		r.deliverAll()
	}
	ending = true
	if r.panicValue != nil {
		r.panicked(r.over)
		panic(r.panicValue)
	}
	res := r.ended(&operation{lastErr: r.lastErr}, r.over, r.step, r.verdict)
	res.Slot = r.slot
	return res
}

func (r *race) lastErr() error { return r.op.Err(r.slot) }

func (r *race) attemptIn(slot int) (*engine.HedgedAttempt, *attempt.Context) {
	if slot == 0 {
		return &r.firstAttempt, &r.firstContext
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.rivals[slot-1]
	return &b.HedgedAttempt, &b.in
}

// runAttempt makes the attempt in the slot. It returns the slot of the next attempt on this
// goroutine, or -1, and whether the call is over. spawned: this is not the caller's goroutine.
func (r *race) runAttempt(slot int, spawned bool) (next int, over bool) {
	racer, in := r.attemptIn(slot)
	return r.attemptReturned(racer, slot, r.attempt(in, slot), spawned)
}

func (r *race) attempt(in *attempt.Context, slot int) Verdict {
	defer in.End()
	return r.verdictFor(in, r.op.Attempt(in, slot))
}

func (r *race) attemptReturned(racer *engine.HedgedAttempt, slot int, v Verdict, spawned bool) (next int, over bool) {
	next, over, discard := r.applyDecision(racer, slot, v)
	completed := false
	defer func() {
		if !completed { // an observer or Discard panicked
			r.giveBack(next)
		}
	}()
	if !r.deliver(spawned) {
		r.giveBack(next)
		return -1, true
	}
	if discard {
		r.op.Discard(slot, r.left())
	}
	completed = true
	return next, over
}

// applyDecision carries out the engine's decision after the attempt in the slot has returned.
// discard: the attempt's value must be discarded.
func (r *race) applyDecision(racer *engine.HedgedAttempt, slot int, v Verdict) (next int, over, discard bool) {
	now := r.d.Now()
	random := r.d.wiring.rand
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.call.Over() {
		lost := racer.Live()
		r.hedged.Release(now, racer)
		return -1, true, lost
	}
	r.slot, r.verdict = slot, v
	step := r.hedged.Ended(now, racer, v, random)
	r.times.attemptEnded(slot+1, racer.Began(), now, r.hedged.InFlight() == 0)
	if step.Done {
		r.endCall(now, step)
		return -1, true, false
	}
	next = -1
	if step.Wait > 0 {
		r.scheduleHedge(now, step.Wait)
		r.noteFailed(now, slot, v)
	} else if next, step = r.another(now); !step.Done {
		r.noteFailed(now, slot, v)
		r.noteHedge(now, step)
	}
	over = r.call.Over()
	return next, over, !over
}

// another begins one more attempt if the engine allows it, and returns its slot, or -1. The lock
// is held.
func (r *race) another(now time.Duration) (slot int, step engine.Step) {
	b := new(rival)
	step = r.hedged.Hedge(now, &b.HedgedAttempt, r.d.wiring.rand)
	if step.Done {
		r.endCall(now, step)
		return -1, step
	}
	r.scheduleHedge(now, step.Wait)
	if step.Full {
		return -1, step
	}
	r.times.attemptBegan(now)
	r.rivals = append(r.rivals, b)
	r.initAttemptContext(&b.in, now)
	b.in.SetHedge(r.hedged.InFlight() > 1)
	return len(r.rivals), step
}

func (r *race) initAttemptContext(in *attempt.Context, now time.Duration) {
	r.initContext(in, r.attemptEnd(now))
}

// scheduleHedge has hedgeDue called after wait. The lock is held.
func (r *race) scheduleHedge(now, wait time.Duration) {
	switch r.due = engine.Never; {
	case wait == engine.Never:
		r.cancelAlarm()
		return
	case r.laterTimer == nil:
		r.laterTimer = time.AfterFunc(wait, r.hedgeDue)
	default:
		r.laterTimer.Reset(wait)
	}
	r.due = saturating.Add(now, wait)
}

func (r *race) cancelAlarm() {
	if r.alarmSet {
		r.alarmSet = false
		r.d.clockState().alarms.remove(r)
	}
	if r.laterTimer != nil {
		r.laterTimer.Stop()
	}
}

// hedgeDue is called when the engine may allow a hedge, on the goroutine of that hedge.
func (r *race) hedgeDue() {
	slot := -1
	defer func() {
		if p := recover(); p != nil || slot >= 0 {
			r.endBroken(slot, p)
		}
	}()
	next := r.hedge()
	reported := false
	defer func() {
		if !reported {
			r.giveBack(next)
		}
	}()
	if !r.deliver(true) {
		return
	}
	for reported, slot = true, next; slot >= 0; {
		slot, _ = r.runAttempt(slot, true)
	}
}

// hedge begins another attempt if one is due, and returns its slot, or -1.
func (r *race) hedge() (slot int) {
	now := r.d.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.call.Over() || now < r.due {
		return -1
	}
	slot, step := r.another(now)
	if !step.Done {
		r.noteHedge(now, step)
	}
	return slot
}

// endBroken ends the attempt in the slot, on a goroutine that is not the caller's, because it
// panicked with p. If p is nil it ended its goroutine.
func (r *race) endBroken(slot int, p any) {
	if p == nil {
		racer, _ := r.attemptIn(slot)
		r.attemptReturned(racer, slot, r.verdictFor(r.ctx, Verdict{}), true)
		return
	}
	if !r.abandon(r.d.Now(), slot, p) {
		panic(p) // the caller has gone
	}
}

// unwind is deferred by the caller's goroutine. Its attempt in the slot panicked or ended the
// goroutine. If slot is -1 the call is over, and an observer did.
func (r *race) unwind(slot int) {
	now := r.d.Now()
	if slot >= 0 && !r.abandon(now, slot, nil) {
		racer, _ := r.attemptIn(slot) // it had lost
		r.times.attemptEnded(slot+1, racer.Began(), now, true)
	}
	r.deliverAll()
	r.panicked(now)
}

// abandon ends the call because the attempt in the slot will not return. It reports whether the
// caller panics with panicValue, or has panicked itself (nil).
func (r *race) abandon(now time.Duration, slot int, panicValue any) bool {
	racer, _ := r.attemptIn(slot)
	r.mu.Lock()
	defer r.mu.Unlock()
	began := racer.Live()
	r.hedged.AttemptPanicked(now, racer)
	if r.call.Over() {
		if panicValue == nil || r.allDelivered {
			return false
		}
		r.keepPanic(panicValue)
		return true
	}
	if began {
		r.times.attemptEnded(slot+1, racer.Began(), now, r.hedged.InFlight() == 0)
	}
	r.slot = slot
	r.keepPanic(panicValue)
	return true
}

// keepPanic ends the call, if it is not over, because an attempt or an observer panicked. The
// lock is held.
func (r *race) keepPanic(panicValue any) {
	if r.panicValue == nil {
		r.panicValue = panicValue
	}
	if !r.call.Over() {
		now := r.d.Now()
		r.call.Abandon(now)
		r.endCall(now, doneFor(engine.Panicked))
	}
}

// giveBack releases what the attempt in the slot holds, if there is one that has begun and will
// not be made.
func (r *race) giveBack(slot int) {
	if slot < 0 {
		return
	}
	racer, _ := r.attemptIn(slot)
	now := r.d.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hedged.Release(now, racer)
}

// endCall ends the call: attempts that still run have lost, and are cancelled. The lock is held.
func (r *race) endCall(now time.Duration, step engine.Step) {
	r.over, r.step = now, step
	r.breakerPending = r.deferred
	r.allDelivered = !r.breakerPending && !r.delivering && len(r.pending) == 0
	r.cancelAlarm()
	if r.slot != 0 {
		r.firstContext.Cancel()
	}
	for i, b := range r.rivals {
		if r.slot != i+1 {
			b.in.Cancel()
		}
	}
	if r.wake != nil {
		close(r.wake)
	}
}

// wait waits for the end of a call whose attempt on the caller's goroutine has returned.
func (r *race) wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.call.Over() {
		return
	}
	wake := make(chan struct{})
	r.wake = wake
	r.mu.Unlock()
	select {
	case <-wake:
	case <-r.ctx.Done():
	}
	r.mu.Lock()
	if r.call.Over() {
		return
	}
	r.wake = nil
	slot := r.slot
	r.slot = -1 // everyone is cancelled
	now := r.d.Now()
	r.endCall(now, r.call.Stop(now, endedBy(r.ctx.Err()), r.d.wiring.rand))
	r.slot = slot
}

// noteFailed records that the attempt in the slot failed in a call that continues. The lock is
// held.
func (r *race) noteFailed(now time.Duration, slot int, v Verdict) {
	if r.d.wiring.observer != nil {
		e := r.event(nil, event.AttemptFailed, now, v)
		e.Attempt, e.EndedAttempt, e.AttemptTook = slot+1, r.times.ended, r.times.took
		r.pending = append(r.pending, pendingEvent{e, slot})
	}
	r.times.reported()
}

// noteHedge records that an attempt began, or was refused. The lock is held.
func (r *race) noteHedge(now time.Duration, step engine.Step) {
	if r.d.wiring.observer == nil || step.Full && step.Reason == engine.Success {
		return // it asks again later
	}
	e := r.event(nil, event.HedgeStarted, now, Verdict{})
	if step.Full {
		e.Kind, e.Reason = event.HedgeRefused, step.Reason
	}
	if step.Exhausted {
		x := e
		x.Kind, x.Reason = event.BudgetExhausted, engine.BudgetExhausted
		r.pending = append(r.pending, pendingEvent{x, -1})
	}
	r.pending = append(r.pending, pendingEvent{e, -1})
}

// deliver reports the pending events to the observers without the lock, unless another goroutine
// does. It reports whether all observers returned. On a spawned goroutine it keeps a panic for
// the caller.
func (r *race) deliver(spawned bool) bool {
	if r.d.wiring.observer == nil || !r.startDelivering() {
		return true
	}
	completed := false
	defer func() {
		var p any
		if !completed && spawned {
			if p = recover(); p == nil {
				p = "lull: an observer ended its goroutine"
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if p != nil {
			r.keepPanic(p)
		}
		r.delivering = false
		if r.delivered != nil {
			close(r.delivered)
			r.delivered = nil
		}
	}()
	for r.deliverNext() {
	}
	completed = true
	return completed
}

// startDelivering reports whether the caller must deliver events: some are pending, and no other
// goroutine delivers them.
func (r *race) startDelivering() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.delivering || len(r.pending) == 0 && !r.breakerPending {
		return false
	}
	r.delivering = true
	return true
}

// deliverNext delivers one event, and reports whether there was one.
func (r *race) deliverNext() bool {
	r.mu.Lock()
	if len(r.pending) > 0 {
		n := r.pending[0]
		r.pending = r.pending[1:]
		r.mu.Unlock()
		if n.slot >= 0 {
			n.event.Err = r.op.Err(n.slot)
		}
		if e := n.event; e.Kind == event.AttemptFailed {
			r.earlier = &event.Earlier{Attempt: e.Attempt, Verdict: e.Verdict, Err: e.Err, Took: e.AttemptTook, Before: r.earlier}
		}
		r.observe(n.event)
		return true
	}
	learnNow := r.breakerPending
	r.breakerPending = false
	r.mu.Unlock()
	if learnNow {
		r.call.LearnBreaker(r.over, r.d.wiring.rand)
	}
	return learnNow
}

// deliverAll is the caller's last step in a call that is over: it delivers all events but the
// call's end. It waits for observers on other goroutines, since a panic in one is raised here.
func (r *race) deliverAll() {
	for {
		r.deliver(false)
		r.mu.Lock()
		if r.delivering {
			if r.delivered == nil {
				r.delivered = make(chan struct{})
			}
			delivered := r.delivered
			r.mu.Unlock()
			<-delivered
			continue
		}
		if r.allDelivered = len(r.pending) == 0 && !r.breakerPending; r.allDelivered {
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
}

// alarms call hedgeDue when a call of a dependency is late. A call in the list costs a quarter of
// a timer. New calls mostly have the longest to wait.
type alarms struct {
	d     *Dependency
	mu    sync.Mutex // guards what follows, and race.alarm
	ring  alarm      // its next is the first, and its prev the last
	timer *time.Timer
	rings time.Duration // when timer fires, or Never
}

// alarm is a place in the ring of alarms.
type alarm struct {
	at         time.Duration
	prev, next *alarm // nil: not in the ring
	race       *race
}

func (a *alarms) init(d *Dependency) {
	a.d, a.rings = d, engine.Never
	a.ring.prev, a.ring.next = &a.ring, &a.ring
}

func (a *alarms) add(r *race, now, at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	after := a.ring.prev
	for after != &a.ring && after.at > at {
		after = after.prev
	}
	r.alarm = alarm{at: at, prev: after, next: after.next, race: r}
	after.next.prev = &r.alarm
	after.next = &r.alarm
	if at < a.rings {
		a.start(now, at)
	}
}

func (a *alarms) remove(r *race) {
	a.mu.Lock()
	if r.alarm.next != nil {
		r.alarm.unlink()
	}
	a.mu.Unlock()
}

// unlink and start are called with the lock held.
func (l *alarm) unlink() {
	l.prev.next, l.next.prev = l.next, l.prev
	*l = alarm{}
}

func (a *alarms) start(now, at time.Duration) {
	a.rings = at
	if a.timer == nil {
		a.timer = time.AfterFunc(at-now, a.fire)
	} else {
		a.timer.Reset(at - now)
	}
}

// fire is called by the timer. Each call that is late gets a goroutine of its own.
func (a *alarms) fire() {
	now := a.d.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.ring.next != &a.ring && a.ring.next.at <= now {
		r := a.ring.next.race
		r.alarm.unlink()
		go r.hedgeDue()
	}
	if a.rings = engine.Never; a.ring.next != &a.ring {
		a.start(now, a.ring.next.at)
	}
}
