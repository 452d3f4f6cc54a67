package lullhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// eager retries at once and can pay for anything, so that tests see the driver.
var eager = lull.Policy{Attempts: 3, Timeouts: lull.TimeoutsAlways,
	Backoff:         backoff.Schedule{Kind: backoff.Constant},
	RateLimitedBase: time.Nanosecond,
	Budget:          budget.Config{Ratio: 4, Stock: 1000},
	Breaker:         breaker.Config{Off: true},
}

// server answers with handler, and counts the connections that it accepts.
func server(t testing.TB, handler http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var connections atomic.Int64
	s := memnet.NewUnstartedServer(t, handler)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	memnet.Start(s)
	return s, &connections
}

func client(t testing.TB, p lull.Policy, opts ...lullhttp.Option) *http.Client {
	t.Helper()
	c := must(lullhttp.NewClient(p, append([]lullhttp.Option{seeded(t), lullhttp.WithBase(memnet.Transport(t))}, opts...)...))
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// transport is lullhttp.New, with a seed that a failure names.
func transport(t testing.TB, p lull.Policy, opts ...lullhttp.Option) *lullhttp.Transport {
	t.Helper()
	return must(lullhttp.New(p, append([]lullhttp.Option{seeded(t)}, opts...)...))
}

// must is for what a test needs before it begins.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// clientOf is a client of which every request is a call to d.
func clientOf(t testing.TB, d *lull.Dependency) *http.Client {
	t.Helper()
	return must(lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(memnet.Transport(t)), lullhttp.WithDependencies(func(*http.Request) *lull.Dependency { return d })))
}

// answers gives the statuses in turn, the last one for ever.
func answers(statuses ...int) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		i := min(int(n.Add(1)), len(statuses)) - 1
		w.WriteHeader(statuses[i])
		fmt.Fprintf(w, "answer %d", i+1)
	}
}

func read(t testing.TB, resp *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b := must(io.ReadAll(resp.Body))
	resp.Body.Close()
	return string(b)
}

// sent is the response to req; an error ends the test.
func sent(t testing.TB, rt http.RoundTripper, req *http.Request) *http.Response {
	t.Helper()
	return must(rt.RoundTrip(req))
}

// Rule 5: every retried response is drained and closed: 50 sequential calls with two retries each use one connection, over
// HTTP/1.1 and HTTP/2, and each attempt has the whole body.
func TestRule05SequentialRetriesUseOneConnection(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var n, connections atomic.Int64
			s := memnet.NewUnstartedServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); string(body) != "the body" {
					t.Errorf("attempt %d: %q", n.Load(), body)
				}
				if n.Add(1)%3 != 0 {
					w.WriteHeader(503)
					w.Write(bytes.Repeat([]byte("sorry "), 3000))
					return
				}
				fmt.Fprint(w, r.ProtoMajor, r.Header.Get(lullhttp.DefaultAttemptHeader))
			}))
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			s.EnableHTTP2 = h2
			memnet.StartTLS(s)
			cl := client(t, eager, lullhttp.WithBase(s.Client().Transport))
			want := map[bool]string{false: "13", true: "23"}[h2]
			for range 50 {
				req, _ := http.NewRequest("PUT", s.URL, strings.NewReader("the body"))
				resp, err := cl.Do(req)
				if got := read(t, resp, err); got != want || lullhttp.OutcomeOf(resp).Attempts != 3 {
					t.Fatalf("%q after %+v", got, lullhttp.OutcomeOf(resp))
				}
			}
			check.Equal(t, connections.Load(), 1, "connections of 50 calls of three attempts")
		})
	}
}

// trackedBody is a body without GetBody that notes how it was used.
type trackedBody struct {
	r            io.Reader
	read, closed atomic.Int64
	late         atomic.Bool // it was read after it was closed
}

func (b *trackedBody) Read(p []byte) (int, error) {
	if b.closed.Load() > 0 {
		b.late.Store(true)
	}
	n, err := b.r.Read(p)
	b.read.Add(int64(n))
	return n, err
}

