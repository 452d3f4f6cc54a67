// Package storecall has what the stores of idempotency keys share: a call that ends in time though its client ignores
// contexts, and a deadline that the server checks.
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
