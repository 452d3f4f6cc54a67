package lullotel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/queue"
)

// stand is a server, and a client that calls it as in the documentation of Transport.
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
	server := memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		s.parents = append(s.parents, r.Header.Get("Traceparent"))
		mu.Unlock()
		h(w, r)
	}))
	s.url = server.URL
	attempts := otelhttp.NewTransport(s.Resends(memnet.Transport(t)), otelhttp.WithTracerProvider(s.tracer), otelhttp.WithPropagators(propagation.TraceContext{}))
	s.calls = must.Have(lullhttp.New(p, lullhttp.WithBase(attempts), lullhttp.With(s.Options()...)))
	s.client = &http.Client{Transport: s.Transport(s.calls)}
	return s
}

func (s *stand) get(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	resp := must.Have(s.client.Do(req))
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

// sorted returns the spans of calls, and of attempts in the order of their resend counts.
func sorted(all tracetest.SpanStubs) (calls, attempts tracetest.SpanStubs) {
	for _, s := range all {
		if s.SpanKind == trace.SpanKindClient {
			attempts = append(attempts, s)
		} else {
			calls = append(calls, s)
		}
	}
	return calls, attempts
}

// expectResends is about semantic conventions' number of each attempt, which the first has not.
func expectResends(t *testing.T, attempts tracetest.SpanStubs) {
	t.Helper()
	for i, a := range attempts {
		var want any
		if i > 0 {
			want = i
		}
		expect(t, a.Attributes, "http.request.resend_count", want)
	}
}

func TestThreeAttemptsAreOneTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, steady(), failing(2))
		s.get(t, context.Background(), "/orders")

		calls, attempts := sorted(s.spans.GetSpans())
		if len(calls) != 1 || len(attempts) != 3 || calls[0].SpanKind != trace.SpanKindInternal {
			t.Fatalf("%d call spans, %d attempt spans, want 1 that is internal, and 3", len(calls), len(attempts))
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
			expect(t, a.Attributes, "http.response.status_code", [...]int{503, 503, 200}[i])
		}
		if len(s.parents) != 3 || s.parents[0] == s.parents[1] || s.parents[1] == s.parents[2] {
			t.Errorf("the server was sent %q: want three of one trace", s.parents)
		}
		expectResends(t, attempts)
		expect(t, call.Attributes, "retry.attempt", 3, "retry.delay_ms", 30, "retry.budget_exhausted", false, "retry.reason", "success",
			"retry.outcome", "success_retry", "retry.operation", "GET", "retry.dependency", s.url[len("http://"):])
		if len(call.Events) != 2 {
			t.Fatalf("events %v, want two waits", call.Events)
		}
		for i, e := range call.Events {
			wait := []float64{10, 20}[i]
			expect(t, e.Attributes, "retry.attempt", i+1, "retry.delay_ms", wait, "retry.delay_before_jitter_ms", wait, "error.type", "503")
			check.Equal(t, e.Name, "retry.wait", "event %d", i)
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
	})
}

// The result of the call counts, not whether there is an error.
func TestStatusIsTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, steady(), failing(100))
		s.get(t, context.Background(), "/") // ends on a response
		calls, _ := sorted(s.spans.GetSpans())
		if len(calls) != 1 || calls[0].Status.Code != codes.Error {
			t.Errorf("%v", calls)
		}
		expect(t, calls[0].Attributes, "error.type", "503", "retry.reason", "attempts_exhausted")
		s.spans.Reset()
		answer := errors.New("the end of the list")
		d := dependencyOn(t, s.rig, "d", steady(), lull.WithClassifier(func(error) lull.Verdict { return lull.Verdict{Kind: lull.KindSuccess} }))
		if err := Run(t.Context(), s.Telemetry, d, func(context.Context) error { return answer }); err != answer {
			t.Fatal(err)
		}
		span := s.spans.GetSpans()[0]
		if span.Status.Code != codes.Unset {
			t.Errorf("%v", span.Status)
		}
		expect(t, span.Attributes, "error.type", nil, "retry.reason", "success")
	})
}