func (b *trackedBody) Close() error { b.closed.Add(1); return nil }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRule05WhatIsDiscardedIsClosedWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []*trackedBody
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			b := &trackedBody{r: io.LimitReader(zeros{}, 1<<30)}
			bodies = append(bodies, b)
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: b}, nil
		})
		cl := client(t, eager, lullhttp.WithBase(base))
		resp, err := cl.Get("http://example.test/")
		if err != nil || len(bodies) != 3 {
			t.Fatalf("%d attempts, %v", len(bodies), err)
		}
		for i, b := range bodies[:2] {
			if b.closed.Load() == 0 || b.read.Load() > 100<<10 {
				t.Errorf("discarded body %d: closed %d times, %d bytes of a huge body read", i, b.closed.Load(), b.read.Load())
			}
		}
		if last := bodies[2]; last.closed.Load() != 0 || last.read.Load() != 0 {
			t.Errorf("the body that the caller gets was read (%d) or closed (%d)", last.read.Load(), last.closed.Load())
		}
		resp.Body.Close()
		check.Equal(t, bodies[2].closed.Load(), 1, "how often closing the response closed its body")
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Rule 6: bodies: GetBody is used lazily, each attempt has its own.
func TestRule06EachAttemptHasItsOwnBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = "the whole body"
		for _, fails := range []int{0, 1, 2} {
			var got []string
			s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				got = append(got, string(b))
				if len(got) <= fails {
					w.WriteHeader(503)
				}
			})
			req, _ := http.NewRequest("PUT", s.URL, strings.NewReader(want))
			getBody, asked := req.GetBody, 0
			req.GetBody = func() (io.ReadCloser, error) { asked++; return getBody() }
			resp, err := client(t, eager).Do(req)
			read(t, resp, err)
			check.Slices(t, got, slices.Repeat([]string{want}, fails+1), "the server got")
			check.Equal(t, asked, fails, "calls of GetBody, and retries")
		}
	})
}

// Rule 6: a PUT of 10 MiB with GetBody makes no copy of its body unless it is retried.
func TestRule06NoCopyOfTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			io.Copy(io.Discard, r.Body)
			r.Body.Close()
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		})
		cl := client(t, lull.Policy{}, lullhttp.WithBase(base))
		body := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
		put := func() {
			req, _ := http.NewRequest("PUT", "http://example.test/", bytes.NewReader(body))
			resp := must(cl.Do(req))
			resp.Body.Close()
		}
		put()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		put()
		runtime.ReadMemStats(&after)
		grown := after.TotalAlloc - before.TotalAlloc
		t.Logf("a PUT of 10 MiB allocated %d bytes", grown)
		if grown > 64<<10 {
			t.Errorf("%d bytes allocated", grown)
		}
	})
}

// Rule 7: the caller's request is not changed.
func TestRule07TheRequestIsNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := server(t, answers(503, 503, 200))
		cl := client(t, eager, lullhttp.WithIdempotencyKeys(nil))
		for _, header := range []http.Header{nil, {}, {"X-Mine": {"1"}}} {
			req, _ := http.NewRequest("POST", s.URL, nil)
			req.Header = header
			before := *req
			before.Header = maps.Clone(header)
			resp, err := cl.Transport.RoundTrip(req)
			read(t, resp, err)
			if !reflect.DeepEqual(*req, before) {
				t.Errorf("the request changed:\n%+v\n%+v", before, *req)
			}
		}
	})
}

