package lull_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
)

// The deadline that an attempt sees is the earlier one of the caller's and the policy's.
func TestTheEarlierDeadlineIsSeen(t *testing.T) {
	for name, do := range doFunctions[int]() {
		for callers, want := range map[time.Duration]time.Duration{
			0: 2 * time.Second, time.Second: time.Second, 2 * time.Second: 2 * time.Second, 3 * time.Second: 2 * time.Second,
		} {
			synctest.Test(t, func(t *testing.T) {
				d := newDependency(t, lull.Policy{AttemptTimeout: 2 * time.Second, Deadline: 2 * time.Second})
				ctx, began := t.Context(), time.Now()
				if callers > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, callers)
					defer cancel()
				}
				do(ctx, d, func(ctx context.Context) (int, error) {
					if end, ok := ctx.Deadline(); !ok || end.Sub(began) != want {
						t.Errorf("%s, the caller's after %v: a deadline after %v (%v), want %v", name, callers, end.Sub(began), ok, want)
					}
					return 1, nil
				})
			})
		}
	}
}
