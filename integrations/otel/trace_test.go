package lullotel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

// stand is a server, and a client that calls it as the doc of Transport has it.
type stand struct {
	*rig
	client  *http.Client
	calls   *lullhttp.Transport
	url     string
	parents []string // traceparent headers, in the order in which they came
}

func newStand(t *testing.T, p lull.Policy, h http.HandlerFunc, opts ...Option) *stand {
	t.Helper()
	s := &stand{rig: newRig(t, opts...)}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		s.parents = append(s.parents, r.Header.Get("Traceparent"))
		mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	attempts := otelhttp.NewTransport(s.Resends(base), otelhttp.WithTracerProvider(s.tracer), otelhttp.WithPropagators(propagation.TraceContext{}))
	var err error
	s.calls, err = lullhttp.New(p, lullhttp.WithBase(attempts), lullhttp.With(s.Options()...))
	if err != nil {
		t.Fatal(err)
	}
	s.client = &http.Client{Transport: s.Transport(s.calls)}
	return s
}

func (s *stand) get(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

func failing(n int64) http.HandlerFunc {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if seen.Add(1) <= n {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
}

// sorted are the spans of calls, of attempts in the order of their resend counts, and all others.
func sorted(all tracetest.SpanStubs) (calls, attempts, rest tracetest.SpanStubs) {
	for _, s := range all {
		switch s.SpanKind {
		case trace.SpanKindInternal:
			calls = append(calls, s)
		case trace.SpanKindClient:
			attempts = append(attempts, s)
		default:
			rest = append(rest, s)
		}
	}
	return calls, attempts, rest
}

func TestThreeAttemptsAreOneTrace(t *testing.T) {
	s := newStand(t, steady(), failing(2))
	s.get(t, context.Background(), "/orders")

	calls, attempts, rest := sorted(s.spans.GetSpans())
	if len(calls) != 1 || len(attempts) != 3 || len(rest) != 0 {
		t.Fatalf("%d call spans, %d attempt spans, %d others, want 1, 3, 0", len(calls), len(attempts), len(rest))
	}
	call := calls[0]
	if call.Parent.IsValid() {
		t.Error("the call's span has a parent, want none")
	}
	for i, a := range attempts {
		if a.SpanContext.TraceID() != call.SpanContext.TraceID() {
			t.Errorf("attempt %d is in another trace", i+1)
		}
		if a.Parent.SpanID() != call.SpanContext.SpanID() {
			t.Errorf("attempt %d is not under the call's span", i+1)
		}
		n, there := attributes(a.Attributes)["http.request.resend_count"]
		switch {
		case i == 0 && there:
			t.Errorf("the first attempt has resend_count %v, want none", n)
		case i > 0 && n != int64(i):
			t.Errorf("attempt %d has resend_count %v, want %d", i+1, n, i)
		}
		if want := [...]int64{503, 503, 200}[i]; attributes(a.Attributes)["http.response.status_code"] != want {
			t.Errorf("attempt %d: status %v, want %d", i+1, attributes(a.Attributes)["http.response.status_code"], want)
		}
		if i > 0 && a.SpanContext.SpanID() == attempts[i-1].SpanContext.SpanID() {
			t.Error("two attempts have one span")
		}
	}
	if len(s.parents) != 3 || s.parents[0] == s.parents[1] || s.parents[1] == s.parents[2] {
		t.Errorf("the server was sent %q: want three of one trace", s.parents)
	}
	got := attributes(call.Attributes)
	for k, want := range map[string]any{
		"retry.attempt": int64(3), "retry.budget_exhausted": false, "retry.reason": "success", "retry.outcome": "success_retry",
		"retry.operation": "GET", "retry.dependency": s.url[len("http://"):],
	} {
		if got[k] != want {
			t.Errorf("%s is %v, want %v", k, got[k], want)
		}
	}
	if d := got["retry.delay_ms"].(float64); d < 30 || d > 5000 {
		t.Errorf("the call waited for %v ms, want 30 and a little", d)
	}
	if len(call.Events) != 2 {
		t.Fatalf("events %v, want two waits", call.Events)
	}
	for i, e := range call.Events {
		got := attributes(e.Attributes)
		if e.Name != "retry.wait" || got["retry.attempt"] != int64(i+1) || got["retry.delay_ms"] != []float64{10, 20}[i] ||
			got["retry.delay_before_jitter_ms"] != []float64{10, 20}[i] || got["error.type"] != "503" {
			t.Errorf("event %d is %s %v", i, e.Name, got)
		}
		// It stands between the two attempts.
		if e.Time.Before(attempts[i].StartTime) || e.Time.After(attempts[i+1].StartTime) {
			t.Errorf("wait %d is not between its attempts", i+1)
		}
	}
	if call.Status.Code != codes.Unset {
		t.Errorf("status %v of a call that succeeded", call.Status)
	}
	if want := "call " + s.url[len("http://"):] + " GET"; call.Name != want {
		t.Errorf("the span is called %q, want %q", call.Name, want)
	}
}

// All under the span of whoever calls.
func TestCallStandsUnderItsCaller(t *testing.T) {
	s := newStand(t, steady(), failing(2))
	ctx, above := s.tracer.Tracer("x").Start(context.Background(), "handler", trace.WithSpanKind(trace.SpanKindServer))
	s.get(t, ctx, "/")
	above.End()
	calls, attempts, _ := sorted(s.spans.GetSpans())
	if len(calls) != 1 || calls[0].Parent.SpanID() != above.SpanContext().SpanID() {
		t.Errorf("calls %v, want one under the caller's", calls)
	}
	for _, a := range attempts {
		if a.Parent.SpanID() != calls[0].SpanContext.SpanID() || a.SpanContext.TraceID() != above.SpanContext().TraceID() {
			t.Error("an attempt is not under the call")
		}
	}
}

func TestSpansNoted(t *testing.T) {
	s := newStand(t, steady(), failing(2), WithSpans(SpansNoted))
	ctx, above := s.tracer.Tracer("x").Start(context.Background(), "handler", trace.WithSpanKind(trace.SpanKindServer))
	before := time.Now()
	s.get(t, ctx, "/")
	calls, attempts, _ := sorted(s.spans.GetSpans())
	if len(calls) != 1 || len(attempts) != 3 {
		t.Fatalf("%d calls, %d attempts", len(calls), len(attempts))
	}
	for _, x := range append(attempts, calls...) {
		if x.Parent.SpanID() != above.SpanContext().SpanID() {
			t.Errorf("%s is not under the caller's span", x.Name)
		}
	}
	if c := calls[0]; c.StartTime.Before(before) || c.StartTime.After(attempts[0].StartTime) || len(c.Events) != 2 || attributes(c.Attributes)["retry.attempt"] != int64(3) {
		t.Errorf("the call's span began %v, its first attempt %v; events %v", c.StartTime, attempts[0].StartTime, c.Events)
	}
	for i, a := range attempts {
		if n, ok := attributes(a.Attributes)["http.request.resend_count"]; ok != (i > 0) || ok && n != int64(i) {
			t.Errorf("attempt %d: resend_count %v", i+1, n)
		}
	}
	// Of a call that just succeeds there is nothing to say.
	s.spans.Reset()
	s.get(t, ctx, "/")
	if calls, attempts, _ := sorted(s.spans.GetSpans()); len(calls) != 0 || len(attempts) != 1 {
		t.Errorf("%d calls, %d attempts, want 0 and 1", len(calls), len(attempts))
	}
	// Without a caller's span it has one, or its attempts would be traces of their own.
	s.spans.Reset()
	s.get(t, context.Background(), "/")
	if calls, attempts, _ := sorted(s.spans.GetSpans()); len(calls) != 1 || len(attempts) != 1 || attempts[0].Parent.SpanID() != calls[0].SpanContext.SpanID() {
		t.Errorf("%d calls, %d attempts, want 1 and 1 under it", len(calls), len(attempts))
	}
}

// Semantic conventions: the count goes on over redirects.
func TestResendCountOverRedirects(t *testing.T) {
	var seen atomic.Int64
	s := newStand(t, steady(), func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/new":
		case seen.Add(1) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			http.Redirect(w, r, "/new", http.StatusFound)
		}
	})
	s.get(t, context.Background(), "/old")
	_, attempts, _ := sorted(s.spans.GetSpans())
	if len(attempts) != 3 {
		t.Fatalf("%d attempts, want 3", len(attempts))
	}
	for i, a := range attempts {
		n, ok := attributes(a.Attributes)["http.request.resend_count"]
		if ok != (i > 0) || ok && n != int64(i) {
			t.Errorf("request %d has resend_count %v", i+1, n)
		}
	}
}

