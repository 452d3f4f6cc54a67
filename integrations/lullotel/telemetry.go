package lullotel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/saturating"
)

// Scope is the name of the instrumentation scope, of the tracer and the meter.
const Scope = "github.com/lullgo/lull/integrations/lullotel"

// Telemetry is an [event.Observer] that makes metrics and spans from events. Make one with New for a
// process, and share it: its counters and labels are bounded for all dependencies together. Its
// methods may be called concurrently.
type Telemetry struct {
	// Configuration.
	tracer      trace.Tracer
	propagator  propagation.TextMapPropagator // nil: the global one
	spans       Spans
	instruments instruments
	callback    metric.Registration
	began       time.Time

	// State.
	tracing atomic.Bool // Start has been called: events may have a call in their context
	calls   *calls
	sources sources
	gates   *names[gate]
	queues  *names[queueTally]
	targets *names[tally] // of gRPC
}

// An Option configures a Telemetry.
type Option func(*options)

type options struct {
	tracers    trace.TracerProvider
	meters     metric.MeterProvider
	propagator propagation.TextMapPropagator
	limits     Limits
	spans      Spans
}

// WithTracerProvider makes spans with p, instead of the global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *options) { o.tracers = cmp.Or(p, o.tracers) }
}

// WithMeterProvider makes metrics with p, instead of the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) { o.meters = cmp.Or(p, o.meters) }
}

// WithPropagator reads the trace of a message from its headers with p ([Telemetry.Handler]),
// instead of the global propagator.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return func(o *options) { o.propagator = p }
}

// WithLimits sets the bounds of the label sets.
func WithLimits(l Limits) Option { return func(o *options) { o.limits = l } }

// WithSpans selects the calls that have a span. Without it every call that Start, Do, Transport and
// the like start has one.
func WithSpans(s Spans) Option { return func(o *options) { o.spans = s } }

