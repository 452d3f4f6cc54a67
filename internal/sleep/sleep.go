// Package sleep waits on the real clock, and looks whether a wait is over.
package sleep

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends. The error is the cause of ctx, nil if it has not ended.
func For(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// IsOver reports whether c, on which nobody sends, is closed.
func IsOver(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
