package proxy

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/lullhttp"
)

// layers are the requests that the application behind the ingress door works on. A request of the application that has
// the trace of one of them is made for it: it has no more time, is no first attempt if that is none, and if it is given up,
// the client of that is asked not to retry. So the layers of a system do not multiply, although the application passes on
// nothing but its trace (traceparent, or X-Request-Id).
type layers struct {
	mu   sync.Mutex
	open map[string][]layer // by trace
}

type layer struct {
	ctx context.Context
	in  *inbound.Request
}

// traceOf returns what requests have in common that are made for one another, or "".
func traceOf(h http.Header) string {
	if p := h.Get("Traceparent"); len(p) >= 35 && p[2] == '-' { // 00-TRACE-SPAN-FLAGS
		return p[3:35]
	}
	return h.Get("X-Request-Id")
}

// begin records a request that the application gets. The function that it returns is called at its end.
func (l *layers) begin(r *http.Request) (end func()) {
	trace, one := traceOf(r.Header), layer{r.Context(), inbound.From(r.Context())}
	if trace == "" || one.in == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[string][]layer{}
	}
	l.open[trace] = append(l.open[trace], one)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		left := l.open[trace][:0:0]
		for _, other := range l.open[trace] {
			if other.in != one.in {
				left = append(left, other)
			}
		}
		if len(left) == 0 {
			delete(l.open, trace)
		} else {
			l.open[trace] = left
		}
	}
}

// above returns the requests for which r may be made.
func (l *layers) above(r *http.Request) []layer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		return nil
	}
	return l.open[traceOf(r.Header)]
}

// giveUp records that a call of the application has been given up, if it has, before the application learns of it.
func giveUp(ctx context.Context) {
	if c := callOf(ctx); c != nil && len(c.above) > 0 && inbound.From(ctx).GaveUp() {
		for _, one := range c.above {
			one.in.GiveUp()
		}
	}
}

// claim adds to the header of a request what is known of those for which it may be made: of several the one with the fewest
// attempts and the most time.
func claim(h http.Header, above []layer) {
	attempt, left := 0, time.Duration(0)
	for i, one := range above {
		until, bounded := one.ctx.Deadline()
		own := time.Duration(0) // none
		if bounded {
			own = max(time.Until(until), time.Nanosecond)
		}
		if i == 0 {
			attempt, left = one.in.Attempt(), own
			continue
		}
		attempt = min(attempt, one.in.Attempt())
		if left > 0 && (own == 0 || own > left) {
			left = own
		}
	}
	if attempt > lullhttp.ParseAttempt(h) {
		h.Set(lullhttp.DefaultAttemptHeader, strconv.Itoa(attempt))
	}
	if said, ok := lullhttp.ParseTimeout(h); left > 0 && (!ok || left < said) {
		h.Set(lullhttp.DefaultTimeoutHeader, lullhttp.FormatTimeout(left))
	}
}
