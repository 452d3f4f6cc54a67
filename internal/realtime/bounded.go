package realtime

import (
	"context"
	"math"
	"sync"
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
	Hedge           bool          // likewise

	detached  bool   // this and what follows is guarded by mu
	ending    ending // how it has ended
	firstUses uint8  // how often first has been used; maxFirstUses: no more
	mu        sync.Mutex
	until     time.Duration // when it ends; engine.Never: with the caller's
	done      chan struct{} // made by the first Done
	watcher   *watcher      // made with done, until it has ended
	firstHook func()        // a function of AfterFunc: mostly there is one at a time
	hooks     *hook         // those that there was no room for, a list
}

// A watcher ends a context in time, and with the caller's. It is used again for another context
// when nothing can call wake any more.
type watcher struct {
	c      *Bounded
	wake   func()      // c.wake, for the timer and for the caller's end
	timer  *time.Timer // nil: none, or Detach has stopped it
	unhook func() bool // takes wake off the caller's context
}

var watchers sync.Pool

func newWatcher(c *Bounded) *watcher {
	w, _ := watchers.Get().(*watcher)
	if w == nil {
		made := new(watcher)
		made.wake = func() { made.c.wake() }
		w = made
	}
	w.c = c
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

// maxFirstUses is how often Bounded.firstHook is used.
const maxFirstUses = math.MaxUint8

// A hook is a function that AfterFunc was called with. Bounded.mu guards it.
type hook struct {
	c          *Bounded
	f          func() // nil if it was stopped, or runs
	prev, next *hook
}

// ending is how a context has ended. It is a byte and not an error, since there is one of them
// for each attempt.
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

// Deadline is the nearer of the caller's and its own.
func (c *Bounded) Deadline() (time.Time, bool) {
	deadline, ok := c.Context.Deadline()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == engine.Never || c.detached {
		return deadline, ok
	}
	if !ok || c.until < c.Clock.Deadline(deadline) {
		return c.Clock.Time(c.until), true
	}
	return deadline, true
}

// Err is what ended the context: the caller, its time, or End (context.Canceled).
func (c *Bounded) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending == notYet && c.done == nil {
		// Nobody watches yet, so look.
		if c.Context.Err() != nil {
			c.ending = byCaller
		} else if c.until != engine.Never && !c.detached && c.Clock.Now() >= c.until {
			c.ending = timedOut
		}
	}
	return c.errorOf(c.ending)
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
	if c.ending != notYet {
		close(c.done)
		return c.done
	}
	w := newWatcher(c)
	c.watcher = w
	if c.Context.Done() != nil {
		w.unhook = context.AfterFunc(c.Context, w.wake)
	}
	if c.until != engine.Never && !c.detached {
		w.timer = time.AfterFunc(c.until-c.Clock.Now(), w.wake)
	}
	return c.done
}

// AfterFunc lets the context package hook children on without a goroutine each.
func (c *Bounded) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startWatching()
	if c.ending != notYet {
		go f()
		return func() bool { return false }
	}
	if c.firstHook == nil && c.firstUses < maxFirstUses {
		c.firstUses++
		c.firstHook = f
		turn := c.firstUses
		return func() bool { return c.stopFirstHook(turn) }
	}
	h := &hook{c: c, f: f, next: c.hooks}
	if h.next != nil {
		h.next.prev = h
	}
	c.hooks = h
	return h.stop
}

// stopFirstHook stops the function that had first at that turn.
func (c *Bounded) stopFirstHook(turn uint8) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.firstHook == nil || c.firstUses != turn {
		return false
	}
	c.firstHook = nil
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
		c.hooks = h.next
	}
	return true
}

// Cancel ends the context (context.Canceled), also if it was detached.
func (c *Bounded) Cancel() { c.endAs(canceled, true) }

// Expire ends the context as its time would (context.DeadlineExceeded), also if it was detached.
func (c *Bounded) Expire() { c.endAs(timedOut, true) }

// endAs ends the context so, unless it has ended or (if not always) was detached.
func (c *Bounded) endAs(how ending, always bool) {
	c.mu.Lock()
	if c.ending != notYet || c.detached && !always {
		c.mu.Unlock()
		return
	}
	c.ending = how
	if c.done == nil { // so that nothing else was made
		c.mu.Unlock()
		return
	}
	close(c.done)
	w, first, hooks := c.watcher, c.firstHook, c.hooks
	c.watcher, c.firstHook, c.hooks = nil, nil, nil
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
	how := timedOut
	switch w := c.watcher; {
	case w == nil: // it has ended
	case w.timer == nil || c.Context.Err() != nil:
		how = byCaller
	case !c.detached:
		if left := c.until - c.Clock.Now(); left > 0 {
			w.timer.Reset(left)
			c.mu.Unlock()
			return
		}
	}
	c.mu.Unlock()
	c.endAs(how, how == byCaller)
}

// Extend makes the context end no earlier than d from now, up to its limit. It
// leaves the timer alone: wake looks at until.
func (c *Bounded) Extend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d > 0 && c.ending == notYet && !c.detached && c.until != engine.Never {
		c.until = max(c.until, min(saturating.Add(c.Clock.Now(), d), c.Limit))
	}
}

// End ends the context, if it was not detached: what it was for has returned.
func (c *Bounded) End() { c.endAs(canceled, false) }

// Detach makes the context outlive its own time and End: only the caller and Cancel end it
// from then on. It reports whether it has not ended yet.
func (c *Bounded) Detach() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending != notYet {
		return false
	}
	c.detached = true
	if w := c.watcher; w != nil && w.timer != nil && w.timer.Stop() {
		w.timer = nil
	}
	return true
}
