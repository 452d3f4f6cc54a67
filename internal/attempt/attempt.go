// Package attempt is the context of one attempt, which drivers make and operations look at.
package attempt

import (
	"context"
	"errors"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/realtime"
)

// A Context is the context of one attempt. It costs one allocation: context.WithTimeout and
// WithValue together would be five.
type Context struct {
	realtime.Bounded // Number is that of the attempt, Hedge reports that it began beside another of its call
	State            *engine.State
	Dependency       *string // its name: a pointer keeps the context small
	Operation        string
}

// For returns c as the context for lull.Dependency.Drive, in place of the context of its caller. Drive makes the first
// attempt in c, also if that needs no context of its own. So a driver can allocate c together with what else an attempt needs.
func (c *Context) For(caller context.Context) context.Context {
	c.Context = caller
	return c
}

// CallerOf returns the caller's context, and the Context on which For was called, or nil.
func CallerOf(ctx context.Context) (context.Context, *Context) {
	if c, own := ctx.(*Context); own && c.State == nil {
		return c.Context, c
	}
	return ctx, nil
}

// key finds the Context in a context.
type key struct{}

// Value gives the attempt itself under its key.
func (c *Context) Value(k any) any {
	if k == (key{}) {
		return c
	}
	return c.Context.Value(k)
}

// From is the context of the attempt that ctx belongs to, or nil.
func From(ctx context.Context) *Context {
	c, _ := ctx.Value(key{}).(*Context)
	return c
}

// Probe is the caller's context for attempts of a call on which a half-open breaker waits.
type Probe struct {
	context.Context
	Accepted func(now time.Duration) // engine.Call.Acceptor
}

type aboveKey struct{}

// Under returns a context for a call that another layer of the program, which retries too, has made again.
func Under(ctx context.Context, above *event.Layer) context.Context {
	return context.WithValue(ctx, aboveKey{}, above)
}

// Above returns that layer, or nil.
func Above(ctx context.Context) *event.Layer {
	above, _ := ctx.Value(aboveKey{}).(*event.Layer)
	return above
}

// CutOff returns who has ended the attempt with that context in a call of caller. Both may be the same
// context. It is asked before the driver itself ends ctx. A client that has the deadline of a context may
// return a moment before the context's own timer fires, so the deadline counts, too.
func CutOff(ctx, caller context.Context) engine.CutOff {
	switch err := caller.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return engine.CutByTime
	case err != nil:
		return engine.CutByCaller
	case ctx.Err() == context.DeadlineExceeded, passed(ctx):
		return engine.CutByTime
	}
	return engine.NotCutOff
}

// passed reports whether the deadline of ctx has passed. One without a monotonic reading does not show that:
// the wall clock may have been set.
func passed(ctx context.Context) bool {
	at, bounded := ctx.Deadline()
	return bounded && at != at.Round(0) && !time.Now().Before(at)
}
