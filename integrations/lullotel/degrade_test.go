package lullotel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/lullgo/lull"
)

// A call with a fallback is counted once, when that has ended, with its time: as degraded if it answered, else by the
// call's reason. Each has one span, which is no failure if the fallback answered.
func TestCallsWithAFallback(t *testing.T) {
	const op = 10 * time.Millisecond
	for name, c := range map[string]struct {
		fallback func(context.Context, *lull.Error) (int, error)
		open     bool
		want     Outcome
		took     time.Duration
		status   codes.Code
	}{
		"answers":               {answer(nil), false, Degraded, 3 * op, codes.Unset},
		"answers for a refusal": {answer(nil), true, Degraded, 2 * op, codes.Unset},
		"fails":                 {answer(errDown), false, FailedExhausted, 3 * op, codes.Error},
		"fails for a refusal":   {answer(errDown), true, FailedBreaker, 2 * op, codes.Error},
		"panics":                {func(context.Context, *lull.Error) (int, error) { time.Sleep(2 * op); panic("oh") }, false, FailedExhausted, 3 * op, codes.Error},
		"none":                  {nil, false, FailedExhausted, op, codes.Error},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				p := steady()
				p.Attempts, p.Breaker.Off = 1, false
				d := dependencyOn(t, r, "d", p)
				if c.open {
					d.Breaker().ForceOpen(d.Now())
				}
				func() {
					defer func() { recover() }()
					DoOr(t.Context(), r.Telemetry, d, func(context.Context) (int, error) {
						time.Sleep(op)
						return 0, lull.Transient(errDown)
					}, c.fallback, lull.Operation("o"))
				}()
				all := r.collect(t)
				attempts := 1.0
				if c.open {
					attempts = 0
				}
				all.want(t, 1, "retry.calls")
				all.want(t, 1, "retry.calls", "outcome", c.want.String(), "operation", "o")
				all.want(t, attempts, "retry.attempts")
				all.want(t, 1, "retry.call.failures")
				all.want(t, 1, "retry.call.duration", "outcome", c.want.String())
				all.wantSum(t, c.took.Seconds(), "retry.call.duration")
				spans := r.spans.GetSpans()
				if len(spans) != 1 || spans[0].Status.Code != c.status {
					t.Fatalf("%+v", spans)
				}
				expect(t, spans[0].Attributes, "retry.outcome", c.want.String())
			})
		})
	}
}

// answer returns a fallback that takes 20 ms.
func answer(err error) func(context.Context, *lull.Error) (int, error) {
	return func(context.Context, *lull.Error) (int, error) { time.Sleep(20 * time.Millisecond); return 7, err }
}

// The calls of a fallback are calls of their own, even to the same dependency.
func TestTheCallsOfAFallback(t *testing.T) {
	r := newRig(t)
	p := steady()
	p.Attempts = 1
	d := dependencyOn(t, r, "d", p)
	n, err := DoOr(t.Context(), r.Telemetry, d, func(context.Context) (int, error) { return 0, lull.Transient(errDown) }, func(ctx context.Context, _ *lull.Error) (int, error) {
		return lull.Do(ctx, d, func(context.Context) (int, error) { return 7, nil }, lull.Operation("summary"))
	}, lull.Operation("whole"))
	if n != 7 || err != nil {
		t.Fatal(n, err)
	}
	all := r.collect(t)
	all.want(t, 1, "retry.calls", "operation", "whole", "outcome", "degraded")
	all.want(t, 1, "retry.calls", "operation", "summary", "outcome", "success_first")
	expect(t, r.spans.GetSpans()[0].Attributes, "retry.operation", "whole", "retry.outcome", "degraded")
}

// A call of which nobody knows whether it was carried out has an outcome of its own, in metrics and spans.
func TestUnknownOutcomesAreCounted(t *testing.T) {
	r := newRig(t)
	d := dependencyOn(t, r, "d", steady())
	charge := func(ctx context.Context, err error, opts ...lull.CallOption) {
		Run(ctx, r.Telemetry, d, func(context.Context) error { return err }, append(opts, lull.NotIdempotent(), lull.Operation("charge"))...)
	}
	charge(t.Context(), lull.Transient(errDown))
	charge(t.Context(), lull.Transient(errDown), lull.Once())
	charge(t.Context(), lull.Permanent(errDown)) // an answer
	ctx, cancel := context.WithCancel(t.Context())
	Run(ctx, r.Telemetry, d, func(context.Context) error { cancel(); return errors.New("cut") }, lull.NotIdempotent())
	all := r.collect(t)
	all.want(t, 2, "retry.calls", "outcome", "failed_unknown", "operation", "charge")
	all.want(t, 1, "retry.calls", "outcome", "failed_terminal")
	all.want(t, 1, "retry.calls", "outcome", "canceled")
	expect(t, r.spans.GetSpans()[0].Attributes, "retry.outcome", "failed_unknown")
}
