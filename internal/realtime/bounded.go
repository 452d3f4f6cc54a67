package realtime

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
)

// Bounded is a context that ends at a time, which Extend moves on, if it was not
// detached before. The channel and the timer are made when somebody asks for Done. Who never
// does (it returned at once, or failed to start) does not pay for them.
type Bounded struct {
	context.Context               // the caller's
	Clock           *Clock        // by which it ends
	Limit           time.Duration // Extend goes no further
	Number          int32         // for who embeds it (here it takes no room)

	state   atomic.Uint32 // an ending, or notYet, with bits; End changes it without mu, if there is no watcher
	mu      sync.Mutex    // guards what follows, and other changes of state
	until   time.Duration // when it ends; engine.Never: with the caller's
	done    chan struct{} // made by the first Done
	watcher *watcher      // made with done, until it has ended
}

// The bits of Bounded.state beside the ending.
const (
	watched  uint32 = 1 << (iota + 8) // somebody has asked for done before the end
	detached                          // its time does not end it any more
	hedge                             // for who embeds it, as Number
	lost                              // the same
)

// SetHedge makes Hedge return yes. It is called before the context is used.
func (c *Bounded) SetHedge(yes bool) {
	if yes {
		c.state.Or(hedge)
	}
}

// Hedge is what SetHedge was called with.
func (c *Bounded) Hedge() bool { return c.state.Load()&hedge != 0 }

// SetLost makes Lost return true.
func (c *Bounded) SetLost() { c.state.Or(lost) }

// Lost reports whether SetLost was called.
func (c *Bounded) Lost() bool { return c.state.Load()&lost != 0 }

func (c *Bounded) ending() ending   { return ending(c.state.Load()) }
func (c *Bounded) isDetached() bool { return c.state.Load()&detached != 0 }

// A watcher ends a context in time, and with the caller's. It is used again for another context
// when nothing can call wake any more.
type watcher struct {
	c      *Bounded
	wake   func()      // c.wake, for the timer and for the caller's end
	timer  *time.Timer // nil: none, or Detach has stopped it
	unhook func() bool // takes wake off the caller's context

	// Guarded by c.mu.
	firstHook func() // a function of AfterFunc: mostly there is one at a time
	firstUses uint8  // how often firstHook has been used; maxFirstUses: no more
	hooks     *hook  // those that there was no room for, a list
}

var watchers sync.Pool

func newWatcher(c *Bounded) *watcher {
	w, _ := watchers.Get().(*watcher)
	if w == nil {
		made := new(watcher)
		made.wake = func() { made.c.wake() }
		w = made
	}
	w.c, w.firstUses = c, 0
	return w
}

// release lets go of the timer and of the caller's context. The timer itself is not used again: it
// would panic in another bubble of testing/synctest.
func (w *watcher) release() {
	silent := w.timer == nil || w.timer.Stop()
	if w.unhook != nil && !w.unhook() {
		silent = false
	}
	if silent {
		w.c, w.timer, w.unhook = nil, nil, nil
		watchers.Put(w)
	}
}

// maxFirstUses is how often watcher.firstHook is used.
const maxFirstUses = math.MaxUint8

// A hook is a function that AfterFunc was called with. Bounded.mu guards it.
type hook struct {
	c          *Bounded
	f          func() // nil if it was stopped, or runs
	prev, next *hook
}

// ending is how a context has ended.
type ending uint8

const (
	notYet   ending = iota
	byCaller        // the caller's context has
	timedOut
	canceled
)

// errorOf is the error of a context that has ended so.
func (c *Bounded) errorOf(e ending) error {
	switch e {
	case byCaller:
		return c.Context.Err()
	case timedOut:
		return context.DeadlineExceeded
	case canceled:
		return context.Canceled
	}
	return nil
}

// Init makes c end at until, and with ctx.
func (c *Bounded) Init(ctx context.Context, clock *Clock, until time.Duration) {
	c.Context, c.Clock, c.until = ctx, clock, until
}

// settle makes how the ending, and sets the bits more, unless it has ended or one of the bits in unless is set. It
// reports whether it has, and returns the bits that were set before. Except for End, which ends what nobody watches,
// c.mu is held.
func (c *Bounded) settle(how ending, more, unless uint32) (was uint32, ok bool) {
	for {
		was := c.state.Load()
		if ending(was) != notYet || was&unless != 0 {
			return was, false
		}
		if c.state.CompareAndSwap(was, was|uint32(how)|more) {
			return was, true
		}
	}
}

// Deadline is the nearer of the caller's and its own.
func (c *Bounded) Deadline() (time.Time, bool) {
	deadline, ok := c.Context.Deadline()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == engine.Never || c.isDetached() {
		return deadline, ok
	}
	if !ok || c.until < c.Clock.Deadline(deadline) {
		return c.Clock.epoch.Add(c.until), true
	}
	return deadline, true
}

