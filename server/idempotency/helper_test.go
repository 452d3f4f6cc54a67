package idempotency_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/server/idempotency"
)

// rig is a middleware over a store, and what it reports.
type rig struct {
	testing.TB
	m     *idempotency.Middleware
	store idempotency.Store

	mu     sync.Mutex
	events []idempotency.Event
}

func newRig(t testing.TB, store idempotency.Store, c idempotency.Config, opts ...idempotency.Option) *rig {
	t.Helper()
	if store == nil {
		store = newMemory(t, idempotency.MemoryStoreConfig{})
	}
	r := &rig{TB: t, store: store}
	opts = append([]idempotency.Option{idempotency.WithObserver(func(_ context.Context, e idempotency.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
	})}, opts...)
	m := must.Have(idempotency.New(store, c, opts...))
	idempotency.SetRand(m, seed.Source(t))
	r.m = m
	return r
}

// happened are the events so far, which it forgets.
func (r *rig) happened() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		out = append(out, e.Kind.String())
	}
	r.events = nil
	return out
}

func (r *rig) saw(want ...string) {
	r.Helper()
	if got := r.happened(); strings.Join(got, " ") != strings.Join(want, " ") {
		r.Errorf("events: %v, want %v", got, want)
	}
}

// wait returns when everything is stored that was to be stored later.
func (r *rig) wait() {
	r.Helper()
	if err := r.m.Wait(context.Background()); err != nil {
		r.Fatal(err)
	}
}

// request is a POST to /pay of "100" with a key.
func request(key string) *http.Request {
	return requestOf(http.MethodPost, "/pay", key, "100")
}

func requestOf(method, target, key, body string) *http.Request {
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer alice")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return req
}

// result is a response as a test looks at it.
type result struct {
	status   int
	body     string
	header   http.Header
	problem  string // the problem type's last part, if it is one
	details  map[string]any
	replayed bool
}

func resultOf(t testing.TB, resp *http.Response) result {
	t.Helper()
	b := must.Have(io.ReadAll(resp.Body))
	resp.Body.Close()
	r := result{status: resp.StatusCode, body: string(b), header: resp.Header, replayed: resp.Header.Get("Idempotency-Replayed") == "true"}
	if resp.Header.Get("Content-Type") == "application/problem+json" && strings.Contains(r.body, "tag:lullgo") {
		if err := json.Unmarshal(b, &r.details); err != nil {
			t.Fatalf("the problem %q: %v", b, err)
		}
		_, r.problem, _ = strings.Cut(r.details["type"].(string), "idempotency-")
		if r.details["status"] != float64(resp.StatusCode) || r.details["title"] == "" || r.details["detail"] == "" {
			t.Errorf("a problem of status %d is not complete: %s", resp.StatusCode, b)
		}
	}
	return r
}

// send has h answer req.
func send(t testing.TB, h http.Handler, req *http.Request) result {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return resultOf(t, w.Result())
}

// panics has h answer req, and returns what it has panicked with.
func panics(t testing.TB, h http.Handler, req *http.Request) (v any) {
	t.Helper()
	defer func() { v = recover() }()
	send(t, h, req)
	return nil
}

// is holds a result to a status and the problem type's last part.
func (r result) is(t testing.TB, status int, problem string) {
	t.Helper()
	if r.status != status || r.problem != problem {
		t.Errorf("got %d %q (%s), want %d %q", r.status, r.problem, r.body, status, problem)
	}
}

// ran and again are the two good ends.
func (r result) ran(t testing.TB, status int, body string) {
	t.Helper()
	if r.status != status || r.body != body || r.replayed {
		t.Errorf("got %d %q, replayed %v; want %d %q of the handler", r.status, r.body, r.replayed, status, body)
	}
}

func (r result) replays(t testing.TB, status int, body string) {
	t.Helper()
	if r.status != status || r.body != body || !r.replayed {
		t.Errorf("got %d %q, replayed %v; want %d %q replayed", r.status, r.body, r.replayed, status, body)
	}
}

// counter is a handler that answers with how often it has run.
type counter struct {
	mu sync.Mutex
	n  int
	do func(n int, w http.ResponseWriter, r *http.Request)
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.n++
	n := c.n
	c.mu.Unlock()
	if c.do != nil {
		c.do(n, w, r)
		return
	}
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, "receipt "+string(rune('0'+n)))
}

func (c *counter) times(t testing.TB, want int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	check.Equal(t, c.n, want, "runs of the handler")
}
