package lullhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/lullhttp"
)

// recorder is a base transport that answers with a status, and keeps what it was sent.
type recorder struct {
	status int
	reqs   []*http.Request
	bodies []string
	answer func(*http.Request) *http.Response // if not nil, and if it returns one
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.reqs = append(r.reqs, req)
	if req.Body != nil {
		b, _ := io.ReadAll(req.Body)
		req.Body.Close()
		r.bodies = append(r.bodies, string(b))
	}
	if r.answer != nil {
		if resp := r.answer(req); resp != nil {
			return resp, nil
		}
	}
	return &http.Response{StatusCode: r.status, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// Rule 4: POST and PATCH are not repeated without an Idempotency-Key. And the options with which they are, or are refused,
// and with which a GET is not repeated.
func TestRule04WhatIsSaidOfARequest(t *testing.T) {
	keys := lullhttp.WithIdempotencyKeys(func() string { return "made" })
	route := func(pattern string, opts ...lull.CallOption) lullhttp.Option {
		return lullhttp.WithRoute(pattern, opts...)
	}
	of := func(opts ...lullhttp.Option) []lullhttp.Option { return opts }
	said := func(opts ...lull.CallOption) []lull.CallOption { return opts }
	for _, c := range []struct {
		name     string
		method   string
		header   http.Header
		options  []lullhttp.Option
		call     []lull.CallOption
		attempts int
		reason   lull.Reason
		key      string // that was sent
	}{
		{"idempotent", "GET", nil, nil, nil, 3, engine.AttemptsExhausted, ""},
		{"idempotent", "HEAD", nil, nil, nil, 3, engine.AttemptsExhausted, ""},
		{"idempotent", "OPTIONS", nil, nil, nil, 3, engine.AttemptsExhausted, ""},
		{"idempotent", "TRACE", nil, nil, nil, 3, engine.AttemptsExhausted, ""},
		{"idempotent", "PUT", nil, nil, nil, 3, engine.AttemptsExhausted, ""},
		{"idempotent", "DELETE", nil, nil, nil, 3, engine.AttemptsExhausted, ""},
		{"not idempotent", "POST", nil, nil, nil, 1, engine.NotIdempotent, ""},
		{"not idempotent", "PATCH", nil, nil, nil, 1, engine.NotIdempotent, ""},
		{"unknown", "REFUND", nil, nil, nil, 1, engine.NotIdempotent, ""},
		{"methods are case-sensitive", "get", nil, nil, nil, 1, engine.NotIdempotent, ""},
		{"a key", "POST", http.Header{"Idempotency-Key": {"mine"}}, nil, nil, 3, engine.AttemptsExhausted, "mine"},
		{"a key beside made keys", "POST", http.Header{"Idempotency-Key": {"mine"}}, of(keys), nil, 3, engine.AttemptsExhausted, "mine"},
		{"a made key", "POST", nil, of(keys), nil, 3, engine.AttemptsExhausted, "made"},
		{"a made key", "PATCH", nil, of(keys), nil, 3, engine.AttemptsExhausted, "made"},
		{"no key is made", "GET", nil, of(keys), nil, 3, engine.AttemptsExhausted, ""},
		{"net/http's own word", "POST", http.Header{"Idempotency-Key": nil}, nil, nil, 3, engine.AttemptsExhausted, ""},
		{"net/http's own word beside made keys", "POST", http.Header{"Idempotency-Key": {}}, of(keys), nil, 3, engine.AttemptsExhausted, ""},
		{"net/http's other word", "POST", http.Header{"X-Idempotency-Key": nil}, nil, nil, 3, engine.AttemptsExhausted, ""},
		{"another header", "POST", http.Header{"X-Idempotency-Key": {"x"}}, of(keys), nil, 3, engine.AttemptsExhausted, ""},
		{"the request", "POST", nil, nil, said(lull.Idempotent()), 3, engine.AttemptsExhausted, ""},
		{"the request, beside made keys", "POST", nil, of(keys), said(lull.Idempotent()), 3, engine.AttemptsExhausted, ""},
		{"the request, the other way", "POST", nil, of(keys), said(lull.NotIdempotent()), 1, engine.NotIdempotent, ""},
		{"a GET with effects", "GET", nil, nil, said(lull.NotIdempotent()), 1, engine.NotIdempotent, ""},
		{"one attempt", "GET", nil, nil, said(lull.Once()), 1, engine.AttemptsExhausted, ""},
		{"one attempt, with a made key", "POST", nil, of(keys), said(lull.Once()), 1, engine.AttemptsExhausted, "made"},
		{"a name says nothing", "POST", nil, of(keys), said(lull.Operation("x")), 3, engine.AttemptsExhausted, "made"},
		{"the route", "POST", nil, of(route("POST example.test/{index}/_search", lull.Idempotent())), nil, 3, engine.AttemptsExhausted, ""},
		{"another route", "POST", nil, of(route("POST example.test/{index}/_bulk", lull.Idempotent())), nil, 1, engine.NotIdempotent, ""},
		{"the host", "POST", nil, of(route("example.test", lull.Idempotent())), nil, 3, engine.AttemptsExhausted, ""},
		{"the more specific route", "POST", nil, of(route("example.test", lull.Idempotent()), route("/{i}/_search", lull.NotIdempotent()), route("example.test/{i}/_search", lull.NotIdempotent())), nil, 1, engine.NotIdempotent, ""},
		{"the request before the route", "POST", nil, of(route("example.test", lull.Idempotent())), said(lull.NotIdempotent()), 1, engine.NotIdempotent, ""},
		{"the route before a key", "POST", http.Header{"Idempotency-Key": {"mine"}}, of(route("example.test", lull.NotIdempotent())), nil, 1, engine.NotIdempotent, "mine"},
		{"keys required: a key", "POST", http.Header{"Idempotency-Key": {"mine"}}, of(lullhttp.WithKeysRequired()), nil, 3, engine.AttemptsExhausted, "mine"},
		{"keys required: made", "POST", nil, of(lullhttp.WithKeysRequired(), keys), nil, 3, engine.AttemptsExhausted, "made"},
		{"keys required: GET", "GET", nil, of(lullhttp.WithKeysRequired()), nil, 3, engine.AttemptsExhausted, ""},
		{"keys required: idempotent", "POST", nil, of(lullhttp.WithKeysRequired()), said(lull.Idempotent()), 3, engine.AttemptsExhausted, ""},
		{"keys required: not idempotent, knowingly", "POST", nil, of(lullhttp.WithKeysRequired()), said(lull.NotIdempotent()), 1, engine.NotIdempotent, ""},
	} {
		run(t, c.name+", "+c.method, func(t *testing.T) {
			base := &recorder{status: 503}
			p := eager
			p.Attempts = 3
			cl := client(t, p, append(c.options, lullhttp.WithBase(base))...)
			ctx := t.Context()
			if c.call != nil {
				ctx = lullhttp.WithCall(ctx, c.call...)
			}
			req, _ := http.NewRequestWithContext(ctx, c.method, "http://Example.test:80/books/_search", strings.NewReader("q"))
			if c.header != nil {
				req.Header = c.header.Clone()
			}
			resp, err := cl.Do(req)
			read(t, resp, err)
			if got := lullhttp.OutcomeOf(resp); got.Attempts != c.attempts || got.Reason != c.reason {
				t.Errorf("%d attempts, %v; want %d, %v", got.Attempts, got.Reason, c.attempts, c.reason)
			}
			for _, sent := range base.reqs {
				check.Equal(t, sent.Header.Get("Idempotency-Key"), c.key, "sent with key")
			}
			if c.header != nil && !reflect.DeepEqual(req.Header, c.header) {
				t.Errorf("the caller's header became %v", req.Header)
			}
		})
	}
}

// A request that could not be repeated is refused before its first attempt, for those
// who ask for that, with an error that names the setting.
func TestRule04KeysRequired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &recorder{status: 200}
		cl := client(t, eager, lullhttp.WithKeysRequired(), lullhttp.WithBase(base))
		body := &trackedBody{r: strings.NewReader("x")}
		req, _ := http.NewRequest("POST", "http://user:secret@example.test/pay", body)
		_, err := cl.Do(req)
		if !errors.Is(err, lullhttp.ErrKeyRequired) || len(base.reqs) != 0 || body.closed.Load() == 0 {
			t.Fatalf("%v; %d requests; body closed: %v", err, len(base.reqs), body.closed.Load())
		}
		if text := err.Error(); !strings.Contains(text, "WithKeysRequired") || !strings.Contains(text, "POST") || strings.Contains(text, "secret") {
			t.Error(text)
		}
		if _, err := cl.Get("http://example.test/"); err != nil {
			t.Error(err)
		}
	})
}

