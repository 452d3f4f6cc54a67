package event

import (
	"context"
	"log/slog"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
)

// NewLog returns an Observer that writes to a [slog.Logger]; nil means
// slog.Default. Each line has the attributes that its event has: dependency,
// operation, attempt and of (attempt n of m), delay_before_jitter, delay, slept
// (the wait as computed, as drawn, and as it really was), class and code (what
// kind of failure), server_hint (what the server asked for), reason, elapsed,
// error. Levels: a retry is Info, a call that failed is Warn, a breaker or a
// budget that acts is Warn (its recovery Info), a success is Debug, and so are the
// probes of a breaker and its opening again.
func NewLog(l *slog.Logger) Observer {
	if l == nil {
		l = slog.Default()
	}
	return logObserver{l}
}

type logObserver struct{ log *slog.Logger }

func (o logObserver) Observe(ctx context.Context, e Event) {
	level, message := o.level(e)
	if !o.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 14)
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
	default:
		attrs = append(attrs, slog.Int("attempt", e.Attempt), slog.Int("of", e.MaxAttempts), slog.Duration("elapsed", e.Elapsed))
	}
	switch e.Kind {
	case RetryStarted:
		attrs = append(attrs, slog.Duration("slept", e.Slept))
		fallthrough
	case RetryScheduled:
		attrs = append(attrs, slog.Duration("delay_before_jitter", e.Ceiling), slog.Duration("delay", e.Delay))
	case CallEnded, BudgetExhausted:
		attrs = append(attrs, slog.String("reason", e.Reason.String()))
	}
	if e.Verdict.Kind != engine.KindSuccess && e.Verdict != (engine.Verdict{}) {
		attrs = append(attrs, slog.String("class", e.Verdict.Kind.String()), slog.String("code", e.Verdict.Code))
		if e.Verdict.After > 0 {
			attrs = append(attrs, slog.Duration("server_hint", e.Verdict.After))
		}
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	o.log.LogAttrs(ctx, level, message, attrs...)
}

func (logObserver) level(e Event) (slog.Level, string) {
	switch e.Kind {
	case RetryScheduled:
		return slog.LevelDebug, "retry scheduled"
	case RetryStarted:
		return slog.LevelInfo, "retrying"
	case BudgetExhausted:
		return slog.LevelWarn, "retry budget exhausted"
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
	switch e.Reason {
	case engine.Success:
		return slog.LevelDebug, "call succeeded"
	case engine.Canceled:
		return slog.LevelInfo, "call canceled by its caller"
	}
	return slog.LevelWarn, "call failed"
}
