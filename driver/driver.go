// Package driver is for users who write a driver of their own on the real clock, like
// lullhttp and lullgrpc. It has what the operations of Dependency.Drive and
// Dependency.DriveHedged need.
package driver

import (
	"context"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/attempt"
)

// Hedgeable is an operation whose attempts may run beside one another. Each attempt has a
// slot of its own, from 0 and below the policy's number of attempts, and keeps there what
// came of it. Methods may be called for different slots at the same time; for one slot
// Attempt is called once, then Discard at most once.
type Hedgeable interface {
	// Attempt makes one attempt. It must return soon when its context ends.
	Attempt(ctx context.Context, slot int) engine.Verdict
	// Discard lets go of what the attempt in the slot came to, which is not the result
	// of the call. Attempts that have lost are discarded when they return, maybe after
	// DriveHedged has. It must return within the given time, which is what is left of the
	// call.
	Discard(slot int, within time.Duration)
	// Err is the error of the attempt in the slot, for observers; also after Discard.
	Err(slot int) error
}

// Accepted notes that the dependency has accepted the attempt whose context ctx is, and that
// it may be silent for as long as it likes from now on: see [engine.Call.Accepted]. It
// belongs to a call with Spec.Stream. It does nothing but for a call on which a half-open
// breaker waits, and may be called concurrently.
func Accepted(ctx context.Context) {
	c := attempt.From(ctx)
	if c == nil {
		return
	}
	if p, probe := c.Context.(attempt.Probe); probe {
		p.Accepted(c.Clock.Now())
	}
}

// Detach takes the context of an attempt over from the driver: its timeout no
// longer runs, and it continues after the attempt has returned, until it is
// released or the caller's context ends. An operation that hands out a stream (a
// response whose body is still to be read) calls it when the stream begins, and
// Release when the stream is closed.
func Detach(ctx context.Context) Detached {
	c := attempt.From(ctx)
	if c == nil || !c.Detach() {
		return Detached{}
	}
	return Detached{c}
}

// Detached is the context of an attempt that has been taken over. The zero
// Detached is that of an attempt which runs in its caller's own context (or has
// ended already): there is nothing to release.
type Detached struct{ c *attempt.Context }

// Release ends the context. It may be called more than once, and concurrently.
func (d Detached) Release() {
	if d.c != nil {
		d.c.Cancel()
	}
}

// Expire ends the context as the attempt's timeout would: the attempt, if it has not returned yet, has
// timed out.
func (d Detached) Expire() {
	if d.c != nil {
		d.c.Expire()
	}
}
