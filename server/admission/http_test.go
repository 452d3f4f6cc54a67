package admission_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/admission"
)

const ms = time.Millisecond

func middleware(t testing.TB, c admission.Config, opts ...admission.MiddlewareOption) *admission.Middleware {
	t.Helper()
	a := must.Have(admission.New(c, admission.WithRand(seed.Source(t))))
	return must.Have(admission.NewGate(a).Middleware(opts...))
}

// full is a middleware whose one place is taken.
func full(t *testing.T, opts ...admission.MiddlewareOption) *admission.Middleware {
	m := middleware(t, admission.Config{Limit: 1, MaxWait: -1}, opts...)
	if _, d := m.Gate().Enter(t.Context(), admission.Request{}); d.Outcome != admission.Admitted {
		t.Fatal(d)
	}
	return m
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done") })

func get(h http.Handler, header ...string) *http.Response {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// Our client must understand a refusal as it was meant: each form by itself.
func TestRefusalIsUnderstood(t *testing.T) {
	m := full(t)
	h := m.Handler(ok)
	resp := get(h)
	hint, said := lullhttp.ParseHint(resp.Header, resp.StatusCode, time.Now()) //clock: the hint is a number of seconds, or none
	if resp.StatusCode != 503 || !said || hint.Stop || hint.After < time.Second || hint.Source != "Retry-After" {
		t.Errorf("a first attempt: %d %v, understood as %+v", resp.StatusCode, resp.Header, hint)
	}
	body, _ := io.ReadAll(resp.Body)
	if p, is := lullhttp.ParseProblem(body); !is || p.Hint.Stop || p.Hint.After <= 0 || p.Status != 503 || !json.Valid(body) {
		t.Errorf("%s: %+v", body, p)
	}
	check.Equal(t, resp.Header.Get("Content-Type"), "application/problem+json", "type")

	resp = get(h, "Lull-Attempt", "2")
	hint, said = lullhttp.ParseHint(resp.Header, resp.StatusCode, time.Now()) //clock: the hint is a number of seconds, or none
	if resp.StatusCode != 503 || !said || !hint.Stop || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a retry: %d %v, understood as %+v", resp.StatusCode, resp.Header, hint)
	}
	body, _ = io.ReadAll(resp.Body)
	if p, is := lullhttp.ParseProblem(body); !is || !p.Hint.Stop {
		t.Errorf("%s: %+v", body, p)
	}
	if got := get(full(t, admission.WithStatus(429)).Handler(ok)); got.StatusCode != 429 {
		t.Error(got.Status)
	}
}

// lull's client obeys a refusal. It comes back after the wait that the first one asks for, and its retry is refused for
// good. It does the same if a proxy removes the header fields: the body has both.
func TestClientAndServerAgree(t *testing.T) {
	for _, fields := range [][]string{nil, {"Retry-After", "X-Should-Retry"}} {
		synctest.Test(t, func(t *testing.T) {
			server := memnet.NewServer(t, full(t).Handler(ok))
			var waits []time.Duration
			last := time.Now()
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				waits, last = append(waits, time.Since(last)), time.Now()
				resp, err := server.Client().Transport.RoundTrip(r)
				for _, name := range fields {
					resp.Header.Del(name)
				}
				return resp, err
			})
			client := must.Have(lullhttp.NewClient(lull.Policy{}, lullhttp.WithBase(base), lullhttp.With(lull.WithRand(seed.Source(t)))))
			resp := must.Have(client.Get(server.URL))
			defer resp.Body.Close()
			got := lullhttp.OutcomeOf(resp)
			body, _ := io.ReadAll(resp.Body)
			if p, _ := lullhttp.ParseProblem(body); got.Attempts != 2 || got.Reason != engine.Overloaded || p.Type != lullhttp.ProblemOverloaded || waits[1] < ms {
				t.Errorf("without %v: %+v, waits %v, problem %+v", fields, got, waits, p)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestOptions(t *testing.T) {
	m := full(t, admission.WithSkip(func(r *http.Request) bool { return r.Header.Get("Health") != "" }))
	if got := get(m.Handler(ok), "Health", "1"); got.StatusCode != 200 || got.Header["Lull"] != nil {
		t.Error(got.Status, got.Header)
	}
	for _, o := range []admission.MiddlewareOption{admission.WithStatus(500), admission.WithPriority(nil), admission.WithTrust(nil), admission.WithResult(nil)} {
		if _, err := m.Gate().Middleware(nil, o); err == nil {
			t.Error("an option that makes no sense was taken")
		}
	}
	if _, err := admission.NewMiddleware(admission.Config{Limit: -1}); err == nil {
		t.Error("a Config that makes no sense was taken")
	}
}

// A result is made of the last status. What counts as that is tested in internal/response.
func TestResultOfTheStatus(t *testing.T) {
	var took []int
	m := middleware(t, admission.Config{}, admission.WithResult(func(status int) admission.WorkResult { took = append(took, status); return admission.Failed }))
	for _, h := range []http.HandlerFunc{
		func(http.ResponseWriter, *http.Request) {},
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(404) },
	} {
		get(m.Handler(h))
	}
	if n := m.Gate().Snapshot().Departed(admission.Failed); !slices.Equal(took, []int{200, 404}) || n != 2 {
		t.Errorf("taken for %v, %d failed", took, n)
	}
}

func TestPanic(t *testing.T) {
	m := middleware(t, admission.Config{Limit: 1, MaxWait: -1})
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oops") }))
	func() {
		defer func() {
			check.Equal(t, recover(), "oops", "the panic must go on up: recovered")
		}()
		get(h)
	}()
	if s := m.Gate().Snapshot(); s.InFlight != 0 || s.Departed(admission.Failed) != 1 {
		t.Errorf("%+v", s)
	}
}

// A connection that is taken over gives its place back at once.
func TestHijack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := middleware(t, admission.Config{Limit: 1, MaxWait: -1})
		departed := func() {
			if s := m.Gate().Snapshot(); s.InFlight != 0 || s.Departed(admission.Unmeasured) != 1 || s.Departed(admission.Done)+s.Departed(admission.Failed) != 0 {
				t.Errorf("%+v", s)
			}
		}
		server := memnet.NewServer(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			departed()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			conn.Close()
		})))
		resp, err := server.Client().Get(server.URL)
		if err != nil || resp.StatusCode != 101 {
			t.Error(resp, err)
		}
		server.Close()
		synctest.Wait()
		departed()
	})
}

