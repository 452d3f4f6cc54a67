package lull

import (
	"context"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// bounded is a context that ends at a time, which extend moves on, if it was not
// detached before. The channel and the timer are made when somebody asks for Done: whoever never does
// (it returned at once, or failed to start) never pays for them.
type bounded struct {
	context.Context               // the caller's
	d               *Dependency   // whose clock it goes by
	limit           time.Duration // extend goes no further
	number          int32         // for who embeds it (here it takes no room)

	mu       sync.Mutex
	until    time.Duration // when it ends; never: with the caller's
	detached bool
	hedge    bool // the attempt began beside another of its call
	err      error
	done     chan struct{} // made by the first Done
	timer    *time.Timer   // made with done
	unhook   func() bool   // takes our hook off the caller's context
	hooks    map[*func()]struct{}
}

// Deadline is the nearer of the caller's and its own.
func (c *bounded) Deadline() (time.Time, bool) {
	theirs, ok := c.Context.Deadline()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == never || c.detached {
		return theirs, ok
	}
	if !ok || c.until < c.d.wiring.deadline(theirs) {
		return c.d.wiring.epoch.Add(c.until), true
	}
	return theirs, true
}

// Err is what ended the context: the caller, its time, or end (context.Canceled).
func (c *bounded) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.done == nil {
		// Nobody watches yet, so look.
		if err := c.Context.Err(); err != nil {
			c.err = err
		} else if c.until != never && !c.detached && c.d.Now() >= c.until {
			c.err = context.DeadlineExceeded
		}
	}
	return c.err
}

// Done makes the channel, the timer, and the hook on the caller's context.
func (c *bounded) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch()
}

// watch is Done with c.mu held.
func (c *bounded) watch() chan struct{} {
	if c.done != nil {
		return c.done
	}
	c.done = make(chan struct{})
	if c.err != nil {
		close(c.done)
		return c.done
	}
	if c.Context.Done() != nil {
		c.unhook = context.AfterFunc(c.Context, func() { c.cancel(c.Context.Err()) })
	}
	if c.until != never && !c.detached {
		c.timer = time.AfterFunc(c.until-c.d.Now(), c.expire)
	}
	return c.done
}

// AfterFunc lets the context package hook children on without a goroutine each.
func (c *bounded) AfterFunc(f func()) (stop func() bool) {
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

func (c *bounded) cancel(err error) { c.close(err, true) }

// close ends the context, unless it has ended or (if not always) was detached.
func (c *bounded) close(err error, always bool) {
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

// expire is the timer. It may have fired before detach could stop it, or after extend.
func (c *bounded) expire() {
	c.mu.Lock()
	if c.err == nil && !c.detached {
		if left := c.until - c.d.Now(); left > 0 {
			c.timer.Reset(left)
			c.mu.Unlock()
			return
		}
	}
	c.mu.Unlock()
	c.close(context.DeadlineExceeded, false)
}

// extend makes the context end no earlier than d from now, up to its limit. It
// leaves the timer alone: expire looks at until.
func (c *bounded) extend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d > 0 && c.err == nil && !c.detached && c.until != never {
		c.until = max(c.until, min(saturating.Add(c.d.Now(), d), c.limit))
	}
}

// end ends it, if it was not detached: what it was for has returned.
func (c *bounded) end() { c.close(context.Canceled, false) }

// detach reports whether there is anything to release.
func (c *bounded) detach() bool {
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