// The options of several contexts add up. Requests of others do not have them.
func TestWithCallAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &recorder{status: 503}
		var names []string
		watch := observe(func(e lull.Event) {
			if e.Kind == event.CallEnded {
				names = append(names, e.Operation)
			}
		})
		cl := client(t, eager, lullhttp.WithObserver(watch), lullhttp.WithBase(base))
		outer := lullhttp.WithCall(t.Context(), lull.Once(), lull.Operation("outer"))
		inner := lullhttp.WithCall(outer, lull.Operation("inner"))
		sibling := lullhttp.WithCall(outer, lull.Operation("sibling"))
		for _, ctx := range []context.Context{outer, inner, sibling, t.Context()} {
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://example.test/", nil)
			must(cl.Do(req))
		}
		if got := fmt.Sprint(names, len(base.reqs)); got != "[outer inner sibling GET] 6" {
			t.Error(got)
		}
	})
}

// An operation that is declared idempotent may race. One that only has a key may not, and
// neither may one that is declared not idempotent.
func TestRaceByWhatIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			call []lull.CallOption
			want lull.Reason
		}{
			{"hedged", []lull.CallOption{lull.Idempotent()}, engine.AttemptsExhausted},
			{"not idempotent", []lull.CallOption{lull.NotIdempotent()}, engine.NotIdempotent},
			{"once", []lull.CallOption{lull.Idempotent(), lull.Once()}, engine.AttemptsExhausted},
		} {
			base := &recorder{status: 503}
			p := eager
			p.Attempts, p.Hedge = 0, hedge.Config{Attempts: 2}
			cl := client(t, p, lullhttp.WithBase(base))
			req, _ := http.NewRequestWithContext(lullhttp.WithCall(t.Context(), c.call...), "POST", "http://example.test/", strings.NewReader("x"))
			resp, err := cl.Do(req)
			read(t, resp, err)
			check.Equal(t, lullhttp.OutcomeOf(resp).Reason, c.want, "%s", c.name)
		}
	})
}

