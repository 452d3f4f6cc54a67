package idempotency_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/idempotency"
)

// local is a http.RoundTripper to a handler in the same bubble. As on a network, the
// handler continues when the client has given up.
type local struct {
	h        http.Handler
	statuses []int
}

func (l *local) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	in := httptest.NewRequest(req.Method, req.URL.String(), strings.NewReader(string(body)))
	in.Header = req.Header.Clone()
	done := make(chan *http.Response, 1)
	go func() {
		w := httptest.NewRecorder()
		l.h.ServeHTTP(w, in)
		done <- w.Result()
	}()
	select {
	case resp := <-done:
		resp.Request = req
		l.statuses = append(l.statuses, resp.StatusCode)
		return resp, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func (l *local) client(t *testing.T, p lull.Policy, opts ...lullhttp.Option) *http.Client {
	t.Helper()
	transport, err := lullhttp.New(p, append([]lullhttp.Option{lullhttp.With(lull.WithRand(seed.Source(t))), lullhttp.WithBase(l)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

// lull's own client makes keys that the middleware accepts. It gives up an attempt that is
// still running, waits for it as the responses ask, without any setting, and gets that
// attempt's response.
func TestWithLullsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
			time.Sleep(5 * time.Second)
			w.WriteHeader(201)
			io.WriteString(w, "receipt")
		}}
		l := &local{h: newRig(t, nil, idempotency.Config{}, idempotency.WithScope(idempotency.SharedScope)).m.Wrap(c)}
		p := lull.Policy{Attempts: 5, AttemptTimeout: time.Second, Deadline: time.Minute, Timeouts: lull.TimeoutsAlways}
		p.Budget.Unlimited = true
		resp, err := l.client(t, p, lullhttp.WithIdempotencyKeys(nil), lullhttp.With(lull.WithRand(middle))).Post("http://bank.example/pay", "text/plain", strings.NewReader("100"))
		if err != nil {
			t.Fatal(err)
		}
		resultOf(t, resp).replays(t, 201, "receipt")
		c.times(t, 1)
		// The first attempt has timed out. The answers to the others ask for 2 s, and so
		// the third of them comes when it is done, with middling luck.
		if want := []int{409, 409, 201}; !slices.Equal(l.statuses, want) {
			t.Errorf("the client saw %v, want %v", l.statuses, want)
		}
	})
}

// middle is no luck either way.
func middle() uint64 { return 1 << 63 }

// What it is of no use to send again, it does not.
func TestLullsClientStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t, idempotency.MemoryConfig{})
		interrupt(t, store, request("k"))
		l := &local{h: newRig(t, store, idempotency.Config{}).m.Wrap(&counter{})}
		client := l.client(t, lull.Policy{})
		for _, test := range []struct{ body, problem string }{{"100", "outcome-unknown"}, {"101", "key-reused"}} {
			l.statuses = nil
			req, _ := http.NewRequest("POST", "http://bank.example/pay", strings.NewReader(test.body))
			req.Header.Set("Authorization", "Bearer alice")
			req.Header.Set("Idempotency-Key", `"k"`)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if got := resultOf(t, resp); got.problem != test.problem || len(l.statuses) != 1 {
				t.Errorf("%s: %+v after %v, want one attempt", test.problem, got, l.statuses)
			}
		}
	})
}
