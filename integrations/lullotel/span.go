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

// Spans says which calls have a span.
type Spans uint8

const (
	// SpansAll: all. The spans of their attempts are its children. A call whose first
	// attempt succeeds takes one span more than without lullotel.
	SpansAll Spans = iota
	// SpansNoted: those of which there is something to say: a wait, a hedge, a refusal, a
	// failure. Whether there will be is not known when the call begins, and a span
	// cannot be slipped in above others that have begun: it stands beside those of the
	// attempts, under the span of the caller, and begins when the call did. Where the
	// caller has no span the call has one in any case, or each attempt would be a trace
	// of its own.
	SpansNoted
)

// Attributes of the spans of calls, and of their events.
const (
	attrDependency = attribute.Key("retry.dependency")
	attrOperation  = attribute.Key("retry.operation")
	// On a call: how many attempts it made. On an event: which it is about.
	attrAttempt = attribute.Key("retry.attempt")
	// On a call: how long it waited, in all. On an event: the wait that begins.
	attrDelay     = attribute.Key("retry.delay_ms")
	attrCeiling   = attribute.Key("retry.delay_before_jitter_ms")
	attrHint      = attribute.Key("retry.server_hint_ms")
	attrExhausted = attribute.Key("retry.budget_exhausted")
	attrReason    = attribute.Key("retry.reason")
	attrOutcome   = attribute.Key("retry.outcome")
)

// A Call is a call that has been started with [Telemetry.Start].
type Call struct {
	t      *Telemetry
	only   string // the dependency that it is a call to; empty: any
	grpc   bool
	target string    // if so
	method string    // if so: the operation that it is a call of
	begin  time.Time // SpansNoted: of a span that has not begun
	above  context.Context

	mu         sync.Mutex // attempts of hedged calls are told of on several goroutines
	span       trace.Span // nil: none yet
	name       string     // of the span, if all is known
	dependency string
	operation  string
	hedges     int // attempts that began beside others
	exhausted  bool
	ended      bool // End
	over       bool // the engine has said how it went
	reason     lull.Reason
	outcome    Outcome
	attempts   int
	waited     time.Duration
	code       string
}

// callContext is what finds the call of a context: made together.
type callContext struct {
	context.Context
	call Call
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

// callOf is the call that the event belongs to, of those that were started here; else nil.
// What an attempt calls in turn has the context of the attempt.
func callOf(ctx context.Context, e *lull.Event) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	switch {
	case c == nil, c.only != "" && c.only != e.Dependency, c.grpc && c.method != e.Operation:
		return nil
	}
	return c
}

// Start begins the span of a call, and returns the context to make it with: that of
// lull.Do, of a request that a lullhttp.Transport is given, of a gRPC call. Then call End.
// The dependency is the name of the one that is called, since its events alone are those
// of the call; empty if that is not known.
//
// It is for drivers that lullotel does not know. [Do], [Run], [DoHedged] and
// [Telemetry.Transport] do all this.
func (t *Telemetry) Start(ctx context.Context, dependency string) (context.Context, *Call) {
	if !t.tracing.Load() {
		t.tracing.Store(true)
	}
	in := &callContext{Context: ctx}
	c := &in.call
	c.t, c.only, c.dependency, c.above = t, dependency, dependency, ctx
	if t.spans == SpansNoted && trace.SpanContextFromContext(ctx).IsValid() {
		c.begin = time.Now()
		return in, c
	}
	in.Context, c.span = t.tracer.Start(ctx, t.spanName(dependency))
	return in, c
}

// spanName is that of a call of which no more is known yet.
func (t *Telemetry) spanName(dependency string) string {
	if dependency == "" {
		return "call"
	}
	return t.calls.dependencies.get(dependency).span
}

// spanName is "call" and what is known. The name of a span should be one of few, so what
// has no label has no place in it either.
func spanName(parts ...string) string {
	name := "call"
	for _, p := range parts {
		if p != "" && p != Other {
			name += " " + p
		}
	}
	return name
}

// note is the call's span, begun if there was none, for something that is to be said. The
// lock is held. It is nil if nobody would hear it.
func (c *Call) note() trace.Span {
	if c.span == nil {
		_, c.span = c.t.tracer.Start(c.above, cmp.Or(c.name, c.t.spanName(c.only)), trace.WithTimestamp(c.begin))
	}
	if !c.span.IsRecording() {
		return nil
	}
	return c.span
}

