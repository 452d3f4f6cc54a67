// Package storecall has what the calls of the stores of idempotency keys share: how a call ends in time
// though its client ignores contexts, or its server comes to it later.
package storecall

import "context"

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