// How a call has gone, and rule 20: its response is one to the caller's own request, whose context continues.
func TestRule20Outcomes(t *testing.T) {
	for name, c := range map[string]struct {
		policy  func(*lull.Policy)
		options []lullhttp.Option
		handler http.HandlerFunc
		status  int
		want    lullhttp.Outcome
	}{
		"at once":     {handler: answers(200), status: 200, want: lullhttp.Outcome{Attempts: 1}},
		"bad request": {handler: answers(400), status: 400, want: lullhttp.Outcome{Attempts: 1, Reason: engine.Permanent}},
		"not found":   {handler: answers(404), status: 404, want: lullhttp.Outcome{Attempts: 1, Reason: engine.Permanent}},
		"after one":   {handler: answers(500, 200), status: 200, want: lullhttp.Outcome{Attempts: 2}},
		"no budget":   {policy: func(p *lull.Policy) { p.Budget = budget.Config{Ratio: budget.MinRatio, Window: time.Second} }, handler: answers(500), status: 500, want: lullhttp.Outcome{Attempts: 1, Reason: engine.BudgetExhausted}},
		"told not to": {handler: headers(503, "X-Should-Retry", "false"), status: 503, want: lullhttp.Outcome{Attempts: 1, Reason: engine.Overloaded}},
		"hint too long": {handler: headers(429, "Retry-After", "9999999999"), status: 429,
			want: lullhttp.Outcome{Attempts: 1, Reason: engine.HintTooLong}},
		"hint beyond the deadline": {policy: func(p *lull.Policy) { p.Deadline, p.AttemptTimeout = 2*time.Second, 0; p.AttemptTimeout = time.Second },
			handler: headers(429, "Retry-After", "3"), status: 429, want: lullhttp.Outcome{Attempts: 1, Reason: engine.Deadline}},
		"a status of one's own": {options: []lullhttp.Option{lullhttp.WithStatus(404, lull.KindTransient)}, handler: answers(404, 404, 200), status: 200, want: lullhttp.Outcome{Attempts: 3}},
		"a problem of one's own": {options: []lullhttp.Option{lullhttp.WithProblem("https://example.test/busy", lull.KindTransient)},
			handler: problems(409, `{"type":"https://example.test/busy"}`), status: 409, want: lullhttp.Outcome{Attempts: 3, Reason: engine.AttemptsExhausted}},
		"a hedging policy": {policy: func(p *lull.Policy) { p.Attempts, p.Hedge = 0, hedge.Config{Attempts: 2, Delay: time.Hour} }, handler: answers(200), status: 200, want: lullhttp.Outcome{Attempts: 1}},
		"no timeouts":      {policy: func(p *lull.Policy) { p.AttemptTimeout, p.Deadline = lull.NoTimeout, lull.NoTimeout }, handler: answers(503, 200), status: 200, want: lullhttp.Outcome{Attempts: 2}},
		"our own problem":  {handler: problems(503, `{"type":"`+lullhttp.ProblemOverloaded+`"}`), status: 503, want: lullhttp.Outcome{Attempts: 1, Reason: engine.Overloaded}},
	} {
		run(t, name, func(t *testing.T) {
			p := eager
			if c.policy != nil {
				c.policy(&p)
			}
			s, _ := server(t, c.handler)
			req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
			resp, err := client(t, p, c.options...).Transport.RoundTrip(req)
			read(t, resp, err)
			check.Equal(t, resp.Request, req, "the response's request")
			o := lullhttp.OutcomeOf(resp)
			if resp.StatusCode != c.status || o.Attempts != c.want.Attempts || o.Reason != c.want.Reason {
				t.Errorf("status %d, outcome %+v; want %d, %+v", resp.StatusCode, o, c.status, c.want)
			}
		})
	}
}

func headers(status int, kv ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(kv); i += 2 {
			w.Header().Set(kv[i], kv[i+1])
		}
		w.WriteHeader(status)
	}
}

func problems(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

type observe func(lull.Event)

func (o observe) Observe(_ context.Context, e lull.Event) { o(e) }

func TestARefusedCallClosesItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := lull.NewDependency("closed", lull.Policy{})
		d.Breaker().ForceOpen(d.Now())
		cl := clientOf(t, d)
		body := &trackedBody{r: strings.NewReader("x")}
		req, _ := http.NewRequest("PUT", "http://example.test", body)
		if _, err := cl.Do(req); !errors.Is(err, lull.ErrCircuitOpen) || body.closed.Load() == 0 {
			t.Errorf("%v, body closed %d times", err, body.closed.Load())
		}
	})
}

