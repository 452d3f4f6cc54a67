package proxy

import (
	"context"
	"math"
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
	open map[string]map[*inbound.Request]context.Context // by trace
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
	trace, in := traceOf(r.Header), inbound.From(r.Context())
	if trace == "" || in == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[trace] == nil {
		l.open[trace] = map[*inbound.Request]context.Context{}
	}
	l.open[trace][in] = r.Context()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.open[trace], in); len(l.open[trace]) == 0 {
			delete(l.open, trace)
		}
	}
}

// above returns the requests for which r may be made.
func (l *layers) above(r *http.Request) (all []layer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		return nil
	}
	for in, ctx := range l.open[traceOf(r.Header)] {
		all = append(all, layer{ctx, in})
	}
	return all
}

// giveUp records that a call of the application has been given up, if it has, before the application learns of it.
func giveUp(c *call) {
	if len(c.above) > 0 && c.in.GaveUp() {
		for _, one := range c.above {
			one.in.GiveUp()
		}
	}
}

// claim adds to the header of a request what is known of those for which it may be made: of several the one with the fewest
// attempts and the most time.
func claim(h http.Header, above []layer) {
	const unbounded = time.Duration(math.MaxInt64)
	attempt, left := math.MaxInt, time.Duration(0)
	for _, one := range above {
		attempt = min(attempt, one.in.Attempt())
		own := unbounded
		if until, bounded := one.ctx.Deadline(); bounded {
			own = time.Until(until)
		}
		left = max(left, own, time.Nanosecond)
	}
	if attempt > lullhttp.ParseAttempt(h) {
		h.Set(lullhttp.DefaultAttemptHeader, strconv.Itoa(attempt))
	}
	if said, ok := lullhttp.ParseTimeout(h); left < unbounded && (!ok || left < said) {
		h.Set(lullhttp.DefaultTimeoutHeader, lullhttp.FormatTimeout(left))
	}
}
