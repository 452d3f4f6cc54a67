package lullotel

import (
	"context"

	"github.com/lullgo/lull"
)

// Do is [lull.Do] in a span. Make the dependency with t's Options. Otherwise the span has neither
// the waits nor the operation.
func Do[T any](ctx context.Context, t *Telemetry, d *lull.Dependency, op func(context.Context) (T, error), opts ...lull.CallOption) (T, error) {
	return inSpan(ctx, t, d.Name(), func(ctx context.Context) (T, error) { return lull.Do(ctx, d, inside(op), opts...) })
}

// Run is [lull.Run] in a span, like Do.
func Run(ctx context.Context, t *Telemetry, d *lull.Dependency, op func(context.Context) error, opts ...lull.CallOption) error {
	_, err := inSpan(ctx, t, d.Name(), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, lull.Run(ctx, d, func(ctx context.Context) error { return op(operationContext{ctx}) }, opts...)
	})
	return err
}

// DoHedged is [lull.DoHedged] in a span, like Do.
func DoHedged[T any](ctx context.Context, t *Telemetry, d *lull.Dependency, op func(context.Context) (T, error), opts ...lull.CallOption) (T, error) {
	return inSpan(ctx, t, d.Name(), func(ctx context.Context) (T, error) { return lull.DoHedged(ctx, d, inside(op), opts...) })
}

// DoOr is [lull.DoOr] in a span, like Do. The span ends when the fallback has. Its outcome is
// "degraded" if that has answered, and then the span is no failure.
func DoOr[T any](ctx context.Context, t *Telemetry, d *lull.Dependency, op func(context.Context) (T, error), fallback func(context.Context, *lull.Error) (T, error), opts ...lull.CallOption) (T, error) {
	return inSpan(ctx, t, d.Name(), func(ctx context.Context) (T, error) {
		return lull.DoOr(ctx, d, inside(op), fallbackOutside(fallback), opts...)
	})
}

// inSpan returns the results of call, which it makes in a span.
func inSpan[T any](ctx context.Context, t *Telemetry, name string, call func(context.Context) (T, error)) (out T, err error) {
	ctx, c := t.Start(ctx, name)
	defer c.unwind()
	out, err = call(ctx)
	c.End(err)
	return out, err
}

// fallbackOutside returns fallback with a context in which other calls do not count as part of
// this one.
func fallbackOutside[T any](fallback func(context.Context, *lull.Error) (T, error)) func(context.Context, *lull.Error) (T, error) {
	if fallback == nil {
		return nil
	}
	return func(ctx context.Context, e *lull.Error) (T, error) { return fallback(operationContext{ctx}, e) }
}

// inside returns op with a context in which other calls, even to the same dependency, do not count
// as attempts of the call that op belongs to.
func inside[T any](op func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) { return op(operationContext{ctx}) }
}

// operationContext is the context of an operation: it belongs to no call.
type operationContext struct{ context.Context }

func (c operationContext) Value(key any) any {
	if key == (callKey{}) {
		return nil
	}
	return c.Context.Value(key)
}

// AfterFunc saves a goroutine for each context that is derived from this one.
func (c operationContext) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(c.Context, f)
}