// Events after the end of the span do not begin another.
func TestAfterTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, WithSpans(SpansNoted))
		above, span := r.tracer.Tracer("x").Start(t.Context(), "above")
		defer span.End()
		ctx, c := r.Start(above, "d")
		c.End(nil)
		c.End(errDown)
		lull.Run(ctx, dependencyOn(t, r, "d", steady()), func(context.Context) error { return errDown })
		check.Equal(t, len(r.begun.Started()), 1, "spans, with that of the caller alone")
	})
}

func TestSpansNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, steady(), failing(2), WithSpans(SpansNoted))
		ctx, above := s.tracer.Tracer("x").Start(context.Background(), "handler", trace.WithSpanKind(trace.SpanKindServer))
		before := time.Now()
		s.get(t, ctx, "/")
		calls, attempts := sorted(s.spans.GetSpans())
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
		expectResends(t, attempts)
		// A call that just succeeds has no span.
		s.spans.Reset()
		s.get(t, ctx, "/")
		if calls, attempts := sorted(s.spans.GetSpans()); len(calls) != 0 || len(attempts) != 1 {
			t.Errorf("%d calls, %d attempts, want 0 and 1", len(calls), len(attempts))
		}
		// Without a caller's span it has one, or its attempts would be traces of their own.
		s.spans.Reset()
		s.get(t, context.Background(), "/")
		if calls, attempts := sorted(s.spans.GetSpans()); len(calls) != 1 || len(attempts) != 1 || attempts[0].Parent.SpanID() != calls[0].SpanContext.SpanID() {
			t.Errorf("%d calls, %d attempts, want 1 and 1 under it", len(calls), len(attempts))
		}
	})
}

// Semantic conventions: the count continues over redirects.
func TestResendCountOverRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		_, attempts := sorted(s.spans.GetSpans())
		if len(attempts) != 3 {
			t.Fatalf("%d attempts, want 3", len(attempts))
		}
		expectResends(t, attempts)
	})
}

// Without otelhttp in between, the span in the context is not an attempt's.
func TestResendsLeavesOtherSpansAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		server, base := memnet.NewServer(t, failing(2)), memnet.Transport(t)
		calls := must.Have(lullhttp.New(steady(), lullhttp.WithBase(r.Resends(base)), lullhttp.With(r.Options()...)))
		ctx, above := r.tracer.Tracer("x").Start(context.Background(), "above")
		req, _ := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
		resp := must.Have(r.Transport(calls).RoundTrip(req))
		resp.Body.Close()
		n := 0
		Run(ctx, r.Telemetry, dependencyOn(t, r, "d", steady()), func(ctx context.Context) error {
			resp, err := r.Resends(base).RoundTrip(req.WithContext(ctx))
			if err == nil {
				resp.Body.Close()
			}
			if n++; n < 2 {
				return errDown
			}
			return err
		})
		above.End()
		for _, s := range r.spans.GetSpans() {
			expect(t, s.Attributes, "http.request.resend_count", nil)
		}
		// Without a base it is the default transport.
		nowhere, _ := http.NewRequest("GET", "nowhere://x", nil)
		if _, err := r.Resends(nil).RoundTrip(nowhere); err == nil || !strings.Contains(err.Error(), "unsupported protocol scheme") {
			t.Errorf("%v", err)
		}
	})
}

var errDown = lull.Transient(errors.New("down"))

