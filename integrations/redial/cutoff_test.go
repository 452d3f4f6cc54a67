package redial

import (
	"context"
	"errors"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/cutofftest"
)

// What ended a dial is decided by who ended its context. Keep goes on unless its own context has ended.
func TestWhoCutTheDialOff(t *testing.T) {
	cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
		var last lull.Event // the end of the last dial
		g := group(t, Config{}, p, lull.WithObserver(observe(func(_ context.Context, e lull.Event) {
			if e.Kind == event.CallEnded {
				last = e
			}
		})))
		return func(ctx context.Context, attempt func(context.Context) error) error {
			var first lull.Event
			dials, enough := 0, errors.New("enough")
			last = lull.Event{}
			own, cancel := context.WithCancelCause(ctx)
			err := Keep(own, g, func(ctx context.Context) (int, error) {
				if dials++; dials > 1 {
					first = last
					cancel(enough)
					return 0, enough
				}
				return 0, attempt(ctx)
			}, func(context.Context, int) error { return nil })
			cancel(nil)
			if waits := ctx.Err() == nil; waits && err != enough || !waits && err != context.Cause(ctx) {
				t.Errorf("the caller waits: %v; Keep ended with %v after %d dials", waits, err, dials)
			}
			if dials < 2 {
				first = last
			}
			return &lull.Error{Reason: first.Reason, Verdict: first.Verdict}
		}
	})
}
