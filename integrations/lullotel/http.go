package lullotel

import (
	"cmp"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lullhttp"
)

// Transport makes each request to next a call with a span, with the spans of its attempts under it.
// next is a [lullhttp.Transport], or has one below it. Make its dependencies with t's Options. The
// span ends with the call, when the response's headers have come.
//
// Use the three in this order:
//
//	attempts := otelhttp.NewTransport(t.Resends(http.DefaultTransport))
//	calls, err := lullhttp.New(policy, lullhttp.WithBase(attempts), lullhttp.With(t.Options()...))
//	client := &http.Client{Transport: t.Transport(calls)}
//
// otelhttp above lullhttp would make one span, with the status of the last attempt, and hide the
// others.
func (t *Telemetry) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{t, cmp.Or(next, http.DefaultTransport)}
}

type transport struct {
	t    *Telemetry
	next http.RoundTripper
}

func (tr *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, c := tr.t.Start(req.Context(), dependencyOf(tr.next, req))
	defer c.unwind()
	resp, err := tr.next.RoundTrip(req.WithContext(ctx))
	if err == nil && resp != nil {
		c.answered(resp)
	}
	c.End(err)
	return resp, err
}

// CloseIdleConnections passes http.Client.CloseIdleConnections on.
func (tr *transport) CloseIdleConnections() { closeIdle(tr.next) }

func closeIdle(next http.RoundTripper) {
	if c, ok := next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// dependencyOf returns the name of the request's dependency; empty if unknown.
func dependencyOf(next http.RoundTripper, req *http.Request) string {
	if picks, ok := next.(interface {
		Dependency(*http.Request) *lull.Dependency
	}); ok && req.URL != nil {
		return picks.Dependency(req).Name()
	}
	return ""
}

// answered records the outcome of a response, if no Observer has.
func (c *CallSpan) answered(resp *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := lullhttp.OutcomeOf(resp); !c.resultKnown && (o.Attempts > 1 || o.Reason != engine.Success) {
		c.storeResult(&lull.Event{Reason: o.Reason, EndedAttempt: o.Attempts, Attempt: o.Attempts, Verdict: o.Verdict})
	}
}

// resendCount is the attribute of semantic conventions for HTTP spans (stable): the ordinal number
// of the request's resending, for any reason, redirects included. It is absent on the first.
const resendCount = attribute.Key("http.request.resend_count")

// Resends sets http.request.resend_count on the spans of attempts. Use it below otelhttp, whose
// span it finds in the context; otelhttp itself never sets it. Redirects that http.Client follows
// above are counted with their attempts.
func (t *Telemetry) Resends(next http.RoundTripper) http.RoundTripper {
	return &resends{cmp.Or(next, http.DefaultTransport)}
}

type resends struct{ next http.RoundTripper }

func (r *resends) RoundTrip(req *http.Request) (*http.Response, error) {
	a, _ := lull.AttemptFrom(req.Context())
	if n := a.Number - 1 + redirectedRequests(req); n > 0 {
		ctx := req.Context()
		s := trace.SpanFromContext(ctx)
		c, _ := ctx.Value(spanKey{}).(*CallSpan)
		if s.IsRecording() && (c == nil || !c.has(s)) { // else there is no otelhttp between
			s.SetAttributes(resendCount.Int(n))
		}
	}
	return r.next.RoundTrip(req)
}

func (r *resends) CloseIdleConnections() { closeIdle(r.next) }

// redirectedRequests returns how many requests were made for those that redirected to this one.
func redirectedRequests(req *http.Request) (n int) {
	for hops := 0; req != nil && req.Response != nil && hops < 32; hops++ {
		n += lullhttp.OutcomeOf(req.Response).Attempts
		req = req.Response.Request
	}
	return n
}

// has reports whether s is the call's own span, or its caller's.
func (c *CallSpan) has(s trace.Span) bool {
	if s == trace.SpanFromContext(c.parent) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return s == c.span
}