// A key is made for the servers that it was switched on for: a foreign host to which one
// of them redirects gets none, and a POST to it is not repeated.
func TestRule04NoMadeKeyForForeignHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			to  string
			key bool
		}{
			{"http://pay.test/2", true},
			{"https://PAY.test:8443/2", true},
			{"http://eu.pay.test/2", true},
			{"http://evil.test/2", false},
			{"http://notpay.test/2", false},
			{"http://test/2", false},
		} {
			made := 0
			base := &recorder{status: 503}
			base.answer = func(req *http.Request) *http.Response {
				if req.URL.Path != "/1" {
					return nil
				}
				return &http.Response{StatusCode: 307, Header: http.Header{"Location": {c.to}}, Body: http.NoBody, Request: req}
			}
			p := eager
			p.Attempts = 2
			cl := client(t, p, lullhttp.WithBase(base), lullhttp.WithIdempotencyKeys(func() string { made++; return fmt.Sprint("k", made) }))
			resp, err := cl.Post("http://pay.test/1", "text/plain", strings.NewReader("100"))
			read(t, resp, err)
			want, keys := "[k1 ]", []string{}
			if c.key {
				want = "[k1 k2 k2]"
			}
			for _, sent := range base.reqs {
				keys = append(keys, sent.Header.Get("Idempotency-Key"))
			}
			check.Equal(t, fmt.Sprint(keys), want, "redirected to %s: sent with", c.to)
			if got := lullhttp.OutcomeOf(resp).Reason; (got == engine.NotIdempotent) == c.key {
				t.Errorf("redirected to %s: %v", c.to, got)
			}
		}
	})
}

