package lullhttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/lullhttp"
)

// script answers each request as the next of its steps has it, the last one for ever.
func script(t testing.TB, steps ...any) *recorder {
	base := &recorder{}
	base.answer = func(req *http.Request) *http.Response {
		switch step := steps[min(len(base.reqs), len(steps))-1].(type) {
		case int:
			return &http.Response{StatusCode: step, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(fmt.Sprint("body ", len(base.reqs)))), Request: req}
		case string:
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(step)), Request: req}
		case http.Header:
			return &http.Response{StatusCode: 429, Header: step, Body: http.NoBody, Request: req}
		}
		t.Fatal("no such step")
		return nil
	}
	return base
}

// A classifier sees status, headers, route and the beginning of the body, and what it
// leaves alone means what it always means.
func TestClassifierOfResponses(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	classify := lullhttp.WithClassifier(func(resp *http.Response, err error) lull.Verdict {
		switch {
		case err != nil:
			return lull.Verdict{}
		case resp.StatusCode == 404 && resp.Request.URL.Path == "/eventually":
			return lull.Verdict{Kind: lull.KindTransient, Code: "not_yet"}
		case resp.StatusCode == 429 && resp.Header.Get("Retry-After") == "":
			return lull.Verdict{Kind: lull.KindPermanent}
		case resp.StatusCode == 500:
			return lull.Verdict{Kind: lull.KindSuccess}
		case bytes.HasPrefix(lullhttp.Peek(resp, 10), []byte("<Error>")):
			return lull.Verdict{Kind: lull.KindTransient}
		}
		return lull.Verdict{}
	})
	for _, c := range []struct {
		name  string
		path  string
		steps []any
		want  string // status, attempts, reason, code
		body  string
	}{
		{"by route and status", "/eventually", []any{404, 404, 200}, "200 3 success ", "body 3"},
		{"another route", "/", []any{404, 200}, "404 1 permanent 404", "body 1"},
		{"by the body", "/", []any{"<Error>later</Error>", "<Error>", "<Result>" + long}, "200 3 success ", "<Result>" + long},
		{"by the body, to the end", "/", []any{"<Error>" + long}, "200 3 attempts_exhausted 200", "<Error>" + long},
		{"by a header that is not there", "/", []any{http.Header{}, 200}, "429 1 permanent 429", ""},
		{"by one that is", "/", []any{http.Header{"Retry-After": {"0"}}, 200}, "200 2 success ", "body 2"},
		{"success", "/", []any{500, 200}, "500 1 success ", "body 1"},
		{"left alone", "/", []any{503, 503, 200}, "200 3 success ", "body 3"},
	} {
		run(t, c.name, func(t *testing.T) {
			base := script(t, c.steps...)
			p := eager
			p.Attempts = 3
			resp, err := client(t, p, classify, lullhttp.WithBase(base)).Get("http://example.test" + c.path)
			got := read(t, resp, err)
			o := lullhttp.OutcomeOf(resp)
			if o.Reason == engine.Success {
				o.Verdict.Code = ""
			}
			if s := fmt.Sprint(resp.StatusCode, o.Attempts, " ", o.Reason, " ", o.Verdict.Code); strings.Join(strings.Fields(s), " ") != strings.TrimSpace(c.want) || got != c.body {
				t.Errorf("%s, %d bytes; want %s, %d bytes", s, len(got), c.want, len(c.body))
			}
		})
	}
}

// The server's word on when to come back counts with the classifier's, unless that names
// a wait; and an error is classified, too.
func TestClassifierAndHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			after  time.Duration
			reason lull.Reason
			want   time.Duration
		}{
			{0, engine.HintTooLong, time.Hour},
			{3 * time.Hour, engine.HintTooLong, 3 * time.Hour},
			{time.Nanosecond, engine.AttemptsExhausted, time.Nanosecond},
		} {
			base := script(t, http.Header{"Retry-After": {"3600"}})
			p := eager
			p.Attempts = 2
			resp, err := client(t, p, lullhttp.WithBase(base), lullhttp.WithClassifier(func(*http.Response, error) lull.Verdict {
				return lull.Verdict{Kind: lull.KindRateLimited, Code: "quota", After: c.after}
			})).Get("http://example.test/")
			read(t, resp, err)
			if o := lullhttp.OutcomeOf(resp); o.Reason != c.reason || o.Verdict.After != c.want || o.Verdict.Code != "quota" {
				t.Errorf("%v: %+v", c.after, o)
			}
		}
		odd := errors.New("odd")
		n := 0
		base := roundTripper(func(*http.Request) (*http.Response, error) { n++; return nil, odd })
		for kind, want := range map[engine.VerdictKind]int{lull.KindTransient: 2, lull.KindPermanent: 1, lull.KindSuccess: 1, 0: 1} {
			n = 0
			p := eager
			p.Attempts = 2
			tr := client(t, p, lullhttp.WithBase(base), lullhttp.WithClassifier(func(resp *http.Response, err error) lull.Verdict {
				if resp != nil || err != odd {
					t.Errorf("%v, %v", resp, err)
				}
				return lull.Verdict{Kind: kind}
			})).Transport
			_, err := tr.RoundTrip(get(t))
			if n != want || !errors.Is(err, odd) || (kind == lull.KindSuccess) != (err == odd) {
				t.Errorf("%v: %d attempts, %v", kind, n, err)
			}
		}
	})
}

