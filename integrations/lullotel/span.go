package lullotel

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
)

// Spans selects the calls that have a span.
type Spans uint8

const (
	// SpansAll: all calls. The spans of their attempts are its children. A call whose first attempt
	// succeeds has one span more than without lullotel.
	SpansAll Spans = iota
	// SpansNoted: calls with a wait, a hedge, a refusal or a failure. That is not known when the
	// call begins, and a span cannot be inserted above others that have begun. So it is beside
	// those of the attempts, under the span of the caller, and begins when the call did. If the
	// caller has no span the call always has one, or each attempt would be a trace of its own.
	SpansNoted
)

// Attributes of the spans of calls, and of their events.
const (
	attrDependency = attribute.Key("retry.dependency")
	attrOperation  = attribute.Key("retry.operation")
	// On a call: how many attempts it made. On an event: which it is about.
	attrAttempt = attribute.Key("retry.attempt")
	// On a call: how long it waited in all. On an event: the wait that begins.
	attrDelay     = attribute.Key("retry.delay_ms")
	attrCeiling   = attribute.Key("retry.delay_before_jitter_ms")
	attrHint      = attribute.Key("retry.server_hint_ms")
	attrExhausted = attribute.Key("retry.budget_exhausted")
	attrReason    = attribute.Key("retry.reason")
	attrOutcome   = attribute.Key("retry.outcome")
)

// A CallSpan is a call that [Telemetry.Start] has started.
type CallSpan struct {
	t      *Telemetry
	only   string // the call's dependency; empty: any
	grpc   bool
	target string    // if so
	method string    // if grpc: the call's operation
	begin  time.Time // SpansNoted: the beginning of a span that is not made yet
	parent context.Context

	mu          sync.Mutex // events of a hedged call come on several goroutines
	span        trace.Span // nil: none yet
	name        string     // of the span, if everything is known
	dependency  string
	operation   string
	hedges      int // attempts that began beside others
	exhausted   bool
	ended       bool // End
	resultKnown bool // the engine has reported the result
	reason      lull.Reason
	outcome     Outcome
	attempts    int
	waited      time.Duration
	code        string
}

// callContext finds the call of a context. Both are made in one allocation.
type callContext struct {
	context.Context
	call CallSpan
}

type (
	callKey struct{} // the call that events belong to
	spanKey struct{} // the call whose span is the nearest of lullotel's
)

func (c *callContext) Value(key any) any {
	switch key {
	case callKey{}, spanKey{}:
		return &c.call
	}
	return c.Context.Value(key)
}

// callOf returns the call of the event, if it was started here; else nil. Calls inside of an
// attempt have the context of the attempt.
func callOf(ctx context.Context, e *lull.Event) *CallSpan {
	c, _ := ctx.Value(callKey{}).(*CallSpan)
	switch {
	case c == nil, c.only != "" && c.only != e.Dependency, c.grpc && c.method != e.Operation:
		return nil
	}
	return c
}

// Start begins the span of a call. It returns the context for the call: for lull.Do, for a request
// to a lullhttp.Transport, for a gRPC call. Then call End. dependency is the name of the called
// dependency, since only its events belong to the call; empty if that is not known.
//
// It is for drivers that lullotel does not know. [Do], [Run], [DoHedged] and [Telemetry.Transport]
// do all this.
func (t *Telemetry) Start(ctx context.Context, dependency string) (context.Context, *CallSpan) {
	if !t.tracing.Load() {
		t.tracing.Store(true)
	}
	in := &callContext{Context: ctx}
	c := &in.call
	c.t, c.only, c.dependency, c.parent = t, dependency, dependency, ctx
	if t.spans == SpansNoted && trace.SpanContextFromContext(ctx).IsValid() {
		c.begin = time.Now()
		return in, c
	}
	in.Context, c.span = t.tracer.Start(ctx, t.spanName(dependency))
	return in, c
}

// spanName returns the name of a call's span as long as no more is known.
func (t *Telemetry) spanName(dependency string) string {
	if dependency == "" {
		return "call"
	}
	return t.calls.dependencies.get(dependency).span
}

// spanName returns "call" and the known names. A span should have one of few names, so names
// without a label are left out.
func spanName(parts ...string) string {
	name := "call"
	for _, p := range parts {
		if p != "" && p != Other {
			name += " " + p
		}
	}
	return name
}

// recordingSpan returns the call's span, for an event. It begins the span if there is none. The lock is
// held. It returns nil if the span is not recorded.
func (c *CallSpan) recordingSpan() trace.Span {
	if c.span == nil {
		_, c.span = c.t.tracer.Start(c.parent, cmp.Or(c.name, c.t.spanName(c.only)), trace.WithTimestamp(c.begin))
	}
	if !c.span.IsRecording() {
		return nil
	}
	return c.span
}

