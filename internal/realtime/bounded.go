package realtime

import (
	"context"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// Bounded is a context that ends at a time, which Extend moves on, if it was not
// detached before. The channel and the timer are made when somebody asks for Done: whoever never does
// (it returned at once, or failed to start) Never pays for them.
type Bounded struct {
	context.Context               // the caller's
	Clock           *Clock        // by which it ends
	Limit           time.Duration // Extend goes no further
	Number          int32         // for who embeds it (here it takes no room)
	Hedge           bool          // likewise

	mu       sync.Mutex
	until    time.Duration // when it ends; Never: with the caller's
	detached bool
	err      error
	done     chan struct{} // made by the first Done
	timer    *time.Timer   // made with done
	unhook   func() bool   // takes our hook off the caller's context
	hooks    map[*func()]struct{}
}

// Init makes c end at until, and with ctx.
func (c *Bounded) Init(ctx context.Context, clock *Clock, until time.Duration) {
	c.Context, c.Clock, c.until = ctx, clock, until
}

// Deadline is the nearer of the caller's and its own.
func (c *Bounded) Deadline() (time.Time, bool) {
	theirs, ok := c.Context.Deadline()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == Never || c.detached {
		return theirs, ok
	}
	if !ok || c.until < c.Clock.Deadline(theirs) {
		return c.Clock.Time(c.until), true
	}
	return theirs, true
}

// Err is what ended the context: the caller, its time, or end (context.Canceled).
func (c *Bounded) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.done == nil {
		// Nobody watches yet, so look.
		if err := c.Context.Err(); err != nil {
			c.err = err
		} else if c.until != Never && !c.detached && c.Clock.Now() >= c.until {
			c.err = context.DeadlineExceeded
		}
	}
	return c.err
}

// Done makes the channel, the timer, and the hook on the caller's context.
func (c *Bounded) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch()
}

// watch is Done with c.mu held.
func (c *Bounded) watch() chan struct{} {
	if c.done != nil {
		return c.done
	}
	c.done = make(chan struct{})
	if c.err != nil {
		close(c.done)
		return c.done
	}
	if c.Context.Done() != nil {
		c.unhook = context.AfterFunc(c.Context, func() { c.Cancel(c.Context.Err()) })
	}
	if c.until != Never && !c.detached {
		c.timer = time.AfterFunc(c.until-c.Clock.Now(), c.expire)
	}
	return c.done
}

// AfterFunc lets the context package hook children on without a goroutine each.
func (c *Bounded) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.hooks == nil {
		c.hooks = make(map[*func()]struct{})
	}
	key := &f
	c.hooks[key] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, there := c.hooks[key]
		delete(c.hooks, key)
		return there
	}
}

func (c *Bounded) Cancel(err error) { c.close(err, true) }

// close ends the context, unless it has ended or (if not always) was detached.
func (c *Bounded) close(err error, always bool) {
	c.mu.Lock()
	if c.err != nil || c.detached && !always {
		c.mu.Unlock()
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	unhook, hooks := c.unhook, c.hooks
	c.unhook, c.hooks = nil, nil
	c.mu.Unlock()
	if unhook != nil {
		unhook()
	}
	for f := range hooks {
		go (*f)()
	}
}

// expire is the timer. It may have fired before Detach could stop it, or after Extend.
func (c *Bounded) expire() {
	c.mu.Lock()
	if c.err == nil && !c.detached {
		if left := c.until - c.Clock.Now(); left > 0 {
			c.timer.Reset(left)
			c.mu.Unlock()
			return
		}
	}
	c.mu.Unlock()
	c.close(context.DeadlineExceeded, false)
}

// Extend makes the context end no earlier than d from now, up to its limit. It
// leaves the timer alone: expire looks at until.
func (c *Bounded) Extend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d > 0 && c.err == nil && !c.detached && c.until != Never {
		c.until = max(c.until, min(saturating.Add(c.Clock.Now(), d), c.Limit))
	}
}

// End ends it, if it was not detached: what it was for has returned.
func (c *Bounded) End() { c.close(context.Canceled, false) }

// Detach takes it over: it ends no more by itself, nor by End. It reports whether there is anything to release.
func (c *Bounded) Detach() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.detached = true
	if c.timer != nil {
		c.timer.Stop()
	}
	return true
}
