package lull_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/cutofftest"
)

// Who ended the context of an attempt decides what its end means, not what the operation returns
// then.
func TestWhoCutTheAttemptOff(t *testing.T) {
	for how, do := range doFunctions[int]() {
		t.Run(how, func(t *testing.T) {
			cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
				d := newDependency(t, p)
				return func(ctx context.Context, attempt func(context.Context) error) error {
					_, err := do(ctx, d, func(ctx context.Context) (int, error) { return 0, attempt(ctx) })
					return err
				}
			})
		})
	}
}

// An error of a context that is not the call's shows nothing: the caller still waits.
func TestACanceledContextThatIsNotTheCalls(t *testing.T) {
	for what, returned := range map[string]error{"context.Canceled": context.Canceled, "wrapped": fmt.Errorf("get: %w", context.Canceled)} {
		d := newDependency(t, lull.Policy{Breaker: breaker.Config{Consecutive: 2}})
		for range 5 {
			_, err := lull.Do(t.Context(), d, func(context.Context) (int, error) { return 0, returned })
			e, _ := errors.AsType[*lull.Error](err)
			if e == nil || e.Reason != engine.Permanent || e.Verdict.Kind != lull.KindUnclassified {
				t.Fatalf("%s: %#v, want that nothing is known of it", what, err)
			}
		}
	}
}

// An answer keeps its meaning if the time is over by then.
func TestAnAnswerAtTheEndOfTheTime(t *testing.T) {
	for _, kind := range []engine.VerdictKind{lull.KindPermanent, lull.KindRateLimited, lull.KindOverloaded} {
		synctest.Test(t, func(t *testing.T) {
			d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Attempts: 1}, lull.WithClassifier(func(error) lull.Verdict {
				return lull.Verdict{Kind: kind, Code: "answer"}
			}))
			_, err := lull.Do(t.Context(), d, func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, errors.New("no")
			})
			if e, _ := errors.AsType[*lull.Error](err); e == nil || e.Verdict.Kind != kind || e.Verdict.Code != "answer" {
				t.Errorf("%v: %#v", kind, err)
			}
		})
	}
}

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
