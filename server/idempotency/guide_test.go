package idempotency_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull/server/idempotency"
)

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

// The guide's example serves callers that it authenticates, by a cookie as well as by a token.
func TestTheGuidesExample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		c := &counter{}
		err := guide(mux, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				session, err := r.Cookie("session")
				if err != nil {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, session.Value)))
			})
		}, c)
		if err != nil {
			t.Fatal(err)
		}
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
		if got := by(""); got.status != 401 {
			t.Errorf("nobody: %d", got.status)
		}
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
