package lull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/owned"
)

// DoOr is [Do] with another answer for bad times: an older value, a default, a part of the whole.
// If the call fails and [Error.Degrades], fallback gets the call's error, and its result is the
// result. It does not run for a permanent failure, after the caller has gone, or if a write may
// have been carried out. A nil fallback never runs.
//
// fallback runs once, on the caller's goroutine and in ctx. It is no attempt: the dependency's
// budget, breaker and limits neither pay nor learn. The time of the call may be used up, and if
// the deadline was ctx's own, ctx has ended: then only what needs no time can answer. Give the
// call less time than ctx has (Policy.Deadline) if fallback calls somebody.
//
// If fallback fails, too, errors.Is and errors.As find both errors in DoOr's, and the call's
// [*Error] first. A panic in fallback is raised again. Observers get event.CallEnded with Fallback
// set, and event.FallbackEnded after that.
//
// DoOr may be called concurrently. A call that succeeds costs 15 ns more than with Do.
func DoOr[T any](ctx context.Context, d *Dependency, op func(context.Context) (T, error), fallback func(context.Context, *Error) (T, error), opts ...CallOption) (T, error) {
	if fallback == nil {
		return Do(ctx, d, op, opts...)
	}
	with := [8]CallOption{{fallback: true}} // on the stack
	out, err := Do(ctx, d, op, append(with[:1], opts...)...)
	e, failed := err.(*Error)
	if !failed || !e.Degrades() {
		return out, err
	}
	if !isPlain[T]() {
		owned.Close(addressable(out), true)
	}
	ending := fallbackRun{ctx, d, e, d.Now(), errFallbackPanicked}
	defer ending.report()
	out, err = fallback(ctx, e)
	ending.err = err
	if err != nil && !errors.Is(err, e) {
		err = fmt.Errorf("%w; its fallback: %w", e, err)
	}
	return out, err
}

var errFallbackPanicked = errors.New("the fallback panicked")

// fallbackRun is a fallback that runs.
type fallbackRun struct {
	ctx   context.Context
	d     *Dependency
	e     *Error
	began time.Duration
	err   error
}

func (f *fallbackRun) report() {
	f.d.FallbackEnded(f.ctx, f.e.Operation, engine.Result{
		Reason: f.e.Reason, Attempts: f.e.Attempts, Elapsed: f.e.Elapsed + f.d.Now() - f.began, Verdict: f.e.Verdict,
	}, f.err)
}

// FallbackEnded reports to the observers that the fallback of a call has ended, for drivers that
// set engine.Spec.Fallback: exactly once for each call that has failed and whose Result (or
// [Error]) Degrades. r is the call's result, with the time of the fallback added to Elapsed. err
// is the fallback's failure; nil: it has answered.
func (d *Dependency) FallbackEnded(ctx context.Context, operation string, r engine.Result, err error) {
	if d.wiring.observer == nil {
		return
	}
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	d.wiring.observer.Observe(ctx, Event{
		Kind: event.FallbackEnded, Reason: r.Reason, Attempt: r.Attempts, MaxAttempts: d.Plan().Attempts(), Dependency: d.name, Operation: operation,
		Verdict: r.Verdict, Err: err, Elapsed: r.Elapsed,
	})
}

// Degrades reports whether a degraded answer is right after this error, by the list of
// [engine.Result.Degrades]. If the operation failed because a call of lull below it did, the error
// of that call decides. It is false for nil.
func (e *Error) Degrades() bool {
	return e != nil && degrades(engine.Result{Reason: e.Reason, Verdict: e.Verdict, OutcomeUnknown: e.OutcomeUnknown}, e.Last)
}

func degrades(r engine.Result, last error) bool {
	var below *Error
	if errors.As(last, &below) && below != nil {
		switch {
		case below.OutcomeUnknown:
			return false
		case r.Verdict.Code == engine.CodeRetriedBelow:
			return below.Degrades()
		}
	}
	return r.Degrades()
}