// Every call has one span, which ends once, is under its caller's span, and has the result of the
// call, in every case.
func TestEveryCallHasOneSpan(t *testing.T) {
	type run func(ctx context.Context, r *rig, op func(context.Context) error)
	// on is a call to a dependency under steady and what change makes of it, in a state that
	// first brings about.
	on := func(change func(*lull.Policy), first func(*lull.Dependency)) run {
		return func(ctx context.Context, r *rig, op func(context.Context) error) {
			p := steady()
			change(&p)
			d, err := lull.NewDependency("payments", p, r.Options()...)
			if err != nil {
				panic(err)
			}
			first(d)
			if p.Hedge.Attempts == 0 {
				Run(ctx, r.Telemetry, d, op, lull.Operation("charge"))
				return
			}
			DoHedged(ctx, r.Telemetry, d, func(ctx context.Context) (int, error) { return 0, op(ctx) }, lull.Operation("charge"))
		}
	}
	as := func(*lull.Policy) {}
	is := func(*lull.Dependency) {}
	full := func(d *lull.Dependency) { d.Limiter().TryAcquire() }
	fine := func(context.Context) error { return nil }
	panics := func(context.Context) error { panic("oh") }
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	// then is first in the first attempt, and later in the others.
	then := func(first, later func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if a, _ := lull.AttemptFrom(ctx); a.Number > 1 {
				return later(ctx)
			}
			return first(ctx)
		}
	}
	slow := func(d time.Duration, op func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			time.Sleep(d) //clock: the calls are made in bubbles
			return op(ctx)
		}
	}
	down := slow(time.Millisecond, func(context.Context) error { return errDown })
	hedged := func(p *lull.Policy) {
		p.Attempts = 1
		p.Hedge = hedge.Config{Attempts: 2, Delay: time.Millisecond, Share: -1}
	}
	limited := func(wait time.Duration) func(*lull.Policy) {
		return func(p *lull.Policy) { p.Limit = bulkhead.Config{InFlight: 1, MaxWait: wait} }
	}
	soon := func(d time.Duration) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(d, cancel)
			return ctx
		}
	}
	for _, c := range []struct {
		name            string
		run             run
		op              func(context.Context) error
		ctx             func(context.Context) context.Context // nil: as it is
		reason, outcome string
		errorType       string // empty: the call succeeds
		attempts        int64
		delay           float64
		events          string
	}{
		{"success", on(as, is), fine, nil, "success", "success_first", "", 1, 0, ""},
		{"exhausted", on(as, is), down, nil, "attempts_exhausted", "failed_exhausted", "transient", 3, 30, "wait wait refused"},
		{"permanent", on(as, is), func(context.Context) error { return lull.Permanent(errDown) }, nil, "permanent", "failed_terminal", "transient", 1, 0, ""},
		{"refused by the budget", on(func(p *lull.Policy) { p.Budget = budget.Config{Stock: 2} }, func(d *lull.Dependency) { d.Budget().Withdraw(d.Now(), 0, nil) }),
			down, nil, "budget_exhausted", "failed_budget", "transient", 2, 10, "wait refused"},
		{"refused by the breaker", on(func(p *lull.Policy) { p.Breaker.Off = false }, func(d *lull.Dependency) { d.Breaker().ForceOpen(d.Now()) }),
			fine, nil, "circuit_open", "failed_breaker", "circuit_open", 0, 0, "refused"},
		{"refused by the limit", on(limited(0), full),
			fine, nil, "limited", "failed_limited", "limited", 0, 0, "refused"},
		{"refused after a wait for room", on(limited(50*time.Millisecond), full),
			fine, nil, "limited", "failed_limited", "limited", 0, 0, "refused"},
		{"cancelled before", on(as, is), fine, func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		}, "canceled", "canceled", "canceled", 0, 0, ""},
		{"cancelled in the wait", on(as, is), down, soon(17 * time.Millisecond), "canceled", "canceled", "transient", 2, 15, "wait wait"},
		{"cancelled in line", on(limited(time.Minute), full),
			fine, soon(time.Second), "canceled", "canceled", "canceled", 0, 0, ""},
		{"no time for the wait", on(func(p *lull.Policy) { p.Deadline = 15 * time.Millisecond }, is), down, nil, "deadline", "failed_deadline", "transient", 2, 10, "wait refused"},
		{"panic", on(as, is), panics, nil, "panicked", "failed_terminal", "panic", 1, 0, ""},
		{"Goexit", on(as, is), func(context.Context) error { runtime.Goexit(); return nil }, nil, "panicked", "failed_terminal", "panic", 1, 0, ""},
		{"panic in the second attempt", on(as, is), then(down, panics), nil, "panicked", "failed_terminal", "panic", 2, 10, "wait"},
		{"won by the second", on(hedged, is), then(hangs, fine), nil, "success", "success_retry", "", 2, 0, "hedge.started"},
		{"won by the first of two", on(hedged, is), then(slow(5*time.Millisecond, fine), hangs), nil, "success", "success_first", "", 2, 0, "hedge.started"},
		{"both fail", on(hedged, is), then(slow(5*time.Millisecond, down), slow(10*time.Millisecond, down)), nil, "attempts_exhausted", "failed_exhausted", "transient", 2, 0, "hedge.started attempt.failed refused"},
		{"a hedge panics", on(hedged, is), then(hangs, panics), nil, "panicked", "failed_terminal", "panic", 2, 0, "hedge.started"},
		{"hedged and cancelled", on(hedged, is), hangs, soon(time.Second), "canceled", "canceled", "canceled", 2, 0, "hedge.started"},
	} {
		for _, spans := range []Spans{SpansAll, SpansNoted} {
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, WithSpans(spans))
					ctx, above := r.tracer.Tracer("x").Start(t.Context(), "above")
					if c.ctx != nil {
						ctx = c.ctx(ctx)
					}
					done := make(chan struct{})
					began := time.Now()
					go func() {
						defer close(done)
						defer func() { recover() }()
						c.run(ctx, r, c.op)
					}()
					<-done
					took := time.Since(began)
					synctest.Wait()
					all := r.spans.GetSpans()
					if spans == SpansNoted && c.events == "" && c.errorType == "" {
						check.Equal(t, len(all), 0, "spans of what there is nothing to say of")
						return
					}
					if n := len(r.begun.Started()); len(all) != 1 || n != 2 {
						t.Fatalf("%d spans, and %d have begun, want 1, and that of the caller", len(all), n)
					}
					s := all[0]
					if s.Name != "call payments charge" || s.Parent.SpanID() != above.SpanContext().SpanID() {
						t.Errorf("span %q under %v", s.Name, s.Parent.SpanID())
					}
					if got := s.EndTime.Sub(s.StartTime); got != took {
						t.Errorf("the span lasts %v, the call %v", got, took)
					}
					status, errorType := codes.Unset, any(nil)
					if c.errorType != "" {
						status, errorType = codes.Error, c.errorType
					}
					if s.Status.Code != status {
						t.Errorf("status %v, want %v", s.Status, status)
					}
					expect(t, s.Attributes, "retry.reason", c.reason, "retry.outcome", c.outcome, "retry.attempt", c.attempts, "retry.delay_ms", c.delay,
						"retry.budget_exhausted", c.reason == "budget_exhausted", "retry.dependency", "payments", "retry.operation", "charge", "error.type", errorType)
					var events []string
					for _, e := range s.Events {
						events = append(events, strings.TrimPrefix(e.Name, "retry."))
					}
					check.Equal(t, strings.Join(events, " "), c.events, "events")
					r.collect(t).want(t, 1, "retry.calls", "outcome", c.outcome)
				})
			})
		}
	}
}