// bare adds nothing to a request: neither a header nor a timeout.
func bare() (lull.Policy, []lullhttp.Option) {
	p := eager
	p.AttemptTimeout, p.Deadline = lull.NoTimeout, lull.NoTimeout
	return p, []lullhttp.Option{lullhttp.WithAttemptHeader(""), lullhttp.WithTimeoutHeader("")}
}

// A first attempt to which nothing is added is the caller's own request; a retry has a body
// of its own even so.
func TestRule06ARetryToWhichNothingIsAddedHasItsOwnBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, opts := bare()
		base := script(t, 503, 200)
		tr := transport(t, p, append(opts, lullhttp.WithBase(base))...)
		req, _ := http.NewRequest("PUT", "http://example.test/", strings.NewReader("whole"))
		resp, err := tr.RoundTrip(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if len(base.reqs) != 2 || base.reqs[0] != req || base.reqs[1] == req {
			t.Errorf("%d requests; the first is the caller's: %v", len(base.reqs), base.reqs[0] == req)
		}
		check.Equal(t, strings.Join(base.bodies, " "), "whole whole", "the bodies")
	})
}

// The hook before a retry has the caller's header to add to, also if there is none.
func TestBeforeRetryHasTheCallersHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, header := range []http.Header{{"X-Caller": {"a"}}, nil} {
			p, opts := bare()
			base := script(t, 503, 200)
			tr := transport(t, p, append(opts, lullhttp.WithBase(base), lullhttp.WithBeforeRetry(func(next *http.Request, _ error) error {
				next.Header.Set("X-Token", "new")
				return nil
			}))...)
			req, _ := http.NewRequest("GET", "http://example.test/", nil)
			req.Header = header
			if _, err := tr.RoundTrip(req); err != nil || len(base.reqs) != 2 {
				t.Fatal(err, len(base.reqs))
			}
			got := base.reqs[1].Header
			if got.Get("X-Token") != "new" || got.Get("X-Caller") != header.Get("X-Caller") || req.Header.Get("X-Token") != "" {
				t.Errorf("the caller's %v, and the retry's %v", req.Header, got)
			}
		}
	})
}

// A classifier can report of a response that its request was not looked at: then a POST is
// repeated.
func TestRule04AClassifierThatKnowsOfNothingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for neverSent, want := range map[bool]int{true: 2, false: 1} {
			base := script(t, 503, 200)
			tr := transport(t, eager, lullhttp.WithBase(base), lullhttp.WithClassifier(func(resp *http.Response, _ error) lull.Verdict {
				if resp != nil && resp.StatusCode == 503 {
					return lull.Verdict{Kind: lull.KindTransient, NeverSent: neverSent}
				}
				return lull.Verdict{}
			}))
			req, _ := http.NewRequest("POST", "http://example.test/", strings.NewReader("x"))
			if _, err := tr.RoundTrip(req); err != nil || len(base.reqs) != want {
				t.Errorf("never sent: %v: %d requests, want %d; %v", neverSent, len(base.reqs), want, err)
			}
		}
	})
}
