package lullotel

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull"
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
	begin  time.Time // SpansNoted: of a span that has not begun
	above  trace.Span

	mu         sync.Mutex // attempts of hedged calls are told of on several goroutines
	span       trace.Span // nil: none yet
	dependency string
	operation  string
	delay      time.Duration // waited so far
	reported   int           // the last attempt whose failure was told
	starts     [16]time.Duration
	hedged     bool
	hedges     int
	exhausted  bool
	ended      bool // End
	over       bool // the engine has said how it went
	reason     lull.Reason
	attempts   int
	code       string
}

// callContext is what finds the call of a context: made together.
type callContext struct {
	context.Context
	call Call
}

type callKey struct{}

func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return &c.call
	}
	return c.Context.Value(key)
}

// callOf is the call that ctx belongs to, if that is one to the dependency; else nil. (What
// an operation calls in turn has the context of the operation.)
func callOf(ctx context.Context, dependency string) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	if c == nil || c.only != "" && c.only != dependency {
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
	c.t, c.only, c.dependency, c.above = t, dependency, dependency, trace.SpanFromContext(ctx)
	if t.spans == SpansNoted && c.above.SpanContext().IsValid() {
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
		ctx := trace.ContextWithSpan(context.Background(), c.above)
		_, c.span = c.t.tracer.Start(ctx, c.t.spanName(c.only), trace.WithTimestamp(c.begin))
	}
	if !c.span.IsRecording() {
		return nil
	}
	return c.span
}

// attempt is what an event says about one.
type attempt struct {
	call   *Call
	number int
	failed bool          // it has just ended, in failure
	timed  bool          // it has just ended,
	took   time.Duration // after so long
}

// succeeded is learn for a call whose first attempt has.
func (c *Call) succeeded(e *lull.Event, o *operation) {
	c.mu.Lock()
	if !c.ended {
		c.over, c.reason, c.attempts, c.operation = true, lull.Succeeded, 1, e.Operation
		if c.dependency == "" {
			c.dependency = e.Dependency
		}
		c.rename(o)
	}
	c.mu.Unlock()
}

// learn takes in an event, and says what it tells about an attempt. On nil, which is a call
// without a record, it says what can be known without one.
func (c *Call) learn(e *lull.Event, o *operation) (a attempt) {
	a = attempt{call: c, number: max(e.Attempt, 1)}
	failure := e.Verdict.Kind != lull.KindSuccess && e.Attempt > 0
	if c == nil {
		switch e.Kind {
		case lull.EventRetryScheduled:
			a.failed = true
		case lull.EventAttemptFailed:
			a.failed = true
			return a
		case lull.EventCallEnded:
			a.failed = failure && endedOnAttempt(e)
			if !a.failed {
				return a
			}
		default:
			return a
		}
		if e.Attempt == 1 {
			a.timed, a.took = true, e.Elapsed
		}
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return a
	}
	at := min(a.number, len(c.starts)) - 1
	switch e.Kind {
	case lull.EventRetryScheduled:
		a.failed, a.timed, a.took = true, true, e.Elapsed-c.starts[at]
		c.reported = e.Attempt
		c.wait(e)
	case lull.EventRetryStarted:
		c.starts[at] = e.Elapsed
		c.delay += e.Slept
	case lull.EventHedgeStarted:
		c.hedged = true
		c.hedges++
		c.starts[at] = e.Elapsed
		c.event("retry.hedge.started", attrAttempt.Int(e.Attempt))
	case lull.EventHedgeRefused:
		c.hedged = true
		c.event("retry.hedge.refused", attrReason.String(e.Reason.String()))
	case lull.EventAttemptFailed:
		c.hedged = true
		a.failed, a.timed, a.took = true, true, e.Elapsed-c.starts[at]
		c.event("retry.attempt.failed", attrAttempt.Int(e.Attempt), keyErrorType.String(e.Verdict.Code))
	case lull.EventBudgetExhausted:
		c.exhausted = true
	case lull.EventCallEnded:
		// In a race the last to return is not the last that began.
		now := e.Attempt > c.reported
		if c.hedged {
			now = endedOnAttempt(e)
		}
		a.failed = failure && now
		if now && e.Attempt > 0 && !c.hedged && !(e.Reason == lull.Succeeded && e.Attempt == 1) {
			a.timed, a.took = true, e.Elapsed-c.starts[at]
		}
		c.finish(e, o)
	}
	return a
}