// Without otelhttp in between, the span in the context is not an attempt's.
func TestResendsLeavesOtherSpansAlone(t *testing.T) {
	r := newRig(t)
	server := httptest.NewServer(failing(2))
	defer server.Close()
	calls, err := lullhttp.New(steady(), lullhttp.WithBase(r.Resends(nil)), lullhttp.With(r.Options()...))
	if err != nil {
		t.Fatal(err)
	}
	ctx, above := r.tracer.Tracer("x").Start(context.Background(), "above")
	req, _ := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
	resp, err := r.Transport(calls).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	above.End()
	for _, s := range r.spans.GetSpans() {
		if _, ok := attributes(s.Attributes)["http.request.resend_count"]; ok {
			t.Errorf("%s has a resend_count", s.Name)
		}
	}
}

var errDown = lull.Transient(errors.New("down"))

func TestDoNotesRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := steady()
		p.Budget.Unlimited = false // a stock of two
		d := dependencyOn(t, r, "payments", p)
		for range 3 {
			_, err := Do(t.Context(), r.Telemetry, d, func(context.Context) (int, error) { return 0, errDown }, lull.Operation("charge"))
			if err == nil {
				t.Fatal("no error")
			}
		}
		calls := r.spans.GetSpans()
		if len(calls) != 3 {
			t.Fatalf("%d spans", len(calls))
		}
		first, last := attributes(calls[0].Attributes), attributes(calls[2].Attributes)
		if first["retry.reason"] != "attempts_exhausted" || first["retry.attempt"] != int64(3) || first["retry.delay_ms"] != 30.0 || first["retry.budget_exhausted"] != false {
			t.Errorf("first call: %v", first)
		}
		if last["retry.reason"] != "budget_exhausted" || last["retry.attempt"] != int64(1) || last["retry.delay_ms"] != 0.0 || last["retry.budget_exhausted"] != true {
			t.Errorf("last call: %v", last)
		}
		for _, c := range calls {
			if c.Status.Code != codes.Error || c.Name != "call payments charge" {
				t.Errorf("status %v of %s", c.Status, c.Name)
			}
			if e := c.Events[len(c.Events)-1]; e.Name != "retry.refused" {
				t.Errorf("last event %v", e)
			}
		}
		if calls[0].EndTime.Sub(calls[0].StartTime) != 30*time.Millisecond {
			t.Errorf("the span lasts %v, want the 30ms of the call", calls[0].EndTime.Sub(calls[0].StartTime))
		}
	})
}

