package lull_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
)

// AttemptTimeout bounds the time without progress, and the call's deadline the whole attempt.
func TestProgressRestartsTheAttemptsTimeout(t *testing.T) {
	for _, c := range []struct {
		name     string
		pieces   int // each after 60 ms, and then silence
		watched  bool
		ctx      time.Duration
		progress bool
		want     time.Duration
	}{
		{"without", 8, true, 0, false, 100 * time.Millisecond},
		{"with", 8, true, 0, true, 580 * time.Millisecond},
		{"nobody watches the context", 8, false, 0, true, 580 * time.Millisecond},
		{"up to the call's deadline", 50, true, 0, true, time.Second},
		{"up to the caller's deadline", 50, true, 250 * time.Millisecond, true, 250 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDependency(t, lull.Policy{Attempts: 1, AttemptTimeout: 100 * time.Millisecond, Deadline: time.Second})
				ctx := t.Context()
				if c.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.ctx)
					defer cancel()
				}
				start := time.Now()
				var ended time.Duration
				err := lull.Run(ctx, d, func(ctx context.Context) error {
					if c.watched {
						ctx.Done()
					}
					for range c.pieces {
						time.Sleep(60 * time.Millisecond)
						if ctx.Err() != nil {
							break
						}
						if c.progress {
							lull.Progress(ctx)
						}
					}
					if c.watched {
						<-ctx.Done()
					} else {
						for ctx.Err() == nil {
							time.Sleep(time.Millisecond)
						}
					}
					ended = time.Since(start)
					lull.Progress(ctx) // too late
					return context.Cause(ctx)
				})
				// Who looks only now and then sees the end up to 60 ms late.
				if !errors.Is(err, context.DeadlineExceeded) || ended < c.want || ended > c.want+60*time.Millisecond {
					t.Errorf("the attempt ended after %v, %v; want %v", ended, err, c.want)
				}
			})
		})
	}
}

// Progress does nothing without a timeout.
func TestProgressOfNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lull.Progress(t.Context())
		d := newDependency(t, lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout})
		attempts := 0
		err := lull.Run(t.Context(), d, func(ctx context.Context) error {
			if attempts++; attempts == 1 {
				lull.Progress(ctx)
				return lull.Transient(errors.New("once"))
			}
			lull.Progress(ctx)
			if _, bounded := ctx.Deadline(); bounded {
				t.Error("Progress made a deadline")
			}
			return nil
		})
		if err != nil || attempts != 2 {
			t.Errorf("%v after %d attempts", err, attempts)
		}
	})
}
