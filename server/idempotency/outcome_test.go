package idempotency_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/server/idempotency"
)

type declaration struct {
	name string
	make func(context.Context)
}

var declarations = []declaration{
	{"nothing", func(context.Context) {}},
	{"no effect", idempotency.NoEffect},
	{"committed", idempotency.Committed},
	{"committed, then no effect", func(ctx context.Context) { idempotency.Committed(ctx); idempotency.NoEffect(ctx) }},
	{"no effect, then committed", func(ctx context.Context) { idempotency.NoEffect(ctx); idempotency.Committed(ctx) }},
}

// The state of a key when the handler has answered, for every status and every
// declaration: k recorded, r released, u unknown.
func TestOutcomes(t *testing.T) {
	refusals := []int{408, 425, 429, 503} // the latter two with Retry-After
	others := []int{200, 201, 202, 204, 303, 304, 400, 401, 403, 404, 409, 410, 422, 451}
	failures := []int{500, 501, 502, 504, 507, 599}
	bare := []int{429, 503}    // without
	rule := map[string]string{ // status class: outcome for each declaration
		"other":                   "krkkk",
		"failure":                 "krkkk",
		"refusal":                 "rrkkk",
		"refusal, strict":         "krkkk",
		"other, resumed":          "krkkk",
		"failure, resumed":        "urkkk",
		"refusal, resumed":        "urkkk",
		"refusal, strict resumed": "urkkk",
		"panic":                   "urnnn",
		"panic, resumed":          "urnnn",
	}
	check := func(class string, status int, strict, resumed bool) {
		for i, d := range declarations {
			t.Run(fmt.Sprint(class, "/", status, "/", d.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newMemory(t, idempotency.MemoryStoreConfig{})
					if resumed {
						interrupt(t, store, request("k"))
					}
					r := newRig(t, store, idempotency.Config{Strict: strict, Resume: resumed})
					c := &counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
						d.make(r.Context())
						if status == 0 {
							panic("boom")
						}
						if strings.HasPrefix(class, "refusal") {
							w.Header().Set("Retry-After", "1")
						}
						w.WriteHeader(status)
					}}
					func() {
						defer func() { recover() }()
						send(t, r.m.Wrap(c), request("k")).is(t, status, "")
					}()
					// Another server, which does not resume, sees the key's state.
					after := &counter{}
					got := send(t, newRig(t, store, idempotency.Config{}).m.Wrap(after), request("k"))
					became := "?"
					switch {
					case got.replayed && got.status == status:
						became = "k"
					case got.problem == "outcome-unknown":
						became = "u"
					case got.problem == "response-not-kept":
						became = "n"
					case after.n == 1:
						became = "r"
					}
					check.Equal(t, became, rule[class][i:i+1], "the key after %d %s", got.status, got.problem)
					c.times(t, 1)
				})
			})
		}
	}
	for _, status := range others {
		check("other", status, false, false)
		check("other", status, true, false)
		check("other, resumed", status, false, true)
	}
	for _, status := range failures {
		check("failure", status, false, false)
		check("failure", status, true, false)
		check("failure, resumed", status, false, true)
	}
	for _, status := range refusals {
		check("refusal", status, false, false)
		check("refusal, strict", status, true, false)
		check("refusal, resumed", status, false, true)
		check("refusal, strict resumed", status, true, true)
	}
	for _, status := range bare {
		check("failure", status, false, false)
		check("failure", status, true, false)
		check("failure, resumed", status, false, true)
	}
	check("panic", 0, false, false)
	check("panic", 0, true, false)
	check("panic, resumed", 0, false, true)
}

// interrupt leaves the request's key as a process does that dies at work on it.
func interrupt(t testing.TB, store idempotency.Store, req *http.Request) {
	t.Helper()
	h := newRig(t, store, idempotency.Config{}).m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("killed") }))
	if panics(t, h, req) == nil {
		t.Error("the handler's panic did not come up")
	}
}

// A panic continues as it is, with the stack on which it began. The response is left to the
// code that recovers it.
func TestPanicGoesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, idempotency.Config{})
		h := r.m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			w.Write([]byte("half a respon"))
			panic(http.ErrAbortHandler)
		}))
		w := httptest.NewRecorder()
		func() {
			defer func() {
				check.Equal[any](t, recover(), http.ErrAbortHandler, "the panic that came up")
				w.WriteHeader(500)
			}()
			h.ServeHTTP(w, request("k"))
		}()
		if w.Code != 500 || w.Body.Len() != 0 {
			t.Errorf("a response was sent before the panic: %d %q", w.Code, w.Body)
		}
		r.saw("abandoned")
		send(t, h, request("k")).is(t, 409, "outcome-unknown")
		r.saw("refused-unknown")
	})
}

// Where no key protects the request, declarations are of no use and do no harm.
func TestDeclarationsWithoutKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, nil, idempotency.Config{Optional: true}).m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			idempotency.NoEffect(r.Context())
			idempotency.Committed(r.Context())
			if idempotency.KeyedRequestFrom(r.Context()) != nil {
				t.Error("there is an attempt though there is no key")
			}
		}))
		send(t, h, requestOf("POST", "/", "", "")).ran(t, 200, "")
	})
}

func TestAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t, idempotency.MemoryStoreConfig{})
		var got []*idempotency.KeyedRequest
		h := newRig(t, store, idempotency.Config{Resume: true}).m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, idempotency.KeyedRequestFrom(r.Context()))
		}))
		send(t, h, request(`"a\"b"`)).ran(t, 200, "")
		interrupt(t, store, request("c"))
		send(t, h, request("c")).ran(t, 200, "")
		if len(got) != 2 || got[0].Key != `a"b` || got[0].Resumed || got[1].Key != "c" || !got[1].Resumed || got[0].Token == got[1].Token || got[0].Token == (idempotency.FencingToken{}) {
			t.Errorf("attempts: %+v", got)
		}
	})
}