// An operation that calls another dependency, or the same once more, makes another call.
func TestCallsInsideOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hedges := steady()
		hedges.Attempts = 1
		hedges.Hedge = hedge.Config{Attempts: 2, Delay: time.Hour}
		type op = func(context.Context) (int, error)
		for name, run := range map[string]func(context.Context, *Telemetry, *lull.Dependency, op, ...lull.CallOption) (int, error){
			"Run": func(ctx context.Context, t *Telemetry, d *lull.Dependency, f op, _ ...lull.CallOption) (int, error) {
				return 0, Run(ctx, t, d, func(ctx context.Context) error {
					_, err := f(ctx)
					return err
				})
			},
			"Do":       Do[int],
			"DoHedged": DoHedged[int],
		} {
			for _, p := range []lull.Policy{steady(), hedges} {
				r := newRig(t)
				outer := dependencyOn(t, r, "outer", p)
				inner := dependencyOn(t, r, "inner", steady())
				_, err := run(t.Context(), r.Telemetry, outer, func(ctx context.Context) (int, error) {
					lull.Run(ctx, inner, func(context.Context) error { return errDown }) // by itself: it has no span
					lull.Run(ctx, outer, func(context.Context) error { return errDown })
					return 0, Run(ctx, r.Telemetry, inner, func(context.Context) error { return nil })
				})
				if err != nil {
					t.Fatal(err)
				}
				all := r.spans.GetSpans()
				if len(all) != 2 || all[0].Name != "call inner" || all[1].Name != "call outer" || all[0].Parent.SpanID() != all[1].SpanContext.SpanID() {
					t.Fatalf("%s: spans %v", name, all)
				}
				expect(t, all[1].Attributes, "retry.attempt", 1)
				if len(all[1].Events) != 0 {
					t.Errorf("%s: the outer call took the inner's events: %v", name, all[1].Events)
				}
			}
		}
	})
}

