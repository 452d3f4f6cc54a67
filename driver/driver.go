// Package driver has what operations of Dependency.Drive and Dependency.DriveHedged need. It is
// for users who write a driver of their own on the real clock, like lullhttp and lullgrpc.
package driver

import (
	"context"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/attempt"
)

// Hedgeable is an operation whose attempts may run beside one another. Each attempt has a slot of
// its own, from 0 to the policy's number of attempts minus 1, and keeps its result there. Methods
// may be called for different slots at the same time; for one slot Attempt is called once, then
// Discard at most once.
type Hedgeable interface {
	// Attempt makes one attempt. It must return soon when its context ends.
	Attempt(ctx context.Context, slot int) engine.Verdict
	// Discard releases the value of an attempt that is not the result of the call. Attempts that
	// have lost are discarded when they return, maybe after DriveHedged has. It must return
	// within the given time, the rest of the call.
	Discard(slot int, within time.Duration)
	// Err returns the error of the attempt in the slot, for observers; also after Discard.
	Err(slot int) error
}

// Accepted records that the dependency has accepted the attempt whose context ctx is, and that it
// may now be silent for any time ([engine.Call.Acceptor]). It is for calls with Spec.Stream. It
// has an effect only if a half-open breaker waits for the call. It may be called concurrently.
func Accepted(ctx context.Context) {
	c := attempt.From(ctx)
	if c == nil {
		return
	}
	if p, probe := c.Context.(attempt.Probe); probe {
		p.Accepted(c.Clock.Now())
	}
}

// NotReplayable records that the request of the attempt whose context ctx is cannot be made again
// ([engine.Call.NotReplayable]): what was kept of it is lost. It is for an operation of
// Dependency.Drive that fails, before it returns. It does nothing for an attempt in its caller's own
// context (lull.AttemptFrom).
func NotReplayable(ctx context.Context) {
	if c := attempt.From(ctx); c != nil {
		c.SetLost()
	}
}

// Detach takes the context of an attempt over from the driver: its timeout stops, and it lasts
// until it is released or the caller's context ends. An operation that returns a stream (a
// response whose body is still to be read) calls it when the stream begins, and Release when the
// stream is closed.
func Detach(ctx context.Context) Detached {
	c := attempt.From(ctx)
	if c == nil || !c.Detach() {
		return Detached{}
	}
	return Detached{c}
}

// Detached is the context of an attempt that has been taken over. The zero Detached is that of an
// attempt in its caller's own context, or one that has ended.
type Detached struct{ c *attempt.Context }

// Release ends the context. It may be called more than once, and concurrently.
func (d Detached) Release() {
	if d.c != nil {
		d.c.Cancel()
	}
}

// Expire ends the context as the attempt's timeout does: an attempt that has not returned has
// timed out.
func (d Detached) Expire() {
	if d.c != nil {
		d.c.Expire()
	}
}
