package idempotency_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/idempotency"
)

// seen is a network with one server on it. It keeps the statuses of responses.
type seen struct {
	*httptest.Server
	statuses []int
}

func (n *seen) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := n.Client().Transport.RoundTrip(req)
	if err == nil {
		n.statuses = append(n.statuses, resp.StatusCode)
	}
	return resp, err
}

// clientOf returns lull's client of a server with h.
func clientOf(t *testing.T, h http.Handler, p lull.Policy, opts ...lullhttp.Option) (*http.Client, *seen) {
	t.Helper()
	n := &seen{Server: memnet.NewServer(t, h)}
	opts = append([]lullhttp.Option{lullhttp.With(lull.WithRand(seed.Source(t))), lullhttp.WithBase(n)}, opts...)
	return &http.Client{Transport: must.Have(lullhttp.New(p, opts...))}, n
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
		h := newRig(t, nil, idempotency.Config{}, idempotency.WithScope(idempotency.SharedScope)).m.Wrap(c)
		p := lull.Policy{Attempts: 5, AttemptTimeout: time.Second, Deadline: time.Minute, Timeouts: lull.TimeoutsAlways}
		p.Budget.Unlimited = true
		client, n := clientOf(t, h, p, lullhttp.WithIdempotencyKeys(nil), lullhttp.With(lull.WithRand(middle)))
		resultOf(t, must.Have(client.Post(n.URL+"/pay", "text/plain", strings.NewReader("100")))).replays(t, 201, "receipt")
		c.times(t, 1)
		// The first attempt has timed out. The answers to the others ask for 2 s, and so
		// the third of them comes when it is done, with middling luck.
		check.Slices(t, n.statuses, []int{409, 409, 201}, "the client saw")
	})
}

// middle is the middle of all random draws.
func middle() uint64 { return 1 << 63 }

// The client does not send again what is of no use.
func TestLullsClientStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t, idempotency.MemoryStoreConfig{})
		interrupt(t, store, request("k"))
		client, n := clientOf(t, newRig(t, store, idempotency.Config{}).m.Wrap(&counter{}), lull.Policy{})
		for _, test := range []struct{ body, problem string }{{"100", "outcome-unknown"}, {"101", "key-reused"}} {
			n.statuses = nil
			req, _ := http.NewRequest("POST", n.URL+"/pay", strings.NewReader(test.body))
			req.Header.Set("Authorization", "Bearer alice")
			req.Header.Set("Idempotency-Key", `"k"`)
			if got := resultOf(t, must.Have(client.Do(req))); got.problem != test.problem || len(n.statuses) != 1 {
				t.Errorf("%s: %+v after %v, want one attempt", test.problem, got, n.statuses)
			}
		}
	})
}

// What docs/servers.md shows, as it stands there.

type accountKey struct{}

func account(r *http.Request) (string, bool) {
	id, ok := r.Context().Value(accountKey{}).(string)
	return id, ok
}

func guide(mux *http.ServeMux, authenticate func(http.Handler) http.Handler, payments http.Handler) error {
	store, err := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{}) // or one of those below
	if err != nil {
		return err
	}
	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithScope(account))
	if err != nil {
		return err
	}
	mux.Handle("POST /payments", authenticate(keys.Wrap(payments)))
	return nil
}

// The guide's example serves whom it authenticates, by a cookie as well as by a token.
func TestTheGuidesExample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		c := &counter{}
		must.Succeed(guide(mux, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				session, err := r.Cookie("session")
				if err != nil {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, session.Value)))
			})
		}, c))
		by := func(session string) result {
			req := httptest.NewRequest("POST", "/payments", strings.NewReader("100"))
			req.Header.Set("Idempotency-Key", "k")
			if session != "" {
				req.AddCookie(&http.Cookie{Name: "session", Value: session})
			}
			return send(t, mux, req)
		}
		by("alice").ran(t, 201, "receipt 1")
		by("alice").replays(t, 201, "receipt 1")
		by("bob").ran(t, 201, "receipt 2")
		check.Equal(t, by("").status, 401, "status for nobody")
	})
}

// For those who read only half of the guide: a refusal for want of a caller is logged, and
// the text names what to do.
func TestRule21ARefusalForWantOfACallerIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			opts []idempotency.Option
			says []string
		}{
			"no option":   {nil, []string{"Authorization", "WithScope", "SharedScope"}},
			"a bad scope": {[]idempotency.Option{idempotency.WithScope(account)}, []string{"WithScope", "authentication"}},
		} {
			var errs []error
			r := newRig(t, nil, idempotency.Config{}, append(c.opts, idempotency.WithObserver(func(_ context.Context, e idempotency.Event) {
				errs = append(errs, e.Err)
			}))...)
			req := request("k")
			req.Header.Del("Authorization")
			send(t, r.m.Wrap(&counter{}), req).is(t, 400, "no-caller")
			r.saw("refused-no-caller")
			if len(errs) != 1 {
				t.Fatalf("%s: a second observer got %v", name, errs)
			}
			for _, s := range c.says {
				if !strings.Contains(fmt.Sprint(errs[0]), s) {
					t.Errorf("%s: %v does not name %s", name, errs[0], s)
				}
			}
		}
	})
}
