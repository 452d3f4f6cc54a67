package queue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/lullgo/lull/engine"
)

// NewLog returns an Observer that writes to a [slog.Logger]; nil means
// slog.Default. Each line has the attributes that its event has: queue, id, attempt, tries,
// reason, code, after, elapsed, error; for a panic its stack; and do, what an operator can do.
// Levels: what is lost, may have been handled twice, or keeps the consumer from its work is
// Error (a dead letter, a panic, a settlement that failed, a lost lease, messages that
// cannot be fetched); a pause is Warn; a retry, a message that was dropped, and the end of a pause are
// Info; the rest is Debug.
//
// A Consumer without an observer (WithObserver) writes the lines of level Error to
// slog.Default. One with an observer of another kind writes none: give this one beside it.
func NewLog(l *slog.Logger) Observer {
	return func(ctx context.Context, e Event) { logEvent(ctx, l, e, slog.LevelDebug) }
}

// logEvent writes a line, if it is of that level or above.
func logEvent(ctx context.Context, l *slog.Logger, e Event, minLevel slog.Level) {
	level, message, do := describeEvent(e)
	if l = cmp.Or(l, slog.Default()); level < minLevel || !l.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	add := func(there bool, a slog.Attr) {
		if there {
			attrs = append(attrs, a)
		}
	}
	text := func(name, value string) { add(value != "", slog.String(name, value)) }
	text("queue", e.Queue)
	text("id", e.ID)
	add(e.Attempt > 0, slog.Int("attempt", e.Attempt))
	add(e.Tries > 1, slog.Int("tries", e.Tries))
	add(e.Kind == EventSettleFailed, slog.String("outcome", e.Outcome.String()))
	text("reason", e.Reason)
	text("code", e.Code)
	add(e.After > 0, slog.Duration("after", e.After))
	add(e.Elapsed > 0, slog.Duration("elapsed", e.Elapsed))
	if e.Err != nil {
		text("error", errorText(e.Err))
	}
	text("do", do)
	if p := panicOf(e); p != nil {
		text("stack", string(p.Stack))
	}
	l.LogAttrs(ctx, level, message, attrs...)
}

func panicOf(e Event) *PanicError {
	p, ok := e.Err.(*PanicError)
	if ok || e.Kind != EventLeaseLost {
		return p
	}
	p, _ = errors.AsType[*PanicError](e.Err)
	return p
}

func describeEvent(e Event) (level slog.Level, message, do string) {
	const fix = "fix the handler: the stack says where"
	panicked := panicOf(e) != nil
	switch e.Kind {
	case EventSettled:
		switch {
		case e.Outcome == DeadLetter:
			return slog.LevelError, "a message is a dead letter, and will not be tried again", advice(e)
		case e.Outcome == Retry && panicked:
			return slog.LevelError, "the handler panicked; the message will be tried again", fix
		case e.Outcome == Retry:
			return slog.LevelInfo, "a message failed, and will be tried again", ""
		case e.Outcome == Drop:
			return slog.LevelInfo, "a message is dropped, as its handler asked", ""
		}
		return slog.LevelDebug, "a message is settled: " + e.Outcome.String(), ""
	case EventSettleFailed:
		return slog.LevelError, "the broker did not take what becomes of a message, and will deliver it again, also if it was handled",
			"see what the broker says: a queue that is missing or full, a permission, a message that is too large"
	case EventLeaseLost:
		return slog.LevelError, "a message was lost to this consumer while its handler ran, and may be handled twice",
			"the handler must end with its context, and be done within the lease (RabbitMQ: consumer_timeout, NATS: AckWait); effects must bear it"
	case EventRetriedHere:
		if panicked {
			return slog.LevelError, "the handler panicked, and will be run again", fix
		}
		return slog.LevelInfo, "the handler failed, and will be run again", ""
	case EventReceiveFailed:
		return slog.LevelError, "no messages could be fetched; it is tried again", "see what the broker says: is it there, and the queue?"
	case EventPaused:
		return slog.LevelWarn, "nothing is fetched while the circuit breaker is open", ""
	case EventResumed:
		return slog.LevelInfo, "messages are fetched again", ""
	}
	return slog.LevelDebug, e.Kind.String(), ""
}

// advice returns what an operator can do with a dead letter.
func advice(e Event) string {
	switch {
	case e.Reason == ReasonCrashed:
		return "find out what ended the workers that had it before you put it back (lull queue inspect)"
	case e.Reason == ReasonExpired:
		return "it came too late: put it back only if it is still of use (lull queue redrive)"
	case e.Reason == ReasonPanicked:
		return "fix the handler: the stack says where; then put it back (lull queue redrive)"
	case e.Code == engine.CodeUnclassified:
		return "nothing is known of this error: mark it (lull.Permanent, lull.Transient) or teach the classifier; if it was worth another attempt put it back (lull queue redrive)"
	}
	return "see lull queue inspect; when it is mended put it back (lull queue redrive)"
}
