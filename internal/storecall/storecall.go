// Package storecall has what calls of stores share: a call that ends in time though its client ignores
// contexts, and a deadline that the server checks.
package storecall

import (
	"context"
	"sync"
	"time"
)

// Wait calls f, and returns early if ctx ends. f may then continue for a while.
func Wait(ctx context.Context, f func() error) error {
	if ctx.Done() == nil {
		return f()
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A Clock converts deadlines of this process to the clock of a server, so that a call can carry its deadline. A server that
// stood still then does not carry out what its caller has given up. The zero Clock has no reading. A Clock may be used
// concurrently.
//
// The server's answers have its time. A reading is older than its answer, by a part of the round trip. So a deadline that is
// sent is early by no more than that, and never late, as long as both clocks run alike. A server whose clock was set back
// carries out a call too late. One whose clock was set forward refuses, and its refusal has the new time.
type Clock struct {
	mu     sync.Mutex
	micros int64     // the latest reading, in µs since 1970
	read   time.Time // when it had arrived
}

// Read records a reading that has just arrived: micros is µs since 1970, and more than zero.
func (c *Clock) Read(micros int64) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.micros, c.read = micros, now
}

// Deadline returns ctx's deadline by the server's clock, in µs since 1970. It is zero, which has
// passed, as long as there is no reading. It returns false if ctx has none.
func (c *Clock) Deadline(ctx context.Context) (micros int64, ok bool) {
	end, ok := ctx.Deadline()
	if !ok {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.micros == 0 {
		return 0, true
	}
	return c.micros + end.Sub(c.read).Microseconds(), true
}
