package bench

import "context"

// An op is one attempt of a call.
type op func(context.Context) error

// bind is a binder of calls that are the operation itself.
func (o op) bind(ctx context.Context) func() error { return func() error { return o(ctx) } }

// A caller is a library that makes calls to a function.
type caller struct {
	name      string
	does      feature
	retryable error // an error of the operation that this library tries again
	build     func() bindOp
}

// A bindOp readies a caller for one goroutine, whose attempts are op.
type bindOp func(ctx context.Context, op op) (call func() error)

// calling gives every caller the same work: newOp makes the operation of one
// goroutine, out of the error that it shall fail with.
func calling(callers []caller, newOp func(failure error) op) []subject {
	var subjects []subject
	for _, c := range callers {
		subjects = append(subjects, subject{c.name, c.does, func(func(func())) binder {
			bind := c.build()
			return func(ctx context.Context) func() error { return bind(ctx, newOp(c.retryable)) }
		}})
	}
	return subjects
}

func succeed(error) op { return func(context.Context) error { return nil } }

func failThrice(failure error) op {
	var n uint
	return func(context.Context) error {
		if n++; n%4 != 0 {
			return failure
		}
		return nil
	}
}