// Before each retry the hook gets a request that it may change, and what the attempt
// before came to; the caller's request stays as it was (rule 7).
func TestRule07BeforeRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(t, 503, 401, 200)
		var seen []string
		cl := client(t, eager, lullhttp.WithBase(base),
			lullhttp.WithAttemptHeader(""), lullhttp.WithTimeoutHeader(""),
			lullhttp.WithClassifier(func(resp *http.Response, _ error) lull.Verdict {
				if resp.Request.Header.Get("Authorization") != "token 1" {
					t.Error("a classifier sees another request than the caller's")
				}
				if resp.StatusCode == 401 {
					return lull.Verdict{Kind: lull.KindTransient}
				}
				return lull.Verdict{}
			}),
			lullhttp.WithBeforeRetry(func(next *http.Request, last error) error {
				a, _ := lull.AttemptFrom(next.Context())
				var status *lullhttp.StatusError
				errors.As(last, &status)
				seen = append(seen, fmt.Sprint(a.Number, status.StatusCode))
				next.Header.Set("Authorization", fmt.Sprint("token ", a.Number))
				next.URL.RawQuery = fmt.Sprint("sig=", a.Number)
				return nil
			}))
		req, _ := http.NewRequest("GET", "http://example.test/?sig=1", nil)
		req.Header.Set("Authorization", "token 1")
		resp, err := cl.Do(req)
		read(t, resp, err)
		var sent []string
		for _, r := range base.reqs {
			sent = append(sent, r.Header.Get("Authorization")+" "+r.URL.RawQuery)
		}
		if got := fmt.Sprint(sent); got != "[token 1 sig=1 token 2 sig=2 token 3 sig=3]" {
			t.Error(got)
		}
		if got := fmt.Sprint(seen); got != "[2 503 3 401]" {
			t.Error(got)
		}
		if req.Header.Get("Authorization") != "token 1" || req.URL.RawQuery != "sig=1" {
			t.Errorf("the caller's request became %v, %v", req.URL, req.Header)
		}
	})
}

// An error of the hook ends the call with that error, and the last real one is kept. The
// dependency is not to blame for it, nor to be praised.
func TestBeforeRetryFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expired := errors.New("no token to be had")
		for _, p := range []lull.Policy{eager, {Hedge: hedge.Config{Attempts: 2}}} {
			base := script(t, 503)
			cl := client(t, p, lullhttp.WithBase(base), lullhttp.WithBeforeRetry(func(*http.Request, error) error { return expired }))
			body := &trackedBody{r: strings.NewReader("x")}
			again := &trackedBody{r: strings.NewReader("x")}
			req, _ := http.NewRequest("PUT", "http://example.test/", body)
			req.GetBody = func() (io.ReadCloser, error) { return again, nil }
			_, err := cl.Do(req)
			e, ok := errors.AsType[*lull.Error](err)
			if !ok || !errors.Is(err, expired) || e.Reason != engine.Permanent || e.Verdict.Code != "before_retry" || len(base.reqs) != 1 {
				t.Fatalf("%v; %d requests", err, len(base.reqs))
			}
			if status, ok := errors.AsType[*lullhttp.StatusError](err); p.Hedge.Attempts == 0 && (!ok || status.StatusCode != 503) {
				t.Errorf("the last real failure is lost: %v", err)
			}
			if body.closed.Load() == 0 || again.closed.Load() == 0 {
				t.Error("a body is left open")
			}
		}
	})
}

// With WithHinted429 a 429 is repeated if the server gives a hint of any kind. Other statuses, and a
// 429 that the user has decided about, are as without it.
func TestA429WithoutAHintIsFinal(t *testing.T) {
	overrule := lullhttp.WithStatus(429, lull.KindTransient)
	for _, c := range []struct {
		status       int
		header, body string
		option       lullhttp.Option
		attempts     int
		reason       lull.Reason
	}{
		{429, "", "", nil, 1, engine.Permanent},
		{429, "Retry-After: soon", "", nil, 1, engine.Permanent},
		{429, "Retry-After: 1", "", nil, 3, engine.AttemptsExhausted},
		{429, "Retry-After: 0", "", nil, 3, engine.AttemptsExhausted},
		{429, "X-Ratelimit-Reset: 1", "", nil, 3, engine.AttemptsExhausted},
		{429, "X-Should-Retry: true", "", nil, 3, engine.AttemptsExhausted},
		{429, "X-Should-Retry: false", "", nil, 1, engine.Overloaded},
		{429, "Content-Type: application/problem+json", `{"retry_after": 1}`, nil, 3, engine.AttemptsExhausted},
		{429, "", "", overrule, 3, engine.AttemptsExhausted},
		{503, "", "", nil, 3, engine.AttemptsExhausted},
		{529, "", "", nil, 3, engine.AttemptsExhausted},
	} {
		handler := func(w http.ResponseWriter, _ *http.Request) {
			if key, value, ok := strings.Cut(c.header, ": "); ok {
				w.Header().Set(key, value)
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}
		opts := []lullhttp.Option{lullhttp.WithHinted429()}
		if c.option != nil {
			opts = append(opts, c.option)
		}
		inBubble(t, eager, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
			resp := must(client.Get(host))
			resp.Body.Close()
			o := lullhttp.OutcomeOf(resp)
			if o.Attempts != c.attempts || o.Reason != c.reason || o.Verdict.Code != strconv.Itoa(c.status) {
				t.Errorf("%d %s: %+v", c.status, c.header, o)
			}
		}, opts...)
	}
}

func ExampleWithHinted429() {
	server := newServer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	defer server.Close()
	client, err := lullhttp.NewClient(quick, lullhttp.WithHinted429())
	if err != nil {
		panic(err)
	}
	resp, err := client.Get(server.URL)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	o := lullhttp.OutcomeOf(resp)
	fmt.Println(resp.StatusCode, o.Attempts, o.Reason)
	// Output: 429 1 permanent
}