// endedOnAttempt tells, without a record of the call, whether it ended because of how an
// attempt did, or while it waited. For two of the reasons both can be, and the first is
// taken.
func endedOnAttempt(e *lull.Event) bool {
	switch e.Reason {
	case lull.Limited, lull.HeldBack:
		return false
	case lull.CallerCanceled:
		return e.Verdict.Kind == lull.KindCanceled
	}
	return e.Attempt > 0
}

// wait notes that one begins.
func (c *Call) wait(e *lull.Event) {
	all := [...]attribute.KeyValue{
		attrAttempt.Int(e.Attempt), attrDelay.Float64(millis(e.Delay)), attrCeiling.Float64(millis(e.Ceiling)),
		keyErrorType.String(e.Verdict.Code), attrHint.Float64(millis(e.Verdict.After)),
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
	c.over, c.reason, c.attempts, c.operation, c.code = true, e.Reason, e.Attempt, e.Operation, e.Verdict.Code
	c.exhausted = c.exhausted || e.Reason == lull.BudgetExhausted
	if c.dependency == "" {
		c.dependency = e.Dependency
	}
	switch e.Reason {
	case lull.Succeeded, lull.FailedPermanent, lull.CallerCanceled:
	default:
		c.event("retry.refused", attrReason.String(e.Reason.String()), attrAttempt.Int(e.Attempt))
	}
	c.rename(o)
}

// rename gives the span its name, when all is known.
func (c *Call) rename(o *operation) {
	if c.span != nil && c.span.IsRecording() {
		c.span.SetName(o.span)
	}
}

// End ends the span. Err is what the call returned, which matters where no Observer has
// heard of it: if the dependency was made without [Telemetry.Options], or the call never
// came to one.
func (c *Call) End(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if !c.over {
		if e, ok := errors.AsType[*lull.Error](err); ok {
			c.over, c.reason, c.attempts, c.operation, c.code = true, e.Reason, e.Attempts, e.Operation, e.Verdict.Code
			c.exhausted = e.Reason == lull.BudgetExhausted
		}
	}
	failed := err != nil
	if c.over {
		failed = c.reason != lull.Succeeded
	}
	if c.span == nil && !failed {
		return
	}
	if s := c.note(); s != nil {
		c.describe(s, failed, err)
	}
	c.span.End()
}

func (c *Call) describe(s trace.Span, failed bool, err error) {
	all := make([]attribute.KeyValue, 0, 8)
	if c.dependency != "" {
		all = append(all, attrDependency.String(c.dependency))
	}
	if c.operation != "" {
		all = append(all, attrOperation.String(c.operation))
	}
	if c.over {
		all = append(all, attrAttempt.Int(c.attempts), attrDelay.Float64(millis(c.delay)), attrExhausted.Bool(c.exhausted),
			attrReason.String(c.reason.String()), attrOutcome.String(OutcomeOf(c.reason, c.attempts).String()))
	}
	if failed {
		switch {
		case c.over:
			s.SetStatus(codes.Error, c.reason.String())
		default: // the text of an error may hold what does not belong into a trace
			s.SetStatus(codes.Error, "")
		}
		if c.code != "" {
			all = append(all, keyErrorType.String(c.code))
		}
	}
	s.SetAttributes(all...)
}

// panicked ends the span of a call whose operation panics.
func (c *Call) panicked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if s := c.note(); s != nil {
		s.SetAttributes(keyErrorType.String("panic"))
		s.SetStatus(codes.Error, "panic")
	}
	c.span.End()
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
