package lull_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
)

// Two layers of lull in one program that both retry are reported, once. Calls that only follow each other are not.
func TestRetriesInLayers(t *testing.T) {
	type deps struct{ outer, other, inner *lull.Dependency }
	down := func(context.Context) error { return errDown }
	// masked is the error of the call below in words of its own, so that lull does not know it.
	masked := func(err error) error {
		if err != nil {
			return lull.Transient(errors.New(err.Error()))
		}
		return nil
	}
	// asks is a call to the dependency below, with the error in other words.
	asks := func(below *lull.Dependency, options ...lull.CallOption) func(context.Context) error {
		return func(ctx context.Context) error { return masked(lull.Run(ctx, below, down, options...)) }
	}
	var background sync.WaitGroup
	for name, c := range map[string]struct {
		inner engine.Policy
		calls func(ctx context.Context, d deps)
		want  int
	}{
		"both retry": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner))
		}, 1},
		"both would": {lull.Policy{}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner))
		}, 1},
		"two above": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			for _, above := range []*lull.Dependency{d.outer, d.other} {
				lull.Run(ctx, above, asks(d.inner))
			}
		}, 2},
		"the inner one is hedged": {hedging(3), func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error {
				_, err := lull.DoHedged(ctx, d.inner, func(context.Context) (int, error) { return 0, errDown })
				return masked(err)
			})
		}, 1},
		"the outer one knows the error": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error { return lull.Run(ctx, d.inner, down) })
		}, 0},
		"the inner one does not retry": {lull.Policy{Attempts: 1}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner))
		}, 0},
		"nor for this call": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner, lull.Once()))
		}, 0},
		"the outer one does not": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner), lull.Once())
		}, 0},
		"nothing fails below": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error {
				lull.Run(ctx, d.inner, succeed)
				return errDown
			})
		}, 0},
		"one after the other": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			for range 3 {
				lull.Run(ctx, d.inner, down)
			}
		}, 0},
		"one after the other, in one attempt": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error {
				for range 3 {
					lull.Run(ctx, d.inner, down)
				}
				return nil
			})
		}, 0},
		"for a retry of another process": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			ctx, in := inbound.With(ctx, 2, 0)
			defer in.End()
			lull.Run(ctx, d.inner, down)
		}, 0},
		"begun for later": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error {
				if a, _ := lull.AttemptFrom(ctx); a.Number == 1 {
					return errDown
				}
				background.Go(func() {
					time.Sleep(time.Second)
					lull.Run(context.WithoutCancel(ctx), d.inner, down)
				})
				return nil
			})
			background.Wait()
		}, 0},
		"in a hedge": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			h := newDependency(t, hedging(2))
			lull.DoHedged(ctx, h, func(ctx context.Context) (int, error) { return 0, masked(lull.Run(ctx, d.inner, slowly(down))) })
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log eventLog
				retries := lull.Policy{Attempts: 3, Budget: plenty}
				d := deps{
					outer: newDependency(t, retries).Clone("outer"), other: newDependency(t, retries).Clone("other"),
					inner: newDependency(t, c.inner, lull.WithObserver(&log)).Clone("inner"),
				}
				for range 4 {
					c.calls(t.Context(), d)
				}
				synctest.Wait()
				log.events = slices.DeleteFunc(log.events, func(e lull.Event) bool { return e.Kind != event.RetriesInLayers })
				if len(log.events) != c.want {
					t.Fatalf("%d events, want %d: %v", len(log.events), c.want, log.events)
				}
				for i, e := range log.events {
					l := e.Err.(*event.Layers)
					above := []string{"outer", "other"}[i]
					if l.Above.Name != above || l.Below.Name != "inner" || !strings.Contains(l.Above.Off, "Policy.Attempts: 1 of "+above) || !strings.Contains(l.Error(), "Policy.Attempts: 1 of inner") {
						t.Errorf("%+v", l)
					}
				}
			})
		})
	}
}

// slowly is f after a while.
func slowly(f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
		return f(ctx)
	}
}
