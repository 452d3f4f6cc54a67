package lull

import (
	"context"
	"reflect"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/owned"
)

// A CallOption changes one call. The zero CallOption changes nothing.
type CallOption struct {
	operation  string
	idempotent idempotence
	once       bool
	fallback   bool // of DoOr
}

type idempotence uint8

const (
	undeclared idempotence = iota
	declaredIdempotent
	declaredNotIdempotent
)

// Operation names the operation, for errors, events and attempts.
func Operation(name string) CallOption {
	return CallOption{operation: name}
}

// NotIdempotent declares that carrying the operation out twice is not the same as once (a charge,
// an append). It is then repeated only after an attempt that provably never reached the
// dependency: a refused connection, or an error marked with [NeverSent].
func NotIdempotent() CallOption {
	return CallOption{idempotent: declaredNotIdempotent}
}

// Idempotent declares the opposite, for drivers that assume the contrary, such as lullhttp for a
// POST. [Do] assumes that an operation is idempotent.
func Idempotent() CallOption {
	return CallOption{idempotent: declaredIdempotent}
}

// Once switches retries and hedges off for one call. If its attempt fails the reason is
// AttemptsExhausted. Budget, breaker and limits of the dependency apply to it as to every call.
func Once() CallOption {
	return CallOption{once: true}
}

// Do calls op under the policy of d, as often as that allows, and returns op's result. op runs on
// the caller's goroutine, one attempt at a time; it must end when its context does.
//
// The marks on op's error decide what it means ([Transient], [Permanent], [RetryAfter],
// [NeverSent]), else the dependency's classifier ([Classify] if none was given). An error of
// which nothing is known is not retried. When the call fails, the error is an [*Error] and the
// value is that of the last attempt. A result without an error is returned even if the context
// has ended. A panic in op releases what the call holds and is raised again.
//
// A result may be read after the call: an *http.Response, *sql.Rows, a stream of gRPC, anything
// with a method Close, or a struct with a field like these. The attempt's context then ends when
// the result's one field of type io.ReadCloser (or the result that is one) is closed or at its
// end; otherwise when nobody refers to the result; in any case with ctx. Policy.AttemptTimeout
// and Deadline are for op; only ctx bounds the reading. Anything else that uses op's context
// after op has returned, such as an iterator, finds that it has ended. The body of a result that
// came with an error is closed when another attempt begins.
//
// Do may be called concurrently. If the first attempt succeeds it costs, over op, 45 to 85 ns and
// no allocation if the attempt has no timeout that is nearer than ctx's deadline; else about 140
// ns and one allocation.
func Do[T any](ctx context.Context, d *Dependency, op func(context.Context) (T, error), opts ...CallOption) (T, error) {
	var out T
	if isPlain[T]() {
		err := Run(ctx, d, func(ctx context.Context) (err error) {
			out, err = op(ctx)
			return err
		}, opts...)
		return out, err
	}
	err := Run(ctx, d, func(ctx context.Context) (err error) {
		out, err = attempted(ctx, op, out)
		return err
	}, opts...)
	return out, err
}

// Run is [Do] for an operation that returns nothing but an error.
func Run(ctx context.Context, d *Dependency, op func(context.Context) error, opts ...CallOption) error {
	var err error
	spec := specOf(opts)
	r := d.Drive(ctx, spec, func(ctx context.Context) Verdict {
		if err = op(ctx); err == nil {
			return Verdict{Kind: KindSuccess}
		}
		return d.verdict(err)
	}, nil, func() error { return err })
	if r.Reason == engine.Success {
		return err
	}
	return d.Error(spec.Operation, r, err)
}

