package idempotency

import (
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
	next := map[What]time.Time{}
	return func(ctx context.Context, e Event) {
		level := e.level()
		if level < slog.LevelWarn {
			return
		}
		if level == slog.LevelWarn {
			now := time.Now()
			mu.Lock()
			quiet := now.Before(next[e.What])
			if !quiet {
				next[e.What] = now.Add(every)
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
	switch e.What {
	case Abandoned, SaveLost:
		return slog.LevelError
	case RefusedNotKept:
		if e.Err != nil {
			return slog.LevelError
		}
		return slog.LevelInfo
	case RefusedNoCaller, RefusedShare, StoreFailed, SaveFailed, Fenced:
		return slog.LevelWarn
	case RefusedInFlight, RefusedReused, RefusedUnknown:
		return slog.LevelInfo
	}
	if _, is := errors.AsType[*PanicError](e.Err); is {
		return slog.LevelError
	}
	return slog.LevelDebug
}

func (e Event) log(ctx context.Context, l *slog.Logger, level slog.Level) {
	if l == nil {
		l = slog.Default()
	}
	if !l.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 5)
	attrs = append(attrs, slog.String("event", e.What.String()))
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
	l.LogAttrs(ctx, level, "idempotency: "+e.What.text(), attrs...)
}

var whatTexts = [...]string{
	Ran:             "carried out",
	Released:        "ended without effect; the key is free",
	Abandoned:       "the outcome is unknown: find out what was done, then delete the entry of this key in the store",
	Replayed:        "replayed",
	RefusedInFlight: "refused: the first request is still running",
	RefusedReused:   "refused: the key was used for another request",
	RefusedUnknown:  "refused: the outcome of the first request is unknown",
	RefusedNotKept:  "refused: the response to the first request was not kept, or cannot be read",
	RefusedShare:    "refused: the caller holds its share of the store; give it more room, or keep records for less long",
	RefusedNoCaller: "refused: the request does not say whose it is",
	StoreFailed:     "the key could not be claimed",
	SaveFailed:      "the outcome could not be stored at once; it is tried again",
	SaveLost:        "the outcome could not be stored, and is unknown to others",
	Fenced:          "another owner took over while the handler ran; its outcome is not recorded",
}

func (w What) text() string {
	if int(w) < len(whatTexts) {
		return whatTexts[w]
	}
	return w.String()
}
