package idempotency_test

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// The rules of draft-ietf-httpapi-idempotency-key-header, against a running server. Each
// row is a request; those of one test share the store.
func TestDraft(t *testing.T) {
	type row struct {
		name         string
		method, path string // POST /pay if empty
		keys         []string
		caller       string // "Bearer alice" if empty, "-" for none
		body         string
		status       int
		problem      string
		replayed     bool
		ran          bool
		response     string // if not empty
		headers      map[string]string
	}
	for _, test := range []struct {
		name   string
		config idempotency.Config
		rows   []row
	}{
		{"first, retry, and reuse", idempotency.Config{Documentation: "https://api.example.com/keys"}, []row{
			{name: "2: first time", keys: []string{`"k1"`}, body: "100", status: 201, ran: true, response: "POST /pay 100"},
			{name: "2: duplicate", keys: []string{`"k1"`}, body: "100", status: 201, replayed: true, response: "POST /pay 100"},
			{name: "bare", keys: []string{`k1`}, body: "100", status: 201, replayed: true},
			{name: "spaces around", keys: []string{` "k1"	`}, body: "100", status: 201, replayed: true},
			{name: "2.7: other payload", keys: []string{`"k1"`}, body: "101", status: 422, problem: "key-reused",
				headers: map[string]string{"Link": `<https://api.example.com/keys>; rel="describedby"; type="text/html"`, "Content-Language": "en", "X-Should-Retry": "false"}},
			{name: "no payload", keys: []string{`"k1"`}, status: 422, problem: "key-reused"},
			{name: "other target", path: "/refund", keys: []string{`"k1"`}, body: "100", status: 422, problem: "key-reused"},
			{name: "other query", path: "/pay?twice", keys: []string{`"k1"`}, body: "100", status: 422, problem: "key-reused"},
			{name: "other method", method: "PATCH", keys: []string{`"k1"`}, body: "100", status: 422, problem: "key-reused"},
			{name: "another caller has its own keys", caller: "Bearer bob", keys: []string{`"k1"`}, body: "100", status: 201, ran: true},
			{name: "and its own responses", caller: "Bearer bob", keys: []string{`"k1"`}, body: "100", status: 201, replayed: true},
			{name: "even with another payload", caller: "Bearer carol", keys: []string{`"k1"`}, body: "5", status: 201, ran: true},
			{name: "another key", keys: []string{`"k2"`}, body: "100", status: 201, ran: true},
			{name: "keys are compared exactly", keys: []string{`"K2"`}, body: "100", status: 201, ran: true},
			{name: "a key with a quote", keys: []string{`"a\"b\\c, d; e"`}, body: "100", status: 201, ran: true},
			{name: "and again", keys: []string{`"a\"b\\c, d; e"`}, body: "100", status: 201, replayed: true},
		}},
		{"unusable keys", idempotency.Config{MaxKey: 10, Documentation: "https://api.example.com/keys"}, []row{
			{name: "2.1: missing", status: 400, problem: "key-missing", headers: map[string]string{"Link": `<https://api.example.com/keys>; rel="describedby"; type="text/html"`}},
			{name: "missing, unknown method", method: "BREW", status: 400, problem: "key-missing"},
			{name: "several", keys: []string{`"a"`, `"a"`}, status: 400, problem: "key-invalid"},
			{name: "a list", keys: []string{`"a", "b"`}, status: 400, problem: "key-invalid"},
			{name: "empty", keys: []string{``}, status: 400, problem: "key-invalid"},
			{name: "as long as may be", keys: []string{`"1234567890"`}, status: 201, ran: true},
			{name: "too long", keys: []string{`"12345678901"`}, status: 400, problem: "key-too-long"},
			{name: "nobody's key", caller: "-", keys: []string{`"k"`}, status: 400, problem: "no-caller"},
		}},
		{"which requests", idempotency.Config{}, []row{
			{name: "GET", method: "GET", status: 201, ran: true},
			{name: "GET with a key", method: "GET", keys: []string{`"k"`}, status: 201, ran: true},
			{name: "GET with a key, again", method: "GET", keys: []string{`"k"`}, status: 201, ran: true},
			{name: "GET with a bad key", method: "GET", keys: []string{`"k`}, caller: "-", status: 201, ran: true},
			{name: "OPTIONS", method: "OPTIONS", status: 201, ran: true},
			{name: "PUT", method: "PUT", body: "1", status: 201, ran: true, caller: "-"},
			{name: "DELETE", method: "DELETE", status: 201, ran: true},
			{name: "DELETE with a key", method: "DELETE", keys: []string{`"k"`}, status: 201, ran: true},
			{name: "DELETE with a key, again", method: "DELETE", keys: []string{`"k"`}, status: 201, replayed: true},
		}},
		{"optional", idempotency.Config{Optional: true}, []row{
			{name: "missing", body: "1", status: 201, ran: true},
			{name: "missing, twice", body: "1", status: 201, ran: true},
			{name: "bad", keys: []string{`"`}, status: 400, problem: "key-invalid"},
			{name: "there", keys: []string{`"k"`}, status: 201, ran: true},
			{name: "there, twice", keys: []string{`"k"`}, status: 201, replayed: true},
		}},
		{"bodies", idempotency.Config{MaxBody: 8}, []row{
			{name: "as long as may be", keys: []string{`"k"`}, body: "12345678", status: 201, ran: true, response: "POST /pay 12345678"},
			{name: "too long", keys: []string{`"l"`}, body: "123456789", status: 413, problem: "body-too-large"},
			{name: "the key is still free", keys: []string{`"l"`}, body: "1", status: 201, ran: true},
			{name: "too long beats reused", keys: []string{`"l"`}, body: "123456789", status: 413, problem: "body-too-large"},
			{name: "much too long", keys: []string{`"m"`}, body: strings.Repeat("x", 1<<20), status: 413, problem: "body-too-large"},
			{name: "without a key it is nobody's business", method: "PUT", body: "123456789", status: 201, ran: true, response: "PUT /pay 123456789"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				handler := func(w http.ResponseWriter, r *http.Request) {
					ran++
					b, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					w.WriteHeader(201)
					io.WriteString(w, r.Method+" "+r.URL.Path+" "+string(b))
				}
				s := memnet.NewServer(t, newRig(t, nil, test.config).m.Wrap(http.HandlerFunc(handler)))
				for _, row := range test.rows {
					req := must.Have(http.NewRequest(cmp.Or(row.method, "POST"), s.URL+cmp.Or(row.path, "/pay"), strings.NewReader(row.body)))
					for _, k := range row.keys {
						req.Header.Add("Idempotency-Key", k)
					}
					if row.caller != "-" {
						req.Header.Set("Authorization", cmp.Or(row.caller, "Bearer alice"))
					}
					ran = 0
					got := resultOf(t, must.Have(s.Client().Do(req)))
					if got.status != row.status || got.problem != row.problem || got.replayed != row.replayed || (ran == 1) != row.ran || ran > 1 {
						t.Errorf("%s: %d %q, replayed %v, ran %d times (%.100s); want %d %q, replayed %v, ran %v", row.name, got.status, got.problem, got.replayed, ran, got.body, row.status, row.problem, row.replayed, row.ran)
					}
					if row.response != "" && strings.TrimSpace(got.body) != row.response {
						t.Errorf("%s: body %q, want %q", row.name, got.body, row.response)
					}
					for name, want := range row.headers {
						check.Equal(t, got.header.Get(name), want, "%s: %s", row.name, name)
					}
				}
			})
		})
	}
}

