package event

import (
	"context"
	"log/slog"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
)

const (
	// outageStep is the time between two lines about a breaker that stays open.
	outageStep = time.Minute
	// maxOutages is the most breakers whose refusals are counted at a time.
	maxOutages = 1024
)

// An outage is the time from the opening of a breaker to its closing. The calls that it refuses
// are counted, since each would be a line of the log.
type outage struct {
	began   time.Time
	written time.Time // when the last line about it was
	seen    time.Time // when the last change or refusal was
	refused int64
	failed  int64 // calls that passed and failed, after the first refusal
	last    Event // of the last that failed

	degraded int64 // calls of both kinds that a fallback has answered
}

func (o *outage) counts() []slog.Attr {
	attrs := []slog.Attr{slog.Int64("refused", o.refused), slog.Int64("failed", o.failed)}
	if o.degraded > 0 {
		attrs = append(attrs, slog.Int64("degraded", o.degraded))
	}
	return attrs
}

// countedFallback counts a fallback that has answered. It reports whether the failure of one needs
// no line, because its call was counted.
func (o *logObserver) countedFallback(e Event) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.outages[e.Dependency]
	if was == nil || was.refused == 0 || !e.Reason.GaveUp() {
		return false
	}
	if e.Err == nil {
		was.degraded++
	}
	return true
}

// changed records a change of a breaker. It returns the counts of the outage that ends with it.
func (o *logObserver) changed(ctx context.Context, e Event) []slog.Attr {
	if e.Circuit == nil {
		return nil
	}
	now := time.Now()
	o.mu.Lock()
	was := o.outages[e.Dependency]
	if e.Circuit.To == breaker.Closed {
		delete(o.outages, e.Dependency)
		o.mu.Unlock()
		if was == nil {
			return nil
		}
		return was.counts()
	}
	if was != nil && e.Circuit.From != breaker.Closed {
		was.seen = now
		o.mu.Unlock()
		return nil
	}
	var ended map[string]*outage
	if len(o.outages) >= maxOutages {
		ended, o.outages = o.outages, nil
	} else if was != nil { // another dependency of that name
		ended = map[string]*outage{e.Dependency: was}
	}
	if o.outages == nil {
		o.outages = map[string]*outage{}
	}
	o.outages[e.Dependency] = &outage{began: now, written: now, seen: now}
	o.mu.Unlock()
	for name, was := range ended {
		if was.refused+was.failed > 0 {
			o.write(ctx, name, now, *was)
		}
	}
	return nil
}

// counted counts a call that has failed if it belongs to an outage, and reports that. Then the
// call needs no line of its own.
func (o *logObserver) counted(ctx context.Context, e Event) bool {
	refused := e.Reason == engine.CircuitOpen && e.Attempt == 0
	if !e.Reason.GaveUp() || e.OutcomeUnknown { // somebody has to look at the last
		return false
	}
	now := time.Now()
	o.mu.Lock()
	was := o.outages[e.Dependency]
	switch {
	case was == nil:
		o.mu.Unlock()
		return false
	case refused:
		was.refused++
		was.seen = now
	case was.refused == 0 || now.Sub(was.seen) > outageStep: // nothing shows that it is open
		o.mu.Unlock()
		return false
	default:
		was.failed++
		was.last = e
	}
	due := now.Sub(was.written) >= outageStep
	if due {
		was.written = now
	}
	line := *was
	o.mu.Unlock()
	if due {
		o.write(ctx, e.Dependency, now, line)
	}
	return true
}

// write writes a line about a breaker that is still open.
func (o *logObserver) write(ctx context.Context, dependency string, now time.Time, was outage) {
	attrs := append([]slog.Attr{slog.String("dependency", dependency)}, was.counts()...)
	attrs = append(attrs, slog.Duration("open_for", now.Sub(was.began)))
	o.log.LogAttrs(ctx, slog.LevelWarn, "circuit breaker is still open", appendFailure(attrs, was.last.Verdict, was.last.Err)...)
}