// A permanent failure is no refusal: nobody wanted another attempt.
func TestPermanentFailureIsNoRefusal(t *testing.T) {
	r := newRig(t)
	d := dependencyOn(t, r, "x", steady())
	Run(t.Context(), r.Telemetry, d, func(context.Context) error { return lull.Permanent(errDown) })
	ctx, cancel := context.WithCancel(t.Context())
	Run(ctx, r.Telemetry, d, func(context.Context) error { cancel(); return ctx.Err() })
	for i, want := range []string{"permanent", "canceled"} {
		if s := r.spans.GetSpans()[i]; len(s.Events) != 0 || attributes(s.Attributes)["retry.reason"] != want || s.Status.Code != codes.Error {
			t.Errorf("%v %v, events %v", s.Attributes, s.Status, s.Events)
		}
	}
}

// An operation that calls something else in turn: that is another call.
func TestCallsInsideOfCalls(t *testing.T) {
	r := newRig(t)
	outer, inner := dependencyOn(t, r, "outer", steady()), dependencyOn(t, r, "inner", steady())
	n := 0
	err := Run(t.Context(), r.Telemetry, outer, func(ctx context.Context) error {
		n++
		lull.Run(ctx, inner, func(context.Context) error { return errDown }) // by itself: it has no span
		return Run(ctx, r.Telemetry, inner, func(context.Context) error { return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	all := r.spans.GetSpans()
	if len(all) != 2 || all[0].Name != "call inner" || all[1].Name != "call outer" || all[0].Parent.SpanID() != all[1].SpanContext.SpanID() {
		t.Fatalf("spans %v", all)
	}
	if got := attributes(all[1].Attributes); got["retry.attempt"] != int64(1) || len(all[1].Events) != 0 {
		t.Errorf("the outer call took the inner's events: %v %v", got, all[1].Events)
	}
}

// Of a dependency that nobody observes, the error tells how it went.
func TestSpanWithoutObserver(t *testing.T) {
	r := newRig(t)
	d, _ := lull.NewDependency("x", steady())
	Run(t.Context(), r.Telemetry, d, func(context.Context) error { return errDown })
	if got := attributes(r.spans.GetSpans()[0].Attributes); got["retry.reason"] != "attempts_exhausted" || got["retry.attempt"] != int64(3) {
		t.Errorf("%v", got)
	}
}

func TestPanicEndsTheSpan(t *testing.T) {
	r := newRig(t)
	d := dependencyOn(t, r, "x", steady())
	func() {
		defer func() { recover() }()
		Run(t.Context(), r.Telemetry, d, func(context.Context) error { panic("oh") })
	}()
	all := r.spans.GetSpans()
	if len(all) != 1 || all[0].Status.Code != codes.Error || attributes(all[0].Attributes)["error.type"] != "panic" {
		t.Errorf("%v", all)
	}
}