// Problems state the limits, so that a client can keep to them.
func TestProblemsSayLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, nil, idempotency.Config{MaxKey: 10, MaxBody: 8}).m.Wrap(&counter{})
		for _, test := range []struct {
			req    *http.Request
			member string
			want   float64
		}{
			{requestOf("POST", "/pay", "12345678901", "1"), "limit", 10},
			{requestOf("POST", "/pay", "k", "123456789"), "limit", 8},
			{requestOf("POST", "/pay", "", "1"), "retention", 86400},
		} {
			if got := send(t, h, test.req); got.details[test.member] != test.want {
				t.Errorf("%s has no %q of %v", got.body, test.member, test.want)
			}
		}
	})
}

func TestSharedScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		h := newRig(t, nil, idempotency.Config{}, idempotency.WithScope(idempotency.SharedScope)).m.Wrap(c)
		anonymous := request("k")
		anonymous.Header.Del("Authorization")
		send(t, h, anonymous).ran(t, 201, "receipt 1")
		send(t, h, request("k")).replays(t, 201, "receipt 1")
		c.times(t, 1)
	})
}

// An empty Authorization identifies nobody.
func TestEmptyAuthorizationIsNoCaller(t *testing.T) {
	h := newRig(t, nil, idempotency.Config{}).m.Wrap(&counter{})
	req := request("k")
	req.Header["Authorization"] = []string{""}
	send(t, h, req).is(t, 400, "no-caller")
}

// A body that is announced as too long is not read: a client that expects 100-continue need
// not send it.
func TestTooLongBodyIsNotRead(t *testing.T) {
	h := newRig(t, nil, idempotency.Config{MaxBody: 8}).m.Wrap(&counter{})
	req := request("k")
	req.ContentLength = 9
	req.Body = io.NopCloser(iotest.ErrReader(errors.New("the body was read")))
	send(t, h, req).is(t, 413, "body-too-large")
	req.ContentLength = -1
	send(t, h, req).is(t, 400, "body-unreadable")
}

// A body that somebody has read already would make all payloads equal.
func TestConsumedBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		h := newRig(t, nil, idempotency.Config{}).m.Wrap(c)
		s := memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			h.ServeHTTP(w, r)
		}))
		resultOf(t, must.Have(s.Client().Do(clientRequest(s, "k")))).is(t, 400, "body-unreadable")
		c.times(t, 0)
	})
}