// DoHedged is [Do] for an operation that may run beside itself: under a policy that hedges
// (Policy.Hedge), a second attempt begins when the first is slow, and the first success is the
// result. op must be safe for concurrent use: it returns what it made, and writes to nothing that
// attempts share. The first attempt runs on the caller's goroutine, others on goroutines of their
// own. Those that have lost are cancelled; a value that they return is closed if it has a method
// Close, or a body. See [Dependency.DriveHedged].
//
// Operations that are [NotIdempotent], calls that are made [Once], and those under a policy that
// does not hedge, are made as by Do. If the first attempt succeeds in time, DoHedged costs about
// 200 ns more than Do, and at most one allocation.
func DoHedged[T any](ctx context.Context, d *Dependency, op func(context.Context) (T, error), opts ...CallOption) (T, error) {
	spec := specOf(opts)
	if spec.NotIdempotent || spec.Once || !d.Hedges() {
		return Do(ctx, d, op, opts...)
	}
	h := &hedged[T]{op: op}
	r := h.drive(ctx, d, spec, h)
	out := h.result(r.Slot)
	if r.Reason == engine.Success {
		return out.value, out.err
	}
	return out.value, d.Error(spec.Operation, r, out.err)
}

// hedged is a call of DoHedged: the race, and the results of its attempts.
type hedged[T any] struct {
	race
	op     func(context.Context) (T, error)
	first  result[T]
	others [hedge.MaxAttempts - 1]*result[T]
}

type result[T any] struct {
	value T
	err   error
}

func (h *hedged[T]) result(slot int) *result[T] {
	if slot == 0 {
		return &h.first
	}
	return h.others[slot-1]
}

func (h *hedged[T]) Attempt(ctx context.Context, slot int) Verdict {
	if slot > 0 {
		h.others[slot-1] = new(result[T])
	}
	r := h.result(slot)
	if isPlain[T]() {
		r.value, r.err = h.op(ctx)
	} else {
		r.value, r.err = attempted(ctx, h.op, r.value)
	}
	if r.err == nil {
		return Verdict{Kind: KindSuccess}
	}
	return h.d.verdict(r.err)
}

func (h *hedged[T]) Discard(slot int, _ time.Duration) {
	if r := h.result(slot); !isPlain[T]() {
		owned.Close(reflect.ValueOf(&r.value).Elem(), r.err != nil)
	}
}

func (h *hedged[T]) Err(slot int) error {
	return h.result(slot).err
}

func specOf(opts []CallOption) (s engine.Spec) {
	for i := range opts {
		opts[i].Apply(&s)
	}
	return s
}

// Apply applies the option to s, for drivers that take options of their callers. Of two options
// that contradict each other, the later counts.
func (o *CallOption) Apply(s *engine.Spec) {
	if o.operation != "" {
		s.Operation = o.operation
	}
	if o.idempotent != undeclared {
		s.NotIdempotent = o.idempotent == declaredNotIdempotent
	}
	s.Once = s.Once || o.once
	s.Fallback = s.Fallback || o.fallback
}

// Error returns the [*Error] of a call with the result r, for drivers that use
// [Dependency.Drive].
func (d *Dependency) Error(operation string, r engine.Result, last error) error {
	e := &Error{
		Dependency: d.Name(),
		Operation:  operation,
		Attempts:   r.Attempts,
		Elapsed:    r.Elapsed,
		Reason:     r.Reason,
		Verdict:    r.Verdict,
		RetryAt:    r.RetryAt,
		Last:       last,
		Cause:      r.Cause,
		classifier: d.wiring.classifiedBy,
		final:      d.Policy().Timeouts == TimeoutsNever,

		OutcomeUnknown: r.OutcomeUnknown,
	}
	if r.Reason == engine.CircuitOpen {
		e.OpenFor, e.OpenedBy = d.openCircuit()
	}
	return e
}

// openCircuit returns how long the breaker has been open, and the last failure that it has
// learned.
func (d *Dependency) openCircuit() (since time.Duration, failure error) {
	now := d.Now()
	if b := d.Breaker(); b != nil {
		if at, ok := b.OpenedAt(now); ok {
			since = max(now-at, 0)
		}
	}
	if e := d.clock.Load(); e != nil {
		if p := e.failure.Load(); p != nil {
			failure = *p
		}
	}
	return since, failure
}

// failed records the failure with which a call ended, if the breaker is open by now.
func (d *Dependency) failed(now time.Duration, err error) {
	if err != nil && !d.state.CircuitClosed(now) {
		d.clockState().failure.Store(&err)
	}
}