// Err is what ended the context: the caller, its time, or End (context.Canceled).
func (c *Bounded) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending() == notYet && c.done == nil {
		// Nobody watches yet, so look.
		if c.Context.Err() != nil {
			c.settle(byCaller, 0, 0)
		} else if c.until != engine.Never && !c.isDetached() && c.Clock.Now() >= c.until {
			c.settle(timedOut, 0, 0)
		}
	}
	return c.errorOf(c.ending())
}

// Done makes the channel, the timer, and the hook on the caller's context.
func (c *Bounded) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.startWatching()
}

// startWatching is Done with c.mu held.
func (c *Bounded) startWatching() chan struct{} {
	if c.done != nil {
		return c.done
	}
	c.done = make(chan struct{})
	was := c.state.Or(watched)
	if ending(was) != notYet {
		close(c.done)
		return c.done
	}
	w := newWatcher(c)
	c.watcher = w
	if c.Context.Done() != nil {
		w.unhook = context.AfterFunc(c.Context, w.wake)
	}
	if c.until != engine.Never && was&detached == 0 {
		w.timer = time.AfterFunc(c.until-c.Clock.Now(), w.wake)
	}
	return c.done
}

// AfterFunc lets the context package hook children on without a goroutine each.
func (c *Bounded) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startWatching()
	w := c.watcher
	if w == nil { // it has ended
		go f()
		return func() bool { return false }
	}
	if w.firstHook == nil && w.firstUses < maxFirstUses {
		w.firstUses++
		w.firstHook = f
		turn := w.firstUses
		return func() bool { return c.stopFirstHook(turn) }
	}
	h := &hook{c: c, f: f, next: w.hooks}
	if h.next != nil {
		h.next.prev = h
	}
	w.hooks = h
	return h.stop
}

// stopFirstHook stops the function that was firstHook at that turn.
func (c *Bounded) stopFirstHook(turn uint8) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watcher
	if w == nil || w.firstHook == nil || w.firstUses != turn {
		return false
	}
	w.firstHook = nil
	return true
}

func (h *hook) stop() bool {
	c := h.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.f == nil {
		return false
	}
	h.f = nil
	if h.next != nil {
		h.next.prev = h.prev
	}
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		c.watcher.hooks = h.next
	}
	return true
}

// Cancel ends the context (context.Canceled), also if it was detached.
func (c *Bounded) Cancel() { c.endAs(canceled, 0) }

// Expire ends the context as its time would (context.DeadlineExceeded), also if it was detached.
func (c *Bounded) Expire() { c.endAs(timedOut, 0) }

// endAs ends the context so, unless it has ended or a bit in unless is set.
func (c *Bounded) endAs(how ending, unless uint32) {
	c.mu.Lock()
	was, ok := c.settle(how, 0, unless)
	if !ok || was&watched == 0 { // so that nothing else was made
		c.mu.Unlock()
		return
	}
	close(c.done)
	w := c.watcher
	c.watcher = nil
	first, hooks := w.firstHook, w.hooks
	w.firstHook, w.hooks = nil, nil
	if first != nil {
		go first()
	}
	for h := hooks; h != nil; h = h.next {
		go h.f()
		h.f = nil
	}
	c.mu.Unlock()
	w.release()
}

// wake is called when the caller's context has ended, and by the timer, which may have fired before
// Detach could stop it, or after Extend.
func (c *Bounded) wake() {
	c.mu.Lock()
	how, unless := timedOut, detached
	switch w := c.watcher; {
	case w == nil: // it has ended
	case w.timer == nil || c.Context.Err() != nil:
		how, unless = byCaller, 0
	case !c.isDetached():
		if left := c.until - c.Clock.Now(); left > 0 {
			w.timer.Reset(left)
			c.mu.Unlock()
			return
		}
	}
	c.mu.Unlock()
	c.endAs(how, unless)
}

// Extend makes the context end no earlier than d from now, up to its limit. It
// leaves the timer alone: wake looks at until.
func (c *Bounded) Extend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d > 0 && c.state.Load()&^(hedge|watched|lost) == 0 && c.until != engine.Never {
		c.until = max(c.until, min(saturating.Add(c.Clock.Now(), d), c.Limit))
	}
}

// End ends the context, if it was not detached: what it was for has returned.
func (c *Bounded) End() {
	if _, ended := c.settle(canceled, 0, watched|detached); !ended {
		c.endAs(canceled, detached)
	}
}

// Detach makes the context outlive its own time and End: only the caller and Cancel end it
// from then on. It reports whether it has not ended yet.
func (c *Bounded) Detach() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.settle(notYet, detached, 0); !ok {
		return false
	}
	if w := c.watcher; w != nil && w.timer != nil && w.timer.Stop() {
		w.timer = nil
	}
	return true
}
