package event

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
)

// NewLog returns an Observer that writes to a [slog.Logger]; nil means slog.Default.
//
// A call that failed, or needed more than one attempt, is one line of level Warn or Info. It has
// dependency, operation, attempts and of (n of at most m), elapsed, waited (how long no attempt
// was under way) and reason; of the last failure class, code, server_hint (what the server asked
// for), request_id and error; and for each attempt before it a group attempt_1, attempt_2 and so
// on with class, code, request_id, error, took, delay (the wait as drawn) and slept (its real
// length). A request_id comes from an error with a method RequestID or ServiceRequestID, such as
// lullhttp.StatusError and the errors of AWS's SDK.
//
// A call that failed and has a fallback (lull.DoOr) is a line of level Info. The answer of the
// fallback is Debug, its failure Warn. A call that must not be repeated, and may have been carried
// out (Event.OutcomeUnknown), has outcome_unknown=true. A slog.Handler that adds what it finds in
// the context, such as the number of the order, makes that line a list of what to look at.
//
// A breaker that opens, an exhausted budget and two layers that both retry are Warn, the
// breaker's closing is Info. All else is Debug: calls that succeed at once, single retries and
// hedges, probes.
//
// While a breaker is open, the calls that it refuses, and those that pass and are given up
// (Reason.GaveUp), are Debug, too, unless their outcome is unknown. They are counted: the line of
// its closing has refused and failed (and degraded, if fallbacks have answered), and once a minute a
// line of level Warn has the counts so far and the last failure.
func NewLog(l *slog.Logger) Observer {
	return &logObserver{log: cmp.Or(l, slog.Default())}
}

type logObserver struct {
	log *slog.Logger

	mu      sync.Mutex
	outages map[string]*outage // by dependency, while its breaker is open or half-open
}

func (o *logObserver) Observe(ctx context.Context, e Event) {
	level, message := o.level(e)
	var counts []slog.Attr
	switch e.Kind {
	case CircuitChanged:
		counts = o.changed(ctx, e)
	case CallEnded:
		if level > slog.LevelDebug && o.counted(ctx, e) {
			level = slog.LevelDebug
		}
	case FallbackEnded:
		if o.countedFallback(e) {
			level = slog.LevelDebug
		}
	}
	if !o.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs, slog.String("dependency", e.Dependency))
	if e.Operation != "" {
		attrs = append(attrs, slog.String("operation", e.Operation))
	}
	switch {
	case e.Circuit != nil:
		attrs = append(attrs, slog.String("from", e.Circuit.From.String()), slog.String("to", e.Circuit.To.String()),
			slog.String("reason", e.Circuit.Reason.String()), slog.Int64("calls", e.Circuit.Calls), slog.Int64("failures", e.Circuit.Failures))
		if open := e.Circuit.Until - e.Circuit.At; open > 0 {
			attrs = append(attrs, slog.Duration("open_for", open))
		}
		attrs = append(attrs, counts...)
	case e.Kind == CallEnded || e.Kind == FallbackEnded:
		attrs = append(attrs, slog.Int("attempts", e.Attempt), slog.Int("of", e.MaxAttempts), slog.Duration("elapsed", e.Elapsed))
		if e.Waited > 0 {
			attrs = append(attrs, slog.Duration("waited", e.Waited))
		}
		if e.OutcomeUnknown {
			attrs = append(attrs, slog.Bool("outcome_unknown", true))
		}
	default:
		attrs = append(attrs, slog.Int("attempt", e.Attempt), slog.Int("of", e.MaxAttempts), slog.Duration("elapsed", e.Elapsed))
	}
	switch e.Kind {
	case RetryStarted:
		attrs = append(attrs, slog.Duration("slept", e.Slept))
		fallthrough
	case RetryScheduled:
		attrs = append(attrs, slog.Duration("delay_before_jitter", e.Ceiling), slog.Duration("delay", e.Delay))
	case CallEnded, FallbackEnded, BudgetExhausted, HedgeRefused:
		attrs = append(attrs, slog.String("reason", e.Reason.String()))
	}
	attrs = appendFailure(attrs, e.Verdict, e.Err)
	o.log.LogAttrs(ctx, level, message, appendEarlier(attrs, e.Earlier)...)
}

// appendEarlier appends a group for each attempt, the first one first.
func appendEarlier(attrs []slog.Attr, a *Earlier) []slog.Attr {
	if a == nil {
		return attrs
	}
	group := appendFailure(nil, a.Verdict, a.Err)
	group = append(group, slog.Duration("took", a.Took))
	if a.Delay > 0 {
		group = append(group, slog.Duration("delay", a.Delay), slog.Duration("slept", a.Slept))
	}
	return append(appendEarlier(attrs, a.Before), slog.GroupAttrs("attempt_"+strconv.Itoa(a.Attempt), group...))
}

func appendFailure(attrs []slog.Attr, v engine.Verdict, err error) []slog.Attr {
	if v.Kind != engine.KindSuccess && v != (engine.Verdict{}) {
		attrs = append(attrs, slog.String("class", v.Kind.String()), slog.String("code", v.Code))
		if v.After > 0 {
			attrs = append(attrs, slog.Duration("server_hint", v.After))
		}
	}
	if err != nil {
		if id := requestID(err); id != "" {
			attrs = append(attrs, slog.String("request_id", id))
		}
		attrs = append(attrs, slog.Any("error", err))
	}
	return attrs
}

// requestID returns the number by which the server knows the request that failed.
func requestID(err error) string {
	var lulls interface{ RequestID() string }
	var awss interface{ ServiceRequestID() string }
	switch {
	case errors.As(err, &lulls):
		return lulls.RequestID()
	case errors.As(err, &awss):
		return awss.ServiceRequestID()
	}
	return ""
}

func (*logObserver) level(e Event) (slog.Level, string) {
	switch e.Kind {
	case RetryScheduled:
		return slog.LevelDebug, "retry scheduled"
	case RetryStarted:
		return slog.LevelDebug, "retrying"
	case HedgeStarted:
		return slog.LevelDebug, "hedging"
	case HedgeRefused:
		return slog.LevelDebug, "hedge refused"
	case AttemptFailed:
		return slog.LevelDebug, "attempt failed"
	case BudgetExhausted:
		return slog.LevelWarn, "retry budget exhausted"
	case RetriesInLayers:
		return slog.LevelWarn, "two layers retry"
	case FallbackEnded:
		if e.Err != nil {
			return slog.LevelWarn, "call failed, and its fallback"
		}
		return slog.LevelDebug, "call degraded"
	case CircuitChanged:
		switch {
		case e.Circuit == nil:
			return slog.LevelInfo, "circuit breaker changed"
		case e.Circuit.From == breaker.Closed:
			return slog.LevelWarn, "circuit breaker opened"
		case e.Circuit.To != breaker.Closed: // in the midst of an outage: many
			return slog.LevelDebug, "circuit breaker " + e.Circuit.To.String()
		}
		return slog.LevelInfo, "circuit breaker " + e.Circuit.To.String()
	}
	switch {
	case e.Reason == engine.Success && e.Attempt > 1:
		return slog.LevelInfo, "call succeeded after more than one attempt"
	case e.Reason == engine.Success:
		return slog.LevelDebug, "call succeeded"
	case e.Reason == engine.Canceled:
		return slog.LevelInfo, "call canceled by its caller"
	case e.Fallback:
		return slog.LevelInfo, "call failed, and has a fallback"
	}
	return slog.LevelWarn, "call failed"
}