// Work is not begun for a caller that goes while its request waits.
func TestCallerGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := middleware(t, admission.Config{Limit: 1, MaxWait: time.Second})
		var served int
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { served++; time.Sleep(100 * ms) }))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { get(h) })
		synctest.Wait()
		wg.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx)) })
		synctest.Wait()
		cancel()
		wg.Wait()
		if s := m.Gate().Snapshot(); served != 1 || s.Refused(admission.Gone) != 1 || s.InFlight != 0 {
			t.Errorf("%d served, %+v", served, s)
		}
	})
}

// A deadline in a header is kept, and the answer of whoever is too late for it is not
// waited for.
func TestTimeoutHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := middleware(t, admission.Config{Limit: 1, MaxWait: time.Second})
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { time.Sleep(100 * ms) }))
		get(h)
		var wg sync.WaitGroup
		wg.Go(func() { get(h) })
		synctest.Wait()
		start := time.Now()
		resp := get(h, "Grpc-Timeout", "150m")
		if resp.StatusCode != 503 || time.Since(start) != 50*ms {
			t.Errorf("%v after %v, want 503 after 50ms: the work takes 100 more", resp.Status, time.Since(start))
		}
		wg.Wait()
	})
}

func BenchmarkHandler(b *testing.B) {
	for name, h := range map[string]http.Handler{"without": empty, "with": middleware(b, admission.Config{}).Handler(empty)} {
		b.Run(name, func(b *testing.B) {
			w, r := &discard{h: http.Header{}}, httptest.NewRequest("GET", "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

var empty = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })

type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}
func (d *discard) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, errors.ErrUnsupported
}

// Seconds are rounded up: with advice of 1.2 s a client may not come back after one.
func TestRetryAfterInSeconds(t *testing.T) {
	for after, want := range map[time.Duration]string{0: "1", ms: "1", time.Second: "1", 1200 * ms: "2", 30 * time.Second: "30"} {
		h := http.Header{}
		admission.Decision{Outcome: admission.Refused, RetryAfter: after}.SetHeader(h)
		if got := h.Get("Retry-After"); got != want || h.Get("X-Should-Retry") != "" {
			t.Errorf("%v: Retry-After: %s, want %s", after, got, want)
		}
	}
	h := http.Header{}
	admission.Decision{DontRetry: true}.SetHeader(h)
	check.Equal(t, len(h), 0, "headers of who is admitted, %v", h)
}

// An answer that nobody waits for any longer was of no use.
func TestCallerGoesMeanwhile(t *testing.T) {
	m := middleware(t, admission.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() })).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if s := m.Gate().Snapshot(); s.Departed(admission.Failed) != 1 || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}