// New returns a Telemetry. It fails if the limits or the meter are invalid.
func New(opts ...Option) (*Telemetry, error) {
	o := options{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, f := range opts {
		if f != nil {
			f(&o)
		}
	}
	if err := o.limits.Validate(); err != nil {
		return nil, fmt.Errorf("lullotel: limits: %w", err)
	}
	if o.spans > SpansNoted {
		return nil, fmt.Errorf("lullotel: WithSpans(%d): want SpansAll or SpansNoted", o.spans)
	}
	l := o.limits.withDefaults()
	t := &Telemetry{
		tracer: o.tracers.Tracer(Scope), propagator: o.propagator, spans: o.spans, began: time.Now(),
		calls:   &calls{dependencies: newNames(l.Dependencies, func(label string) *dependency { return newDependency(label, l) })},
		gates:   newNames(l.Dependencies, newGate),
		queues:  newNames(l.Dependencies, func(label string) *queueTally { return newQueueTally(label, l) }),
		targets: newNames(l.Dependencies, newTally),
	}
	b := builder{meter: o.meters.Meter(Scope)}
	t.instruments = b.instruments()
	err := errors.Join(b.errs...)
	if err == nil {
		t.callback, err = b.meter.RegisterCallback(t.collect, b.observed...)
	}
	if err != nil {
		t.Close() // or the instruments of a callback that was registered for some of them would be read
		return nil, fmt.Errorf("lullotel: %w", err)
	}
	return t, nil
}

// Close stops the gauges and the counters. The histograms belong to the provider, and continue
// until it is shut down. It may be called more than once.
func (t *Telemetry) Close() error {
	if t.callback == nil {
		return nil
	}
	return t.callback.Unregister()
}

// Options returns the options of a dependency: t as its observer, and lull.WithTiming, without
// which calls whose first attempt succeeds have no duration. For lullhttp and lullgrpc pass them to
// With. To save the 210 ns that the duration of a call takes, use lull.WithObserver(t) alone: then
// retry.call.duration has only calls with retries and failures.
func (t *Telemetry) Options() []lull.Option {
	return []lull.Option{lull.WithObserver(t), lull.WithTiming()}
}

// Observe implements event.Observer.
func (t *Telemetry) Observe(ctx context.Context, e lull.Event) {
	if e.Kind == event.CallEnded && e.Reason == engine.Success && e.Attempt == 1 {
		o := t.calls.get(e.Dependency, e.Operation)
		o.ended[SuccessFirst].Add(1)
		if e.Elapsed > 0 {
			o.held[inAttempts].Add(int64(e.Elapsed))
			t.instruments.callDuration.Record(ctx, float64(e.Elapsed)/1e9, o.took[SuccessFirst]...)
		}
		if t.tracing.Load() {
			if c := callOf(ctx, &e); c != nil {
				c.recordEvent(&e, o)
			}
		}
		return
	}
	t.observe(ctx, &e)
}

// observe is Observe for all events beyond the short path. It counts an attempt only at the event
// of its end, so that each is counted once, in any order of events.
func (t *Telemetry) observe(ctx context.Context, e *lull.Event) {
	o := t.calls.get(e.Dependency, e.Operation)
	d := o.dependency
	var c *CallSpan
	if t.tracing.Load() && e.Kind != event.CircuitChanged {
		if c = callOf(ctx, e); c != nil {
			c.recordEvent(e, o)
		}
	}
	if e.EndedAttempt > 0 {
		t.attempt(ctx, e, o)
	}
	switch e.Kind {
	case event.CallEnded:
		t.ended(ctx, e, o, c)
	case event.FallbackEnded:
		t.count(ctx, e, o)
	case event.RetryScheduled:
		t.instruments.delay.Record(ctx, e.Delay.Seconds(), d.record...)
		if e.Verdict.After > 0 {
			d.hints[honoured].Add(1)
		}
	case event.HedgeStarted:
		d.hedges.Add(1)
	case event.HedgeRefused:
		d.hedgesRefused[index(e.Reason)].Add(1)
		if e.Reason == engine.BudgetExhausted {
			d.denied.Add(1)
		}
	case event.CircuitChanged:
		if e.Circuit != nil {
			c := e.Circuit
			d.changes.get(strings.ReplaceAll(fmt.Sprint(c.From, "|", c.To, "|", c.Reason, "|", c.MetricsOnly), " ", "_")).Add(1)
		}
	}
}

func (t *Telemetry) attempt(ctx context.Context, e *lull.Event, o *operation) {
	if e.Verdict.Kind != lull.KindSuccess {
		o.dependency.failures.get(cmp.Or(e.Verdict.Code, Other)).Add(1)
		if e.Verdict.After > 0 {
			o.dependency.hinted(saturating.Add(time.Since(t.began), e.Verdict.After))
		}
	} else if e.EndedAttempt == 1 {
		return // the duration of the call is the same
	}
	t.instruments.attemptDuration.Record(ctx, e.AttemptTook.Seconds(), o.attempt[min(e.EndedAttempt, 2)-1]...)
}

func (t *Telemetry) ended(ctx context.Context, e *lull.Event, o *operation, c *CallSpan) {
	if !e.Fallback { // else when that has ended
		t.count(ctx, e, o)
	}
	if e.Reason != engine.Success {
		o.dependency.reasons[index(e.Reason)].Add(1)
	}
	switch e.Reason {
	case engine.BudgetExhausted:
		o.dependency.denied.Add(1)
	case engine.HintTooLong:
		o.dependency.hints[tooLong].Add(1)
	case engine.Overloaded:
		o.dependency.hints[dontRetry].Add(1)
	}
	if e.Elapsed > 0 {
		o.hold(e)
	}
	if c != nil && c.grpc {
		t.endedGRPC(ctx, c, e, o)
	}
}

// count counts the call by its outcome, and its attempts.
func (t *Telemetry) count(ctx context.Context, e *lull.Event, o *operation) {
	outcome := OutcomeOf(e)
	if e.Attempt < 1 {
		o.refused[outcome].Add(1)
	} else {
		o.ended[outcome].Add(1)
		o.resends.Add(int64(e.Attempt - 1))
	}
	if e.Elapsed > 0 {
		t.instruments.callDuration.Record(ctx, e.Elapsed.Seconds(), o.took[outcome]...)
	}
}

// hint is the outcome of a server's hint about retries.
type hint uint8

const (
	honoured  hint = iota // a retry waited for the requested time
	tooLong               // it asked for longer than the policy allows, and the call ended
	dontRetry             // it forbade a retry, and there was none
	hints
)

var hintNames = [hints]string{"honoured", "too_long", "dont_retry"}

// change counts one kind of change of breakers.
type change struct {
	atomic.Int64
	attributes []attribute.KeyValue
}

// maxChanges is the greatest number of kinds: for each state, state, reason, and metrics only.
const maxChanges = 3 * 3 * 8 * 2

func newChange(name string) *change {
	c := new(change)
	parts := strings.Split(name, "|")
	for i, key := range [...]attribute.Key{keyFrom, keyTo, keyReason, keyMetricsOnly} {
		if i < len(parts) && parts[i] != "false" {
			c.attributes = append(c.attributes, key.String(parts[i]))
		}
	}
	return c
}