func (c *CallSpan) recordEvent(e *lull.Event, o *operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == event.HedgeStarted {
		c.hedges++
	}
	if c.ended {
		return
	}
	switch e.Kind {
	case event.RetryScheduled:
		all := []attribute.KeyValue{
			attrAttempt.Int(e.Attempt), attrDelay.Float64(millis(e.Delay)), attrCeiling.Float64(millis(e.Ceiling)), errorType(e.Verdict.Code),
		}
		if e.Verdict.After > 0 {
			all = append(all, attrHint.Float64(millis(e.Verdict.After)))
		}
		c.event("retry.wait", all...)
	case event.HedgeStarted:
		c.event("retry.hedge.started", attrAttempt.Int(e.Attempt))
	case event.HedgeRefused:
		c.event("retry.hedge.refused", attrReason.String(e.Reason.String()))
	case event.AttemptFailed:
		c.event("retry.attempt.failed", attrAttempt.Int(e.Attempt), errorType(e.Verdict.Code))
	case event.BudgetExhausted:
		c.exhausted = true
	case event.CallEnded:
		c.finish(e, o)
	case event.FallbackEnded:
		c.outcome = OutcomeOf(e)
		c.event("retry.fallback", attrOutcome.String(c.outcome.String()))
	}
}

func (c *CallSpan) event(name string, attributes ...attribute.KeyValue) {
	if s := c.recordingSpan(); s != nil {
		s.AddEvent(name, trace.WithAttributes(attributes...))
	}
}

// finish records the result of the call, and gives the span its final name.
func (c *CallSpan) finish(e *lull.Event, o *operation) {
	c.storeResult(e)
	switch e.Reason {
	case engine.Success, engine.Permanent, engine.Canceled, engine.Panicked:
	default:
		c.event("retry.refused", attrReason.String(e.Reason.String()), attrAttempt.Int(e.Attempt))
	}
	c.name = o.span
	if c.span != nil && c.span.IsRecording() {
		c.span.SetName(o.span)
	}
}

func (c *CallSpan) storeResult(e *lull.Event) {
	c.resultKnown, c.reason, c.outcome = true, e.Reason, OutcomeOf(e)
	c.attempts, c.waited, c.code, c.operation = e.Attempt, e.Waited, e.Verdict.Code, e.Operation
	c.exhausted = c.exhausted || e.Reason == engine.BudgetExhausted
	c.dependency = cmp.Or(c.dependency, e.Dependency)
}

// End ends the span. err is the error that the call returned. It is used if no Observer has
// received the call's end: the dependency was made without [Telemetry.Options], or the call never
// reached one. It may be called more than once: the first counts.
func (c *CallSpan) End(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := errors.AsType[*lull.Error](err); ok && e != nil && !c.resultKnown {
		c.storeResult(&lull.Event{Reason: e.Reason, OutcomeUnknown: e.OutcomeUnknown, EndedAttempt: e.Attempts, Attempt: e.Attempts, Dependency: e.Dependency, Operation: e.Operation, Verdict: e.Verdict})
	}
	c.end(err != nil)
}

// unwind is deferred. If the call has not ended, its operation panics.
func (c *CallSpan) unwind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && !c.resultKnown {
		c.code = engine.CodePanic
	}
	c.end(true)
}

// end ends the span, if it has not ended. failed is used if the result of the call is not known.
// The lock is held.
func (c *CallSpan) end(failed bool) {
	if c.ended {
		return
	}
	c.ended = true
	if c.resultKnown {
		failed = c.reason != engine.Success && c.outcome != Degraded
	}
	if c.span == nil && !failed {
		return
	}
	if s := c.recordingSpan(); s != nil {
		c.describe(s, failed)
	}
	c.span.End()
}

func (c *CallSpan) describe(s trace.Span, failed bool) {
	all := make([]attribute.KeyValue, 0, 8)
	if c.dependency != "" {
		all = append(all, attrDependency.String(text(c.dependency)))
	}
	if c.operation != "" {
		all = append(all, attrOperation.String(text(c.operation)))
	}
	reason := ""
	if c.resultKnown {
		reason = c.reason.String()
		all = append(all, attrAttempt.Int(c.attempts), attrDelay.Float64(millis(c.waited)), attrExhausted.Bool(c.exhausted),
			attrReason.String(reason), attrOutcome.String(c.outcome.String()))
	}
	if failed {
		s.SetStatus(codes.Error, reason) // the text of an error may contain private data
		all = append(all, errorType(cmp.Or(c.code, reason)))
	}
	s.SetAttributes(all...)
}

// errorType returns semantic conventions' attribute for a failure of the given code.
func errorType(code string) attribute.KeyValue { return keyErrorType.String(text(cmp.Or(code, Other))) }

// text returns s as UTF-8: one attribute that is not would cost an exporter the batch.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
