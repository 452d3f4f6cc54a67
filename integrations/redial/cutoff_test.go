package redial

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/cutofftest"
	"github.com/lullgo/lull/internal/seed"
)

// lastCall is an observer that records the end of the last dial.
type lastCall struct{ lull.Event }

func (l *lastCall) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.CallEnded {
		l.Event = e
	}
}

// What ended a dial is decided by who ended its context. Keep goes on unless its own context has ended.
func TestWhoCutTheDialOff(t *testing.T) {
	cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
		var last lastCall
		d, err := lull.NewDependency("gateway", p, lull.WithRand(seed.Source(t)), lull.WithObserver(&last))
		if err != nil {
			t.Fatal(err)
		}
		g, err := New(d, Config{})
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, attempt func(context.Context) error) error {
			var first lull.Event
			dials, enough := 0, errors.New("enough")
			last.Event = lull.Event{}
			own, cancel := context.WithCancelCause(ctx)
			err := Keep(own, g, func(ctx context.Context) (int, error) {
				if dials++; dials > 1 {
					first = last.Event
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
				first = last.Event
			}
			return &lull.Error{Reason: first.Reason, Verdict: first.Verdict}
		}
	})
}

// The end of a connection is one of Keep only if Keep's context has ended, whatever use returns.
func TestWhoEndedTheConnection(t *testing.T) {
	for name, ended := range map[string]error{
		"somebody else's context":  context.Canceled,
		"somebody else's deadline": context.DeadlineExceeded,
		"an error of its own":      errors.New("i/o timeout"),
	} {
		synctest.Test(t, func(t *testing.T) {
			gone := errors.New("gone")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, gone)
			defer cancel()
			uses := 0
			err := Keep(ctx, group(t, Config{}, lull.Policy{}), func(context.Context) (int, error) { return 0, nil }, func(ctx context.Context, _ int) error {
				if uses++; uses > 1 {
					<-ctx.Done()
				}
				return ended
			})
			if err != gone || uses != 2 {
				t.Errorf("%s: %v after %d uses", name, err, uses)
			}
		})
	}
}
