package lull

import (
	"context"
	"sync"
	"time"
)

// An Attempt is what an operation can learn of the attempt that it is, from its
// context.
type Attempt struct {
	Dependency string
	Operation  string
	Number     int // from 1
	Of         int // the most that the policy allows
}

// attemptKey finds the Attempt in a context. Its value is an *attemptContext.
type attemptKey struct{}

// AttemptFrom tells which attempt the context belongs to. A first attempt whose
// timeout is no nearer than its caller's deadline runs in the caller's own
// context, so as to cost nothing: then ok is false, and Number is 1.
func AttemptFrom(ctx context.Context) (a Attempt, ok bool) {
	if c, _ := ctx.Value(attemptKey{}).(*attemptContext); c != nil {
		return Attempt{Dependency: *c.d.name, Operation: c.operation, Number: int(c.number), Of: c.d.plan.attempts}, true
	}
	return Attempt{Number: 1}, false
}

// Detach takes the context of an attempt over from the driver: its timeout no
// longer runs, and it goes on after the attempt has returned, until it is
// released or the caller's context ends. An operation that hands out a stream (a
// response whose body is still to be read) calls it when the stream begins, and
// Release when the stream is closed.
func Detach(ctx context.Context) Detached {
	c, _ := ctx.Value(attemptKey{}).(*attemptContext)
	if c == nil || !c.detach() {
		return Detached{}
	}
	return Detached{c}
}

// Detached is the context of an attempt that has been taken over. The zero
// Detached is that of an attempt which runs in its caller's own context (or has
// ended already): there is nothing to release.
type Detached struct{ c *attemptContext }

// Release ends the context. It may be called more than once, and concurrently.
func (d Detached) Release() {
	if d.c != nil {
		d.c.cancel(context.Canceled)
	}
}

// attemptContext is the context of one attempt. It costs one allocation: the
// channel and the timer are made when somebody asks for Done, and an operation
// that never does (it returned at once, or failed to start) never pays for them.
// context.WithTimeout and WithValue together would be five allocations.
type attemptContext struct {
	context.Context // the caller's
	d               *Dependency
	operation       string
	until           time.Duration // the attempt's own deadline, on d's clock; never: none
	number          int32         // of the attempt

	mu       sync.Mutex
	detached bool
	err      error
	done     chan struct{} // made by the first Done
	timer    *time.Timer   // made with done
	unhook   func() bool   // takes our hook off the caller's context
	hooks    map[*func()]struct{}
}

// Deadline is the nearer of the caller's and the attempt's own.
func (c *attemptContext) Deadline() (time.Time, bool) {
	theirs, ok := c.Context.Deadline()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == never || c.detached {
		return theirs, ok
	}
	if ours := c.d.plan.epoch.Add(c.until); !ok || ours.Before(theirs) {
		return ours, true
	}
	return theirs, true
}

// Value gives the attempt itself under attemptKey.
func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Err is what ended the context: the caller, the attempt's timeout, or the
// attempt's return (context.Canceled).
func (c *attemptContext) Err() error {
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
func (c *attemptContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch()
}

// watch is Done with c.mu held.
func (c *attemptContext) watch() chan struct{} {
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
func (c *attemptContext) AfterFunc(f func()) (stop func() bool) {
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

func (c *attemptContext) cancel(err error) { c.close(err, true) }

// close ends the context, unless it has ended or (if not always) was detached.
func (c *attemptContext) close(err error, always bool) {
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

// expire is the timer. It may have fired before detach could stop it.
func (c *attemptContext) expire() { c.close(context.DeadlineExceeded, false) }

// end is called by the driver when the attempt has returned.
func (c *attemptContext) end() { c.close(context.Canceled, false) }

// detach reports whether there is anything to release.
func (c *attemptContext) detach() bool {
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