// Contexts that an operation derives from its own cost no more in a span than without.
func TestDerivedContextsNeedNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		d := dependencyOn(t, r, "d", steady()) // which has an attempt timeout
		err := Run(t.Context(), r.Telemetry, d, func(ctx context.Context) error {
			before := runtime.NumGoroutine()
			derived := make([]context.Context, 100)
			for i := range derived {
				var cancel context.CancelFunc
				derived[i], cancel = context.WithCancel(ctx)
				defer cancel()
			}
			if n := runtime.NumGoroutine() - before; n > 50 {
				t.Errorf("%d goroutines for 100 contexts", n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// And they end with it.
		p := steady()
		p.Attempts, p.AttemptTimeout = 1, time.Second
		Run(t.Context(), r.Telemetry, dependencyOn(t, r, "d", p), func(ctx context.Context) error {
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			select {
			case <-derived.Done():
			case <-time.After(time.Minute):
				t.Error("a derived context goes on after its attempt's")
			}
			return derived.Err()
		})
	})
}

// An attribute that is not UTF-8 costs an exporter the whole batch.
func TestAttributesAreText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		d := dependencyOn(t, r, "d\xff", steady(), lull.WithClassifier(func(error) lull.Verdict { return lull.Verdict{Kind: lull.KindTransient, Code: "c\xff"} }))
		Run(t.Context(), r.Telemetry, d, func(context.Context) error { return errors.New("x") }, lull.Operation("o\xff"))
		r.Handler("q\xff", "", func(context.Context, *queue.Message) error {
			return lull.Permanent(errors.New("x"))
		})(t.Context(), &queue.Message{ID: "i\xff"})
		all := r.spans.GetSpans()
		if len(all) != 2 {
			t.Fatalf("%d spans", len(all))
		}
		for _, s := range all {
			kv := s.Attributes
			for _, e := range s.Events {
				kv = append(kv, e.Attributes...)
			}
			for _, a := range kv {
				if !utf8.ValidString(a.Value.String()) {
					t.Errorf("%s is %q", a.Key, a.Value.String())
				}
			}
			if !utf8.ValidString(s.Name) || !utf8.ValidString(s.Status.Description) {
				t.Errorf("%q, %q", s.Name, s.Status.Description)
			}
		}
	})
}

// If nobody observes a dependency, the error has the result of the call, or its panic.
func TestSpanWithoutObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		d, _ := lull.NewDependency("x", steady())
		Run(t.Context(), r.Telemetry, d, func(context.Context) error { return errDown })
		func() {
			defer func() { recover() }()
			Run(t.Context(), r.Telemetry, d, func(context.Context) error { panic("oh") })
		}()
		all := r.spans.GetSpans()
		expect(t, all[0].Attributes, "retry.reason", "attempts_exhausted", "retry.attempt", 3)
		expect(t, all[1].Attributes, "error.type", "panic")
		if len(all) != 2 || all[1].Status.Code != codes.Error {
			t.Errorf("%v", all)
		}
	})
}
