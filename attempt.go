package lull

import (
	"context"
	"time"

	"github.com/lullgo/lull/engine"
)

// An Attempt is what an operation can learn of the attempt that it is, from its
// context.
type Attempt struct {
	Dependency string
	Operation  string
	Number     int  // from 1
	Of         int  // the most that the policy allows
	Hedge      bool // it began while another attempt of the call was under way
}

// attemptKey finds the Attempt in a context. Its value is an *attemptContext.
type attemptKey struct{}

// AttemptFrom tells which attempt the context belongs to. A first attempt whose
// timeout is no nearer than its caller's deadline runs in the caller's own
// context, so as to cost nothing: then ok is false, and Number is 1.
func AttemptFrom(ctx context.Context) (a Attempt, ok bool) {
	if c, _ := ctx.Value(attemptKey{}).(*attemptContext); c != nil {
		return Attempt{Dependency: c.d.name, Operation: c.operation, Number: int(c.number), Of: c.state.Plan().Attempts(), Hedge: c.hedge}, true
	}
	return Attempt{Number: 1}, false
}

// Progress notes that the attempt whose context ctx is makes progress: its
// AttemptTimeout starts anew, up to the call's deadline. An operation that sends a
// long stream calls it for each piece that was taken, so that an upload is bounded
// by how long it stands still, not by its length. It does nothing for a context that
// has ended, was detached, or has no timeout of its own. It may be called
// concurrently, and costs a clock read.
func Progress(ctx context.Context) {
	if c, _ := ctx.Value(attemptKey{}).(*attemptContext); c != nil {
		c.extend(c.state.Plan().AttemptTimeout())
	}
}

// Accepted notes that the dependency has accepted the attempt whose context ctx is, and that
// it may be silent for as long as it likes from now on: see [Call.Accepted]. It belongs to a
// call with Spec.Stream. It does nothing but for a call on which a half-open breaker waits,
// and may be called concurrently.
func Accepted(ctx context.Context) {
	c, _ := ctx.Value(attemptKey{}).(*attemptContext)
	if c == nil {
		return
	}
	if p, probe := c.Context.(probeContext); probe {
		p.accepted(c.d.Now())
	}
}

// probeContext is the caller's context for attempts of a call on which a half-open breaker
// waits.
type probeContext struct {
	context.Context
	accepted func(now time.Duration)
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

// attemptContext is the context of one attempt. It costs one allocation:
// context.WithTimeout and WithValue together would be five.
type attemptContext struct {
	bounded   // number is that of the attempt
	state     *engine.State
	operation string
}

// Value gives the attempt itself under attemptKey.
func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c
	}
	return c.Context.Value(key)
}
