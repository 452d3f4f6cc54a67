package lull

import (
	"context"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// Hedgeable is an operation whose attempts may run beside one another, for drivers
// that are built on [DriveHedged]. Each attempt has a slot of its own, from 0 and
// below the policy's number of attempts, and keeps there what came of it. Methods
// may be called for different slots at the same time; for one slot Attempt is
// called once, then Discard at most once.
type Hedgeable interface {
	// Attempt makes one attempt. It must return soon when its context ends.
	Attempt(ctx context.Context, slot int) Verdict
	// Discard lets go of what the attempt in the slot came to, which is not the result
	// of the call. Attempts that have lost are discarded when they return, maybe after
	// DriveHedged has. It must return within the given time, which is what is left of the
	// call.
	Discard(slot int, within time.Duration)
	// Err is the error of the attempt in the slot, for observers; also after Discard.
	Err(slot int) error
}

// DriveHedged is [Drive] for an operation whose attempts may run beside one
// another, as Policy.Hedge says: the first on the caller's goroutine, the next when
// that is slow, on a goroutine of its own. Result.Slot says which came to the result.
//
// It returns when the attempt on the caller's goroutine has returned, which is
// cancelled if another succeeds: an operation that does not end with its context
// gains nothing by being hedged. The other attempts it does not wait for.
//
// A panic in an attempt goes on up on the caller's goroutine, when all others have
// been cancelled; in one that has lost by then, on its own goroutine.
func DriveHedged(ctx context.Context, d *Dependency, spec Spec, op Hedgeable) Result {
	return new(race).drive(ctx, d, spec, op)
}

// race is one call on the real clock whose attempts may run side by side.
type race struct {
	run
	hedged HedgedCall // run.call
	op     Hedgeable
	racer  Racer // the first attempt
	in     attemptContext
	beside []*rival // the attempts after the first, by slot-1
	alarm  alarm    // guarded by those of the dependency

	mu       sync.Mutex    // guards beside and what follows, and call and racers from the first attempt on
	inLine   bool          // alarm may be set, for the first time that late is called
	again    *time.Timer   // for other times
	due      time.Duration // when late is to be called; never if it is not
	over     time.Duration // when the call was
	wake     chan struct{} // closed when the call is over and the caller waits for it; nil if nobody does
	step     Step          // of a call that is over
	slot     int           // the latest attempt that has returned and had not lost
	verdict  Verdict       // on it
	fellWith any           // what an attempt panicked with that was not the caller's; nil: none did
}

// rival is an attempt after the first.
type rival struct {
	Racer
	in attemptContext
}

func (r *race) drive(ctx context.Context, d *Dependency, spec Spec, op Hedgeable) Result {
	d = d.current()
	now := d.Now()
	r.run, r.op, r.due = run{ctx: ctx, d: d, operation: spec.Operation, start: now}, op, never
	r.hedged.Call = &r.call
	if no := r.open(&spec, now); no != Succeeded {
		return r.refused(now, no)
	}
	mine := 0 // the attempt on this goroutine
	defer func() { r.unwind(mine) }()
	step, now := r.begin(now)
	if step.Done {
		return r.ended(nil, now, step, Verdict{})
	}
	r.context(&r.in, now)
	r.call.OnBehalfOf(InboundFrom(ctx).Attempt())
	if wait := r.hedged.First(now, &r.racer); wait != never {
		r.due, r.inLine = saturating.Add(now, wait), true
		d.remember().alarms.add(r, now, r.due)
	}
	over := false
	for mine >= 0 {
		mine, over = r.compete(mine)
	}
	if !over {
		r.wait()
	}
	if r.fellWith != nil {
		r.panicked(r.over)
		panic(r.fellWith)
	}
	res := r.ended(&operation{lastErr: r.lastErr}, r.over, r.step, r.verdict)
	res.Slot = r.slot
	return res
}

func (r *race) lastErr() error { return r.op.Err(r.slot) }

// entry is the attempt in the slot.
func (r *race) entry(slot int) (*Racer, *attemptContext) {
	if slot == 0 {
		return &r.racer, &r.in
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.beside[slot-1]
	return &b.Racer, &b.in
}

// compete makes the attempt in the slot. It says which is to be made on the same
// goroutine when it has returned, -1 if none, and whether the call is over.
func (r *race) compete(slot int) (next int, over bool) {
	racer, in := r.entry(slot)
	return r.returned(racer, slot, r.attempt(in, slot))
}

// attempt makes an attempt in a context that ends with it.
func (r *race) attempt(in *attemptContext, slot int) Verdict {
	defer in.end()
	return r.op.Attempt(in, slot)
}

// returned goes on from an attempt that has, as compete does. (Observers are told under the
// lock: that the call has ended is the last that they hear.)
func (r *race) returned(racer *Racer, slot int, v Verdict) (next int, over bool) {
	now := r.d.Now()
	random := r.d.plan.rand
	r.mu.Lock()
	if r.call.over() {
		r.hedged.LetGo(now, racer)
		r.mu.Unlock()
		r.op.Discard(slot, r.left())
		return -1, true
	}
	if v.Kind != KindSuccess {
		v = r.failure(v)
	}
	r.slot, r.verdict = slot, v
	step := r.hedged.Ended(now, racer, v, random)
	r.tale.attemptEnded(slot+1, racer.began, now, r.hedged.flying == 0)
	if step.Done {
		r.decide(now, step)
		r.mu.Unlock()
		return -1, true
	}
	next = -1
	if step.Wait > 0 {
		r.ring(now, step.Wait)
		r.observeFailed(now, slot, v)
	} else if next, step = r.another(now); !step.Done {
		r.observeFailed(now, slot, v)
		r.observeHedge(now, step)
	}
	over = r.call.over()
	r.mu.Unlock()
	if !over {
		r.op.Discard(slot, r.left())
	}
	return next, over
}

// another begins one more attempt if the engine allows it, and says in which slot;
// else -1. The lock is held.
func (r *race) another(now time.Duration) (slot int, step Step) {
	b := new(rival)
	step = r.hedged.Hedge(now, &b.Racer, r.d.plan.rand)
	if step.Done {
		r.decide(now, step)
		return -1, step
	}
	r.ring(now, step.Wait)
	if step.Full {
		return -1, step
	}
	r.tale.attemptBegan(now)
	r.beside = append(r.beside, b)
	r.context(&b.in, now)
	b.in.hedge = r.hedged.flying > 1
	return len(r.beside), step
}

// context makes in the context of the attempt that began at now. Each has one of
// its own, by which it is cancelled when it has lost.
func (r *race) context(in *attemptContext, now time.Duration) {
	r.bound(in, r.until(now))
}

// ring has late called when the engine is to be asked for another attempt beside
// those in flight. The lock is held.
func (r *race) ring(now, wait time.Duration) {
	switch r.due = never; {
	case wait == never:
		r.silence()
		return
	case r.again == nil:
		r.again = time.AfterFunc(wait, r.late)
	default:
		r.again.Reset(wait)
	}
	r.due = saturating.Add(now, wait)
}

func (r *race) silence() {
	if r.inLine {
		r.inLine = false
		r.d.remember().alarms.remove(r)
	}
	if r.again != nil {
		r.again.Stop()
	}
}

// late is called when it may be time for another attempt, on a goroutine of its own,
// which is that attempt's.
func (r *race) late() {
	now := r.d.Now()
	r.mu.Lock()
	if r.call.over() || now < r.due {
		r.mu.Unlock()
		return
	}
	r.due = never
	slot, step := r.another(now)
	if !step.Done {
		r.observeHedge(now, step)
	}
	r.mu.Unlock()
	defer func() {
		if slot >= 0 {
			r.broke(slot, recover())
		}
	}()
	for slot >= 0 {
		slot, _ = r.compete(slot)
	}
}

// broke ends the attempt in the slot, on a goroutine that is not the caller's,
// because it panicked with p, or ended its goroutine if that is nil.
func (r *race) broke(slot int, p any) {
	if p == nil {
		racer, _ := r.entry(slot)
		r.returned(racer, slot, Verdict{})
		return
	}
	if !r.abandon(r.d.Now(), slot, p) {
		panic(p) // the caller has gone
	}
}

// unwind is deferred by the caller's goroutine. If it still has an attempt, that
// panicked or ended its goroutine, whatever became of the others.
func (r *race) unwind(slot int) {
	if slot < 0 {
		return
	}
	now := r.d.Now()
	if !r.abandon(now, slot, nil) {
		racer, _ := r.entry(slot) // it had lost
		r.tale.attemptEnded(slot+1, racer.began, now, true)
	}
	r.panicked(now)
}

// abandon ends the call because the attempt in the slot will not return, and tells
// whether it was not over before. FellWith is for the caller to panic with.
func (r *race) abandon(now time.Duration, slot int, fellWith any) bool {
	racer, _ := r.entry(slot)
	r.mu.Lock()
	defer r.mu.Unlock()
	began := racer.live
	r.hedged.LetGo(now, racer)
	if r.call.over() {
		return false
	}
	if began {
		r.tale.attemptEnded(slot+1, racer.began, now, r.hedged.flying == 0)
	}
	r.call.Abandon(now)
	r.slot, r.fellWith = slot, fellWith
	r.decide(now, done(Panicked))
	return true
}

// decide ends the call: attempts that still run have lost, and are cancelled. The
// lock is held.
func (r *race) decide(now time.Duration, step Step) {
	r.over, r.step = now, step
	r.silence()
	if r.slot != 0 {
		r.in.cancel(context.Canceled)
	}
	for i, b := range r.beside {
		if r.slot != i+1 {
			b.in.cancel(context.Canceled)
		}
	}
	if r.wake != nil {
		close(r.wake)
	}
}

// wait waits for the end of a call whose attempt on the caller's goroutine has
// returned.
func (r *race) wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.call.over() {
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
	if r.call.over() {
		return
	}
	r.wake = nil
	slot := r.slot
	r.slot = -1 // everyone is cancelled
	now := r.d.Now()
	r.decide(now, r.call.Stop(now, endedBy(r.ctx.Err()), r.d.plan.rand))
	r.slot = slot
}

// observeFailed tells of the attempt in the slot, which failed in a call that goes on.
// The lock is held.
func (r *race) observeFailed(now time.Duration, slot int, v Verdict) {
	if r.d.plan.observer != nil {
		e := r.event(nil, EventAttemptFailed, now, v)
		e.Attempt, e.Err, e.By, e.Took = slot+1, r.op.Err(slot), r.tale.by, r.tale.took
		r.d.plan.observer.Observe(r.ctx, e)
	}
	r.tale.told()
}

// observeHedge tells of an attempt that began beside others or after them, or was
// refused. The lock is held.
func (r *race) observeHedge(now time.Duration, step Step) {
	if r.d.plan.observer == nil || step.Full && step.Reason == Succeeded {
		return // it was told to come later
	}
	e := r.event(nil, EventHedgeStarted, now, Verdict{})
	if step.Full {
		e.Kind, e.Reason = EventHedgeRefused, step.Reason
	}
	if step.Exhausted {
		r.observeExhausted(e)
	}
	r.d.plan.observer.Observe(r.ctx, e)
}
