package lullotel

import (
	"context"

	"github.com/lullgo/lull"
)

// Do is [lull.Do] in a span. The dependency should have been made with t's Options, or the
// span has neither the waits nor the operation.
func Do[T any](ctx context.Context, t *Telemetry, d *lull.Dependency, op func(context.Context) (T, error), opts ...lull.CallOption) (out T, err error) {
	ctx, c := t.Start(ctx, d.Name())
	defer c.unwind()
	out, err = lull.Do(ctx, d, op, opts...)
	c.End(err)
	return out, err
}

// Run is [lull.Run] in a span, as Do.
func Run(ctx context.Context, t *Telemetry, d *lull.Dependency, op func(context.Context) error, opts ...lull.CallOption) error {
	ctx, c := t.Start(ctx, d.Name())
	defer c.unwind()
	err := lull.Run(ctx, d, op, opts...)
	c.End(err)
	return err
}

// DoHedged is [lull.DoHedged] in a span, as Do.
func DoHedged[T any](ctx context.Context, t *Telemetry, d *lull.Dependency, op func(context.Context) (T, error), opts ...lull.CallOption) (out T, err error) {
	ctx, c := t.Start(ctx, d.Name())
	defer c.unwind()
	out, err = lull.DoHedged(ctx, d, op, opts...)
	c.End(err)
	return out, err
}

// unwind is deferred: if the call has not ended, its operation panics.
func (c *Call) unwind() {
	c.panicked()
}