// succeeded is learn for a call whose first attempt has.
func (c *Call) succeeded(e *lull.Event, o *operation) {
	c.mu.Lock()
	if !c.ended {
		c.went(e)
		c.rename(o)
	}
	c.mu.Unlock()
}

// learn takes in an event.
func (c *Call) learn(e *lull.Event, o *operation) {
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
		c.wait(e)
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
	}
}

// wait notes that one begins.
func (c *Call) wait(e *lull.Event) {
	all := [...]attribute.KeyValue{
		attrAttempt.Int(e.Attempt), attrDelay.Float64(millis(e.Delay)), attrCeiling.Float64(millis(e.Ceiling)),
		errorType(e.Verdict.Code), attrHint.Float64(millis(e.Verdict.After)),
	}
	n := len(all)
	if e.Verdict.After <= 0 {
		n--
	}
	c.event("retry.wait", all[:n]...)
}

func (c *Call) event(name string, attributes ...attribute.KeyValue) {
	if s := c.note(); s != nil {
		s.AddEvent(name, trace.WithAttributes(attributes...))
	}
}

// finish takes in how the call went.
func (c *Call) finish(e *lull.Event, o *operation) {
	c.went(e)
	switch e.Reason {
	case engine.Success, engine.Permanent, engine.Canceled, engine.Panicked:
	default:
		c.event("retry.refused", attrReason.String(e.Reason.String()), attrAttempt.Int(e.Attempt))
	}
	c.rename(o)
}

// went notes how the call did.
func (c *Call) went(e *lull.Event) {
	c.over, c.reason, c.outcome = true, e.Reason, OutcomeOf(e.Reason, e.By)
	c.attempts, c.waited, c.code, c.operation = e.Attempt, e.Waited, e.Verdict.Code, e.Operation
	c.exhausted = c.exhausted || e.Reason == engine.BudgetExhausted
	if c.dependency == "" {
		c.dependency = e.Dependency
	}
}

// rename gives the span its name, when all is known.
func (c *Call) rename(o *operation) {
	c.name = o.span
	if c.span != nil && c.span.IsRecording() {
		c.span.SetName(o.span)
	}
}

// End ends the span. Err is what the call returned, which matters where no Observer has
// heard of it: if the dependency was made without [Telemetry.Options], or the call never
// came to one. It may be called more than once: the first counts.
func (c *Call) End(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := errors.AsType[*lull.Error](err); ok && e != nil && !c.over {
		c.went(&lull.Event{Reason: e.Reason, By: e.Attempts, Attempt: e.Attempts, Dependency: e.Dependency, Operation: e.Operation, Verdict: e.Verdict})
	}
	c.end(err != nil)
}

// unwind is deferred: if the call has not ended, its operation panics.
func (c *Call) unwind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && !c.over {
		c.code = engine.CodePanic
	}
	c.end(true)
}

// end ends the span, if it has not ended. Failed matters if it is not known how the call
// went. The lock is held.
func (c *Call) end(failed bool) {
	if c.ended {
		return
	}
	c.ended = true
	if c.over {
		failed = c.reason != engine.Success
	}
	if c.span == nil && !failed {
		return
	}
	if s := c.note(); s != nil {
		c.describe(s, failed)
	}
	c.span.End()
}

func (c *Call) describe(s trace.Span, failed bool) {
	all := make([]attribute.KeyValue, 0, 8)
	if c.dependency != "" {
		all = append(all, attrDependency.String(text(c.dependency)))
	}
	if c.operation != "" {
		all = append(all, attrOperation.String(text(c.operation)))
	}
	reason := ""
	if c.over {
		reason = c.reason.String()
		all = append(all, attrAttempt.Int(c.attempts), attrDelay.Float64(millis(c.waited)), attrExhausted.Bool(c.exhausted),
			attrReason.String(reason), attrOutcome.String(c.outcome.String()))
	}
	if failed {
		s.SetStatus(codes.Error, reason) // the text of an error may hold what does not belong into a trace
		all = append(all, errorType(cmp.Or(c.code, reason)))
	}
	s.SetAttributes(all...)
}

// errorType is semantic conventions' attribute for a failure of the given code.
func errorType(code string) attribute.KeyValue { return keyErrorType.String(text(cmp.Or(code, Other))) }

// text is s as exporters take it: one attribute that is not UTF-8 would cost them the batch.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
