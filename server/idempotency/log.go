package idempotency

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// NewLog returns an Observer that writes a line for each event to l; nil means
// slog.Default. Level Error is for what somebody should look at: an outcome that is
// unknown (with the stack, if the handler panicked), one that could not be stored, a
// record that cannot be read. Warn is for what is wrong with the store or with the
// wiring, Info for requests that were refused, Debug for the others. The attributes are
// event, key, status, error and stack, where there is one.
//
// A Middleware without an observer does the same by itself with the lines of levels Error
// and Warn, but writes no more than one line a minute of each event of level Warn.
func NewLog(l *slog.Logger) Observer {
	return func(ctx context.Context, e Event) { e.log(ctx, l, e.level()) }
}

// defaultObserver is the observer of a Middleware without one: see NewLog.
func defaultObserver() Observer {
	const every = time.Minute
	var mu sync.Mutex
	next := map[EventKind]time.Time{}
	return func(ctx context.Context, e Event) {
		level := e.level()
		if level < slog.LevelWarn {
			return
		}
		if level == slog.LevelWarn {
			now := time.Now()
			mu.Lock()
			quiet := now.Before(next[e.Kind])
			if !quiet {
				next[e.Kind] = now.Add(every)
			}
			mu.Unlock()
			if quiet {
				return
			}
		}
		e.log(ctx, nil, level)
	}
}

func (e Event) level() slog.Level {
	level := e.Kind.inLog().level
	_, panicked := errors.AsType[*PanicError](e.Err)
	if panicked && level == slog.LevelDebug || e.Kind == RefusedNotKept && e.Err != nil {
		return slog.LevelError
	}
	return level
}

func (e Event) log(ctx context.Context, l *slog.Logger, level slog.Level) {
	if l = cmp.Or(l, slog.Default()); !l.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 5)
	attrs = append(attrs, slog.String("event", e.Kind.String()))
	if e.Key != "" {
		attrs = append(attrs, slog.String("key", e.Key))
	}
	if e.Status != 0 {
		attrs = append(attrs, slog.Int("status", e.Status))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	if p, is := errors.AsType[*PanicError](e.Err); is && p.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	l.LogAttrs(ctx, level, "idempotency: "+e.Kind.inLog().text, attrs...)
}
