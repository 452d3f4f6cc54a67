package lull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/owned"
)

// DoOr is [Do] with another answer for bad times: an older value, a default, a part of the whole.
// If the call fails and [Error.Degrades], fallback gets the call's error, and its result is the
// result. It does not run for a permanent failure, for an error of which nothing is known (mark it,
// as for Do), after the caller has gone, or if a write may have been carried out. A nil fallback
// never runs.
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
	ending := fallbackRun{ctx, d, e, d.Now(), errNoReturn}
	defer ending.report()
	out, err = fallback(ctx, e)
	ending.err = err
	if first, ok := errors.AsType[*Error](err); err != nil && (!ok || first != e) {
		err = fmt.Errorf("%w; its fallback: %w", e, err)
	}
	return out, err
}

var errNoReturn = errors.New("the fallback panicked, or ended its goroutine")

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
	if r.OutcomeUnknown || unknownBelow(last, false) {
		return false
	}
	if below, ok := errors.AsType[*Error](last); ok && below != nil && r.Verdict.Code == engine.CodeRetriedBelow {
		return below.Degrades()
	}
	return r.Degrades()
}

// unknownBelow reports whether err has a call of lull below of which nobody knows what it has done,
// and it matters: to that call, or because the one above it is not idempotent.
func unknownBelow(err error, notIdempotent bool) bool {
	for err != nil {
		below := (*Error)(nil)
		switch e := err.(type) {
		case *Error:
			below = e
		case interface{ Unwrap() []error }:
			return slices.ContainsFunc(e.Unwrap(), func(branch error) bool { return unknownBelow(branch, notIdempotent) })
		case interface{ As(any) bool }:
			e.As(&below)
		}
		if below != nil {
			return below.OutcomeUnknown || notIdempotent && below.mayHaveActed()
		}
		err = errors.Unwrap(err)
	}
	return false
}

// mayHaveActed reports whether an attempt of the call was sent, and the last one was not answered
// for good.
func (e *Error) mayHaveActed() bool {
	switch {
	case e.Attempts == 0:
		return false
	case e.Verdict.NeverSent:
		return e.Attempts > 1 // it was idempotent
	case e.Verdict.Code == engine.CodeRetriedBelow:
		return unknownBelow(e.Last, true)
	}
	return e.Verdict.OutcomeUnknown(true)
}
