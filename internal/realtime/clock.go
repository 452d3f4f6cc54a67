// Package realtime is the clock that drivers on the real clock share, and contexts that end
// by it.
package realtime

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
)

// A Clock counts time from its epoch. It may be used concurrently.
type Clock struct {
	epoch time.Time
	// coarse is the last time that was read. Its resolution is coarseStep.
	coarse atomic.Int64
}

// coarseStep is how far the clock moves before coarse is written again: too seldom
// for cores to contend, and often enough to see which of two attempts was first.
const coarseStep = time.Millisecond

// Start makes now the epoch.
func (c *Clock) Start() { c.epoch = time.Now() }

// Now is the time since the epoch.
func (c *Clock) Now() time.Duration {
	now := time.Since(c.epoch)
	if now-time.Duration(c.coarse.Load()) > coarseStep {
		c.coarse.Store(int64(now))
	}
	return now
}

// About is the time as the last reading found it: no earlier than at, which the caller has
// read, and late by no more than the time since any reading.
func (c *Clock) LastRead(at time.Duration) time.Duration {
	return max(at, time.Duration(c.coarse.Load()))
}

// Deadline is the time of a live context's deadline on the clock; engine.Never if that is not
// known.
//
// A time that was parsed, or came over a wire, has no monotonic reading. The wall clock may
// have been set since the epoch, so that only the difference to the wall clock's present
// time means anything. Where that is past, the wall clock was set forward while the context
// lives: it ends by itself.
func (c *Clock) Deadline(t time.Time) time.Duration {
	if t != t.Round(0) { // which takes a monotonic reading off
		return max(t.Sub(c.epoch), 1)
	}
	left := time.Until(t)
	if left <= 0 {
		return engine.Never
	}
	return saturating.Add(c.Now(), left)
}
