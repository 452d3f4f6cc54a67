package lullotel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
)

// unknowns counts the calls of which nobody knows what they did.
type unknowns int

func (u *unknowns) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.CallEnded && e.OutcomeUnknown {
		*u++
	}
}

// The metrics add up to what happened, whatever calls and their fallbacks do: succeed, fail in all ways, panic, or lose their
// caller. Callers are held by attempts and waits; the time of a fallback is only in the duration of its call.
func TestTheMetricsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed.Fresh(t), 1))
		for range 20 {
			r := newRig(t)
			unknown := new(unknowns)
			d := dependencyOn(t, r, "d", lull.Policy{Attempts: 3}, lull.WithObserver(unknown))
			took := func() { time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond) }
			var calls, attempts, answers float64
			var held, spent time.Duration
			call := func(ctx context.Context, leave func(), opts ...lull.CallOption) {
				began, inFallback := time.Now(), time.Duration(0)
				defer func() {
					recover()
					spent += time.Since(began)
					held += time.Since(began) - inFallback
				}()
				calls++
				DoOr(ctx, r.Telemetry, d, func(context.Context) (int, error) {
					attempts++
					took()
					switch random.IntN(9) {
					case 0:
						return 0, lull.Permanent(errDown)
					case 1:
						return 0, lull.RetryAfter(errDown, time.Duration(random.IntN(20))*time.Second)
					case 2:
						return 0, lull.NeverSent(errDown)
					case 3:
						return 0, errors.New("not known")
					case 4:
						panic("the operation")
					case 5:
						leave()
						return 0, context.Canceled
					case 6:
						return 1, nil
					}
					return 0, lull.Transient(errDown)
				}, func(context.Context, *lull.Error) (int, error) {
					began := time.Now()
					defer func() { inFallback = time.Since(began) }()
					took()
					switch random.IntN(4) {
					case 0:
						panic("the fallback")
					case 1:
						return 0, errDown
					}
					answers++
					return 2, nil
				}, opts...)
			}
			for range 100 {
				opts := []lull.CallOption{lull.Operation(fmt.Sprint(random.IntN(3)))}
				if random.IntN(3) == 0 {
					opts = append(opts, lull.NotIdempotent())
				}
				if random.IntN(4) == 0 {
					opts = append(opts, lull.Once())
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(8000))*time.Millisecond)
				call(ctx, cancel, opts...)
				cancel()
			}
			all := r.collect(t)
			all.want(t, calls, "retry.calls")
			all.want(t, attempts, "retry.attempts")
			all.want(t, answers, "retry.calls", "outcome", "degraded")
			if n := all.value("retry.calls", "outcome", "failed_unknown"); n > float64(*unknown) {
				t.Errorf("%v calls with an unknown outcome, of %d", n, *unknown)
			}
			check.Equal(t, math.Abs(all.value("retry.held")-held.Seconds()) < 1e-4, true, "retry.held: %v, %v", all.value("retry.held"), held.Seconds())
			all.wantSum(t, spent.Seconds(), "retry.call.duration")
		}
	})
}
