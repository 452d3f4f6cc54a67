package lullhttp_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
)

// ends collects how calls have ended.
type ends struct {
	mu  sync.Mutex
	all []lull.Event
}

func (e *ends) Observe(_ context.Context, ev lull.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ev.Kind == event.CallEnded || ev.Circuit != nil {
		e.all = append(e.all, ev)
	}
}

// gateway is a reverse proxy to target over lullhttp.
func gateway(t *testing.T, target string, failed func(error)) (front *httptest.Server, calls *ends) {
	t.Helper()
	calls = new(ends)
	rt := client(t, lull.Policy{}, lullhttp.WithObserver(calls)).Transport
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	front = memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		(&httputil.ReverseProxy{Transport: rt, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(u) },
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				failed(err)
				w.WriteHeader(http.StatusBadGateway)
			}}).ServeHTTP(w, r)
	}))
	return front, calls
}

// A client whose upload is cut, or too long, is no failure of what stands behind the gateways that pass it on.
func TestRule23UploadsThroughGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend, _ := server(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
		ignore := func(error) {}
		inner, innerCalls := gateway(t, backend.URL, ignore)
		var mu sync.Mutex
		tooLarge := 0
		outer, outerCalls := gateway(t, inner.URL, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if is := (*http.MaxBytesError)(nil); errors.As(err, &is) {
				tooLarge++
			}
		})
		plain := &http.Client{Transport: memnet.Transport(t)}
		for range 20 {
			req, _ := http.NewRequest("PUT", outer.URL, io.MultiReader(strings.NewReader(strings.Repeat("x", 200<<10)), iotest.ErrReader(io.ErrUnexpectedEOF)))
			if resp, err := plain.Do(req); err == nil {
				resp.Body.Close()
			}
			req, _ = http.NewRequest("PUT", outer.URL, io.MultiReader(strings.NewReader(strings.Repeat("x", 2<<20)))) // of unknown length
			if resp, err := plain.Do(req); err == nil {
				resp.Body.Close()
			}
		}
		resp, err := plain.Get(outer.URL)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("a good request: %v, %v", resp, err)
		}
		resp.Body.Close()
		if tooLarge == 0 {
			t.Error("the gateway does not learn that an upload was too large")
		}
		for name, calls := range map[string]*ends{"inner": innerCalls, "outer": outerCalls} {
			calls.mu.Lock()
			for _, e := range calls.all {
				if e.Circuit != nil || e.Verdict.Kind != lull.KindSuccess && e.Reason != engine.Canceled && !e.Verdict.CallerSide() {
					t.Errorf("%s: %v %+v, circuit %v: %v", name, e.Reason, e.Verdict, e.Circuit, e.Err)
				}
			}
			calls.mu.Unlock()
		}
	})
}

// The same over HTTP/1.1 and HTTP/2: the body is not read again, though it could be.
func TestRule23BrokenBodiesOnRealConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, h2 := range []bool{false, true} {
			s := memnet.NewUnstartedServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					if r.Header.Get("Abort") != "" {
						panic(http.ErrAbortHandler)
					}
					w.WriteHeader(http.StatusInternalServerError) // as many do
				}
			}))
			s.EnableHTTP2 = h2
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			memnet.StartTLS(s)
			for name, body := range map[string]func() io.Reader{
				"broken": func() io.Reader {
					return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
				},
				"too few": func() io.Reader { return strings.NewReader("half") },
			} {
				for _, abort := range []string{"", "yes"} {
					calls := new(ends)
					req, _ := http.NewRequest("PUT", s.URL, io.NopCloser(body()))
					req.Header.Set("Abort", abort)
					req.ContentLength = 1 << 20
					again := 0
					req.GetBody = func() (io.ReadCloser, error) { again++; return io.NopCloser(body()), nil }
					resp, err := client(t, eager, lullhttp.WithBase(s.Client().Transport), lullhttp.WithObserver(calls)).Transport.RoundTrip(req)
					if err == nil {
						resp.Body.Close()
					}
					if again > 0 || len(calls.all) != 1 || !calls.all[0].Verdict.CallerSide() {
						t.Errorf("HTTP/2 %v, %s, abort %q: %v; read again %d times; %+v", h2, name, abort, err, again, calls.all)
					}
				}
			}
		}
	})
}