// A caller who leaves during a wait, by context or Request.Cancel, ends the call without another attempt.
func TestCancellingWhileWaiting(t *testing.T) {
	for _, byContext := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			s, _ := server(t, func(w http.ResponseWriter, r *http.Request) { n++; headers(503, "Retry-After", "20")(w, r) })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			leave, left := cancel, make(chan struct{})
			if !byContext {
				leave = func() { close(left) }
			}
			cl := client(t, eager, lullhttp.WithObserver(observe(func(e lull.Event) {
				if e.Kind == event.RetryScheduled {
					leave()
				}
			})))
			req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
			req.Cancel = left //lint:ignore SA1019 it is what is tested
			_, err := cl.Transport.RoundTrip(req)
			var status *lullhttp.StatusError
			if !errors.Is(err, context.Canceled) || !errors.As(err, &status) || status.StatusCode != 503 || n != 1 {
				t.Errorf("error %v after %d attempts, want the cancellation and the last answer", err, n)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for name, o := range map[string]lullhttp.Option{
		"WithHosts(0)":               lullhttp.WithHosts(0),
		"WithStatus(200, transient)": lullhttp.WithStatus(200, lull.KindTransient),
		"WithStatus(404, canceled)":  lullhttp.WithStatus(404, engine.KindCanceled),
		"WithProblem(\"\"":           lullhttp.WithProblem("", lull.KindTransient),
		"WithOperation(nil)":         lullhttp.WithOperation(nil),
		"WithAttemptHeader(\"a b\")": lullhttp.WithAttemptHeader("a b"),
		"WithTimeoutHeader(\"a b\")": lullhttp.WithTimeoutHeader("a b"),
		"WithClassifier(nil)":        lullhttp.WithClassifier(nil),
		"WithBeforeRetry(nil)":       lullhttp.WithBeforeRetry(nil),
		"WithReplay(-1)":             lullhttp.WithReplay(-1),
		"WithBodyIdleTimeout(-1ns)":  lullhttp.WithBodyIdleTimeout(-1),
		"WithEndpoints(\"\"":         lullhttp.WithEndpoints("", must(lullhttp.NewEndpoints(outlier.Config{}, bases(1)))),
		"WithEndpoints(\"orders\"":   lullhttp.WithEndpoints("orders", nil),
		"WithRoute(\"/x\")":          lullhttp.WithRoute("/x"),
		"WithRoute(\"\"":             lullhttp.WithRoute("", lull.Once()),
	} {
		if _, err := lullhttp.New(lull.Policy{}, o); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	var problems engine.Problems
	if _, err := lullhttp.New(lull.Policy{Attempts: -1}); !errors.As(err, &problems) {
		t.Errorf("a bad policy: %v", err)
	}
	if _, err := lullhttp.New(lull.Policy{}, nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

func TestOddRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := client(t, eager)
		body := &trackedBody{r: strings.NewReader("x")}
		if _, err := cl.Transport.RoundTrip(&http.Request{Body: body}); err == nil || body.closed.Load() == 0 {
			t.Errorf("a request without URL: %v; body closed %d times", err, body.closed.Load())
		}
		if _, err := cl.Transport.RoundTrip(nil); err == nil {
			t.Error("no request went through")
		}
		_, err := cl.Get("gopher://example.test/")
		var e *lull.Error
		if !errors.As(err, &e) || e.Attempts != 1 || e.Reason != engine.Permanent {
			t.Errorf("an unsupported scheme: %v", err)
		}
		if o := lullhttp.OutcomeOf(nil); o.Attempts != 1 {
			t.Errorf("OutcomeOf(nil) = %+v", o)
		}
	})
}

// Logs have the ID by which the server knows the request.
func TestRequestIDs(t *testing.T) {
	for name, want := range map[string]string{"X-Request-Id": "7", "Request-Id": "7", "X-Amzn-Requestid": "7", "X-Amz-Request-Id": "7",
		"X-Ms-Request-Id": "7", "X-Correlation-Id": "7", "Cf-Ray": "7", "X-Other": ""} {
		err := &lullhttp.StatusError{StatusCode: 503, Header: http.Header{name: {"7"}}}
		if got := err.RequestID(); got != want || err.Error() != "server answered 503 Service Unavailable" {
			t.Errorf("%s: %q, want %q; %v", name, got, want, err)
		}
	}
}

// Over a stub, with the timeouts off, lull adds at most one allocation, and the zero policy one: the copy of the request with the
// attempt's context. For a caller with a later deadline these are two. For one with a nearer deadline there is neither.
func TestAllocations(t *testing.T) {
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	cl := client(t, lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}, lullhttp.WithBase(base))
	getIn := func(ctx context.Context, rt http.RoundTripper) float64 {
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://example.test/", nil)
		return testing.AllocsPerRun(1000, func() {
			resp, _ := rt.RoundTrip(req)
			resp.Body.Close()
		})
	}
	get := func(rt http.RoundTripper) float64 { return getIn(t.Context(), rt) }
	bare, with := get(base), get(cl.Transport)
	t.Logf("allocations: %v without, %v with lull", bare, with)
	if with > bare+1 {
		t.Errorf("%v allocations with lull, %v without", with, bare)
	}
	zero := get(client(t, lull.Policy{}, lullhttp.WithBase(base)).Transport)
	told := get(client(t, lull.Policy{}, lullhttp.WithBase(base), sendsTime).Transport)
	t.Logf("under the zero policy %v, and to a host that reads the time %v", zero, told)
	if zero > bare+1 {
		t.Errorf("%v allocations under the zero policy, %v without lull", zero, bare)
	}
	near, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	far, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	rt := client(t, lull.Policy{AttemptTimeout: time.Hour, Deadline: 3 * time.Hour}, lullhttp.WithBase(base)).Transport
	if later, nearer := getIn(far, rt), getIn(near, rt); later > bare+2 || nearer > bare {
		t.Errorf("%v and %v allocations for callers with a later and a nearer deadline, %v without lull", later, nearer, bare)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	for name, p := range map[string]lull.Policy{"no timeouts": {AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}, "zero policy": {}} {
		cl := client(b, p, lullhttp.WithBase(base))
		for _, rt := range []struct {
			name    string
			rt      http.RoundTripper
			headers http.Header
		}{
			{"stub", base, nil}, {name, cl.Transport, nil},
			{name + " and headers", cl.Transport, http.Header{"Accept": {"application/json"}, "Authorization": {"Bearer x"}, "User-Agent": {"x/1"}}},
		} {
			b.Run(rt.name, func(b *testing.B) {
				req, _ := http.NewRequest("GET", "http://example.test/", nil)
				maps.Copy(req.Header, rt.headers)
				b.ReportAllocs()
				for b.Loop() {
					resp, _ := rt.rt.RoundTrip(req)
					resp.Body.Close()
				}
			})
		}
	}
}

// The outcome of a call is unknown if its operation must not be carried out twice and was not answered for good.
func TestOutcomeUnknown(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
		want   bool
	}{
		{"POST", 503, true}, {"POST", 429, true}, {"POST", 404, false}, {"POST", 200, false}, {"GET", 503, false}, {"PUT", 503, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := &recorder{status: c.status}
			req, _ := http.NewRequest(c.method, host, nil)
			resp, err := client(t, eager, lullhttp.WithBase(base)).Do(req)
			read(t, resp, err)
			check.Equal(t, lullhttp.OutcomeOf(resp).OutcomeUnknown, c.want, "%s, %d", c.method, c.status)
		})
	}
}
