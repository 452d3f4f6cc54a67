//go:build servers

package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/lab/torture"
)

func TestMain(m *testing.M) { pace.Overlap(8); m.Run() }

func serve(t *testing.T, h http.Handler) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func graded(t *testing.T, target Target, o Options) map[string]torture.Result {
	card := must.Have(Run(t.Context(), target, o))
	if want := len(o.Cases); want == 0 && len(card.Results) != len(Cases()) || want > 0 && len(card.Results) != want {
		t.Errorf("%d results", len(card.Results))
	}
	results := map[string]torture.Result{}
	for _, r := range card.Results {
		results[r.Case] = r
	}
	return results
}

func wanted(t *testing.T, results map[string]torture.Result, want func(name string) torture.Grade) {
	t.Helper()
	for name, r := range results {
		if w := want(name); w != r.Grade {
			t.Errorf("%s is %s (%s), want %s", name, r.Grade, r.Why, w)
			for i, e := range r.Events {
				if i < 60 {
					t.Logf("%8.3f %s", e.At.Seconds(), e.Text)
				}
			}
		}
	}
}

// sloppy is a server that claims everything and does it wrong.
func sloppy() http.Handler {
	mux := http.NewServeMux()
	var used sync.Map
	var refused atomic.Int64
	mux.HandleFunc("POST /pay", func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		body, _ := io.ReadAll(r.Body)
		if was, ok := used.Load(key); ok && key != "" {
			w.Header().Set("Idempotency-Replayed", "true")
			w.Write(was.([]byte))
			return
		}
		done := fmt.Appendf(nil, "%s carried out as %s", body, rand.Text())
		time.Sleep(30 * time.Millisecond) // between the look and the note others come
		used.Store(key, done)
		w.Write(done)
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Lull", "1")
		if r.URL.Path != "/busy" {
			return
		}
		h := w.Header()
		h.Set("Retry-After", "7")
		h.Set("Content-Type", "application/problem+json")
		h.Set("Cache-Control", "public, max-age=60")
		h.Set("Connection", "close")
		h.Set("RateLimit", `"all";r=3;t=9`)
		if refused.Add(1)%20 == 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"status": 503}`)
	})
	return mux
}

func TestASloppyServerIsFoundOut(t *testing.T) {
	t.Parallel()
	want := map[string]torture.Grade{
		"key-again": torture.Pass, "key-body": torture.Warn, "key-missing": torture.NotApplicable, "key-at-once": torture.Fail,
		"refusal-status": torture.Warn, "refusal-hint": torture.Pass, "refusal-spread": torture.Warn, "refusal-ratelimit": torture.Warn,
		"refusal-problem": torture.Fail, "refusal-cache": torture.Fail, "refusal-connection": torture.Warn,
		"load-attempt": torture.NotApplicable, "load-late": torture.Warn,
	}
	cases := must.Have(Select(slices.Collect(maps.Keys(want))))
	s := serve(t, sloppy())
	wanted(t, graded(t, Target{URL: s.URL + "/", Post: "/pay", Busy: "/busy"}, Options{Cases: cases, Rate: 1000}), func(name string) torture.Grade { return want[name] })
}

// The bounds hold, whatever the server does.
func TestTheBounds(t *testing.T) {
	t.Parallel()
	var requests, posts, now, most atomic.Int64
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	results := graded(t, Target{URL: s.URL, NoPost: true}, Options{Requests: 14, Together: 5, Rate: 1000})
	if requests.Load() > 14 || most.Load() > 5 || posts.Load() > 0 {
		t.Errorf("%d requests, %d at once, %d POSTs; want at most 14, 5 and none", requests.Load(), most.Load(), posts.Load())
	}
	if r := results["refusal-hint"]; r.Why != "not seen: the bound on requests was reached, which is 14" {
		t.Errorf("refusal-hint is %s: %s", r.Grade, r.Why)
	}
	if r := results["key-again"]; r.Why != "not seen: no POST was allowed" {
		t.Errorf("key-again is %s: %s", r.Grade, r.Why)
	}
}

// Nobody but the host of the URL is asked: no redirect is followed.
func TestNobodyElseIsAsked(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	graded(t, Target{URL: s.URL}, Options{Requests: 60, Together: 4, Rate: 1000})
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("another host got %d requests", n)
	}
	var w wire
	w.base, _ = url.Parse(s.URL)
	if _, err := w.dial(t.Context(), "tcp", other.Listener.Addr().String()); !errors.Is(err, errElse) {
		t.Errorf("another address can be dialled: %v", err)
	}
}

// A server that cannot be asked, and a call that was cancelled, have an error and no card.
func TestServersThatCannotBeAsked(t *testing.T) {
	closed := serve(t, http.NotFoundHandler())
	closed.Close()
	if _, err := Run(t.Context(), Target{URL: closed.URL}, Options{}); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a server that does not listen: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Target{URL: serve(t, plain()).URL}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before it began: %v", err)
	}
}

// What is secret shows in no card.
func TestHeadersAreNotShown(t *testing.T) {
	t.Parallel()
	var seen atomic.Int64
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer hush" {
			seen.Add(1)
		}
	}))
	cases := must.Have(Select([]string{"connections"}))
	card := must.Have(Run(t.Context(), Target{URL: s.URL, Header: http.Header{"Authorization": {"Bearer hush"}}}, Options{Cases: cases}))
	var b bytes.Buffer
	must.Succeed(torture.WriteJSON(&b, []*torture.Card{card}))
	must.Succeed(torture.WritePage(&b, []*torture.Card{card}))
	if seen.Load() != 12 || strings.Contains(b.String(), "hush") {
		t.Errorf("%d requests had the header, want 12; the card: %s", seen.Load(), b.String())
	}
	again, err := torture.ReadJSON(strings.NewReader(b.String()))
	if err != nil || !again[0].Server || again[0].Lines()[0].Group != "connections" {
		t.Errorf("read again: %v", err)
	}
}

// A server that goes away in the midst has no card of what it does not do any more: an error says so.
func TestRule24AServerThatGoesAway(t *testing.T) {
	t.Parallel()
	for _, after := range []int64{10, 11, 12, 20, 40, 60} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			var s *httptest.Server
			s = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) > after {
					go s.Listener.Close()
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Connection", "close")
			}))
			card, err := Run(t.Context(), Target{URL: s.URL}, Options{Rate: MostRate})
			if err == nil || card == nil || len(card.Results) == len(Cases()) {
				t.Errorf("after %d requests: %v, and a card %+v", after, err, card)
			}
		})
	}
}

// raw answers requests with what is given, and closes their connections.
func raw(t *testing.T, answer string) string {
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, answer)
		conn.Close()
	})).URL
}

func TestInformationalAnswers(t *testing.T) {
	t.Parallel()
	cases := must.Have(Select([]string{"connection-old", "connection-final"}))
	const early, good = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	for _, c := range []struct {
		answer     string
		old, final torture.Grade
	}{
		{early + good, torture.Fail, torture.Pass},
		{good, torture.Pass, torture.NotApplicable},
		{"HTTP/1.1 101 Switching Protocols\r\n\r\n", torture.Fail, torture.Fail},
	} {
		wanted(t, graded(t, Target{URL: raw(t, c.answer), NoPost: true}, Options{Cases: cases}), func(name string) torture.Grade {
			if name == "connection-old" {
				return c.old
			}
			return c.final
		})
	}
}
