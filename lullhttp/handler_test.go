package lullhttp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
)

func newHandler(t testing.TB, f http.HandlerFunc, opts ...lullhttp.HandlerOption) http.HandlerFunc {
	t.Helper()
	h := must(lullhttp.NewHandler(f, opts...))
	return h.ServeHTTP
}

// sendsTime has the client send the time to a host of which it knows nothing yet.
var sendsTime = lullhttp.WithTimeoutHeader(lullhttp.DefaultTimeoutHeader)

// The client's timeout is for the beginning of the response. Work that continues after
// that is not cut off. Work before it is.
func TestTheTimeIsForTheBeginningOfTheResponse(t *testing.T) {
	p := eager
	p.Attempts, p.AttemptTimeout = 1, 100*ms
	inBubble(t, p, newHandler(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		time.Sleep(time.Second)
		if r.Context().Err() != nil {
			t.Errorf("the rest of the response was cut off: %v", r.Context().Err())
		}
		io.WriteString(w, "the rest")
	}), func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		resp, err := cl.Get(host)
		check.Equal(t, read(t, resp, err), "the rest", "the body")
	}, sendsTime)
}

// The headers that are sent: the time from the first attempt on, and its number from the second on; nothing of the time where
// nothing bounds the attempt, and of neither where it is switched off.
func TestTheTimeAndTheNumberAreSent(t *testing.T) {
	free := eager
	free.AttemptTimeout, free.Deadline = lull.NoTimeout, lull.NoTimeout
	second := eager
	second.AttemptTimeout = time.Second
	for name, c := range map[string]struct {
		policy lull.Policy
		opts   []lullhttp.Option
		want   string // of three attempts
	}{
		"default":         {second, nil, ", Lull-Attempt 2, Lull-Attempt 3"}, // see TestTheTimeIsSentToHostsThatAskForIt
		"to all hosts":    {second, []lullhttp.Option{sendsTime}, "Lull-Timeout 1000, Lull-Timeout 1000 Lull-Attempt 2, Lull-Timeout 1000 Lull-Attempt 3"},
		"another header":  {second, []lullhttp.Option{lullhttp.WithTimeoutHeader("x-time-left")}, "X-Time-Left 1000, X-Time-Left 1000 Lull-Attempt 2, X-Time-Left 1000 Lull-Attempt 3"},
		"no time":         {second, []lullhttp.Option{lullhttp.WithTimeoutHeader("")}, ", Lull-Attempt 2, Lull-Attempt 3"},
		"no timeout":      {free, []lullhttp.Option{sendsTime}, ", Lull-Attempt 2, Lull-Attempt 3"},
		"another's count": {second, []lullhttp.Option{lullhttp.WithAttemptHeader("x-envoy-attempt-count")}, ", X-Envoy-Attempt-Count 2, X-Envoy-Attempt-Count 3"},
		"no number":       {second, []lullhttp.Option{lullhttp.WithAttemptHeader("")}, ", , "},
	} {
		var got []string
		inBubble(t, c.policy, func(w http.ResponseWriter, r *http.Request) {
			var sent []string
			for _, key := range []string{"Lull-Timeout", "X-Time-Left", "Lull-Attempt", "X-Envoy-Attempt-Count"} {
				if v := r.Header.Get(key); v != "" {
					sent = append(sent, key+" "+v)
				}
			}
			got = append(got, strings.Join(sent, " "))
			w.WriteHeader(503)
		}, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
			req, _ := http.NewRequest("GET", host, nil)
			resp, err := cl.Do(req)
			read(t, resp, err)
			if len(req.Header) > 0 {
				t.Errorf("%s: the caller's request was changed: %v", name, req.Header)
			}
		}, c.opts...)
		check.Equal(t, strings.Join(got, ", "), c.want, "%s", name)
	}
}

// Work whose caller has gone is not started.
func TestWorkOfNobodyIsNotStarted(t *testing.T) {
	ran := false
	h := newHandler(t, func(http.ResponseWriter, *http.Request) { ran = true })
	req := httptest.NewRequest("GET", "/", nil)
	req.Header.Set(lullhttp.DefaultTimeoutHeader, "0")
	w := httptest.NewRecorder()
	if h(w, req); ran || w.Code != 503 || w.Header().Get("X-Should-Retry") != "false" {
		t.Errorf("no time left: ran: %v, %d, %v", ran, w.Code, w.Header())
	}
	bounded := newHandler(t, func(http.ResponseWriter, *http.Request) { ran = true }, lullhttp.LimitTimeout(time.Second, 0))
	w = httptest.NewRecorder()
	if bounded(w, req); ran || w.Code != 503 {
		t.Errorf("no time left, with a least time: ran: %v, %d", ran, w.Code)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w = httptest.NewRecorder()
	if h(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx)); ran || w.Code != 503 {
		t.Errorf("gone: ran: %v, %d", ran, w.Code)
	}
	for _, header := range []string{"", "-1", "soon", "1.5", " 5"} {
		ran = false
		req.Header.Set(lullhttp.DefaultTimeoutHeader, header)
		if h(httptest.NewRecorder(), req); !ran {
			t.Errorf("%q: not run", header)
		}
	}
}

func TestTimeOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			opts    []lullhttp.HandlerOption
			headers string
			want    time.Duration // 0: none
		}{
			{nil, "", 0},
			{nil, "Lull-Timeout: 1500", 1500 * ms},
			{nil, "Lull-Timeout: 1500\nX-Envoy-Expected-Rq-Timeout-Ms: 700", 700 * ms},
			{nil, "X-Envoy-Expected-Rq-Timeout-Ms: 0", 0}, // a route without a timeout
			{nil, "Grpc-Timeout: 2S", 2 * time.Second},
			{nil, "Grpc-Timeout: 100m", 100 * ms},
			{nil, "Grpc-Timeout: 2M", 2 * time.Minute},
			{nil, "Grpc-Timeout: m", 0},
			{nil, "Grpc-Timeout: 5", 0},
			{nil, "Grpc-Timeout: -5m", 0},
			{nil, "Grpc-Timeout: 5s", 0},
			{nil, "Grpc-Timeout: 12345678S", 12345678 * time.Second},
			{nil, "Grpc-Timeout: 2S\nLull-Timeout: 100", 100 * ms},
			{nil, "Grpc-Timeout: 123456789S", 0}, // nine digits are too many
			{[]lullhttp.HandlerOption{lullhttp.LimitTimeout(0, time.Second)}, "", time.Second},
			{[]lullhttp.HandlerOption{lullhttp.LimitTimeout(0, time.Second)}, "Lull-Timeout: 1500", time.Second},
			{[]lullhttp.HandlerOption{lullhttp.LimitTimeout(0, time.Second)}, "Lull-Timeout: 500", 500 * ms},
			{[]lullhttp.HandlerOption{lullhttp.LimitTimeout(time.Second, 0)}, "Lull-Timeout: 5", time.Second},
			{[]lullhttp.HandlerOption{lullhttp.LimitTimeout(time.Second, 0)}, "Lull-Timeout: 1500", 1500 * ms},
			{[]lullhttp.HandlerOption{lullhttp.LimitTimeout(time.Second, 0)}, "", 0},
			{[]lullhttp.HandlerOption{lullhttp.LimitTimeout(time.Second, 2*time.Second)}, "Grpc-Timeout: 1n", time.Second},
			{[]lullhttp.HandlerOption{lullhttp.LimitTimeout(time.Second, time.Second)}, "Lull-Timeout: 5000", time.Second},
			{[]lullhttp.HandlerOption{lullhttp.WithTrust(lullhttp.TrustNobody)}, "Lull-Timeout: 500", 0},
			{[]lullhttp.HandlerOption{lullhttp.WithTrust(lullhttp.TrustNobody), lullhttp.LimitTimeout(0, time.Second)}, "Lull-Timeout: 500", time.Second},
			{[]lullhttp.HandlerOption{lullhttp.WithTrust(lullhttp.TrustEverybody)}, "Lull-Timeout: 500", 500 * ms},
			{[]lullhttp.HandlerOption{lullhttp.ReadTimeoutFrom("x-left")}, "X-Left: 500\nLull-Timeout: 100", 500 * ms},
			{[]lullhttp.HandlerOption{lullhttp.ReadTimeoutFrom("")}, "Lull-Timeout: 100\nGrpc-Timeout: 1S", 0},
		} {
			var got time.Duration
			h := newHandler(t, func(_ http.ResponseWriter, r *http.Request) {
				if until, ok := r.Context().Deadline(); ok {
					got = time.Until(until)
				}
			}, c.opts...)
			req := httptest.NewRequest("GET", "/", nil)
			for line := range strings.Lines(c.headers) {
				k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
				req.Header.Add(k, v)
			}
			h(httptest.NewRecorder(), req)
			check.Equal(t, got, c.want, "%q", c.headers)
		}
	})
}

func TestParseAttempt(t *testing.T) {
	for headers, want := range map[string]int{
		"":                                        1,
		"Lull-Attempt: 3":                         3,
		"Lull-Attempt: 0":                         1,
		"Lull-Attempt: -2":                        1,
		"Lull-Attempt: two":                       1,
		"Lull-Attempt: 99999999999999999999999":   1<<31 - 2,
		"X-Envoy-Attempt-Count: 1":                1,
		"X-Envoy-Attempt-Count: 2":                2,
		"Grpc-Previous-Rpc-Attempts: 0":           1,
		"Grpc-Previous-Rpc-Attempts: 2":           3,
		"Amz-Sdk-Request: attempt=2; max=3":       2,
		"Amz-Sdk-Request: ttl=x;max=3;Attempt=4":  4,
		"Amz-Sdk-Request: max=3":                  1,
		"X-Goog-Api-Client: gl-go/1.26 gccl/1.50": 1,
		"X-Goog-Api-Client: gccl-invocation-id/a gccl-attempt-count/3 gl-go/1.26": 3,
		"X-Goog-Api-Client: gccl-attempt-count/x":                                 1,
		"X-Stainless-Retry-Count: 0":                                              1,
		"X-Stainless-Retry-Count: 1":                                              2,
		"Lull-Attempt: 2\nX-Envoy-Attempt-Count: 3":                               3,
		"Lull-Attempt: 4\nX-Stainless-Retry-Count: 1":                             4,
	} {
		h := http.Header{}
		for line := range strings.Lines(headers) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
			h.Add(k, v)
		}
		check.Equal(t, lullhttp.ParseAttempt(h), want, "%q", headers)
	}
}

func TestParseHedge(t *testing.T) {
	for v, want := range map[string]bool{"?1": true, "1": true, "True": true, "?0": false, "0": false, "": false, "yes": false} {
		check.Equal(t, lullhttp.ParseHedge(http.Header{"Lull-Hedge": {v}}), want, "Lull-Hedge: %s", v)
	}
}

// A failure that was retried below is marked so, and one that was not is not. A header that
// the handler has set itself stays.
func TestWhatWasRetriedBelowIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := must(lull.NewDependency("down", eager, lull.WithRand(seed.Source(t))))
		fail := func(r *http.Request) {
			lull.Run(r.Context(), down, func(context.Context) error { return lull.Transient(errors.New("down")) })
		}
		for _, c := range []struct {
			name   string
			handle func(http.ResponseWriter, *http.Request)
			opts   []lullhttp.HandlerOption
			want   string
		}{
			{"retried in vain", func(w http.ResponseWriter, r *http.Request) { fail(r); w.WriteHeader(503) }, nil, "false"},
			{"and has no better word", func(w http.ResponseWriter, r *http.Request) { fail(r); w.WriteHeader(500) }, nil, "false"},
			{"and said nothing of it", func(w http.ResponseWriter, r *http.Request) { fail(r) }, nil, ""},
			{"or blamed the client", func(w http.ResponseWriter, r *http.Request) { fail(r); w.WriteHeader(409) }, nil, ""},
			{"its own fault", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, nil, ""},
			{"says otherwise", func(w http.ResponseWriter, r *http.Request) {
				fail(r)
				w.Header().Set("X-Should-Retry", "true")
				w.WriteHeader(503)
			}, nil, "true"},
			{"names a wait", func(w http.ResponseWriter, r *http.Request) {
				fail(r)
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(503)
			}, nil, ""},
			{"passed on", func(w http.ResponseWriter, r *http.Request) { fail(r); w.WriteHeader(503) }, []lullhttp.HandlerOption{lullhttp.PassRetriesOn()}, ""},
		} {
			w := httptest.NewRecorder()
			newHandler(t, c.handle, c.opts...)(w, httptest.NewRequest("GET", "/", nil))
			check.Equal(t, w.Result().Header.Get("X-Should-Retry"), c.want, "%s: X-Should-Retry", c.name)
		}
	})
}

func TestHandlerOptions(t *testing.T) {
	none := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if _, err := lullhttp.NewHandler(nil); err == nil {
		t.Error("no handler")
	}
	for want, o := range map[string]lullhttp.HandlerOption{
		"LimitTimeout(0s, 0s)":   lullhttp.LimitTimeout(0, 0),
		"LimitTimeout(-1s, 0s)":  lullhttp.LimitTimeout(-time.Second, 0),
		"LimitTimeout(0s, -1s)":  lullhttp.LimitTimeout(0, -time.Second),
		"LimitTimeout(2s, 1s)":   lullhttp.LimitTimeout(2*time.Second, time.Second),
		"WithTrust(nil)":         lullhttp.WithTrust(nil),
		`ReadTimeoutFrom("a b")`: lullhttp.ReadTimeoutFrom("a b"),
		"ReadAttemptWith(nil)":   lullhttp.ReadAttemptWith(nil),
	} {
		if _, err := lullhttp.NewHandler(none, nil, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	attempt := 0
	h := newHandler(t, func(_ http.ResponseWriter, r *http.Request) { attempt = inbound.From(r.Context()).Attempt() },
		lullhttp.ReadAttemptWith(func(*http.Request) int { return 7 }))
	if h(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)); attempt != 7 {
		t.Errorf("attempt %d", attempt)
	}
}

// chain is servers that call one another, the last of which is down, and the number
// of requests that reach it.
func chain(t *testing.T, layers int, p lull.Policy, opts ...lullhttp.HandlerOption) (url string, leaf *atomic.Int64) {
	leaf = new(atomic.Int64)
	handle := func(w http.ResponseWriter, _ *http.Request) {
		leaf.Add(1)
		w.WriteHeader(503)
	}
	for range layers {
		s := memnet.NewServer(t, newHandler(t, handle, opts...))
		next := client(t, p)
		handle = func(w http.ResponseWriter, r *http.Request) {
			req, _ := http.NewRequestWithContext(r.Context(), "GET", s.URL, nil)
			resp, err := next.Do(req)
			if err != nil {
				w.WriteHeader(502)
				return
			}
			resp.Body.Close()
			w.WriteHeader(resp.StatusCode)
		}
		url = s.URL
	}
	return url, leaf
}

// Three servers, of which the last is down, and a client: with four attempts in each
// layer that retries 4 × 4 × 4 requests reach the leaf for each call, and with the
// zero policy hardly more than one.
func TestOneLayerRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 200
		naive := lull.Policy{
			Attempts: 4, Nested: lull.NestedAlways, Timeouts: lull.TimeoutsAlways,
			Backoff: eager.Backoff, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
		}
		// As it comes, but without the breaker, so that all calls are made. Then each
		// process still has two retries that nobody earned.
		ours := lull.Policy{Backoff: eager.Backoff, Breaker: breaker.Config{Off: true}}
		flight := func(name string, p lull.Policy, calls int, opts ...lullhttp.HandlerOption) float64 {
			url, leaf := chain(t, 3, p, opts...)
			cl := client(t, p)
			for range calls {
				resp, err := cl.Get(url)
				if read(t, resp, err); resp.StatusCode != 503 {
					t.Fatalf("%s: status %d", name, resp.StatusCode)
				}
			}
			perCall := float64(leaf.Load()) / float64(calls)
			t.Logf("%-30s %6.2f attempts at the leaf for each call", name, perCall)
			return perCall
		}
		check.Equal(t, flight("four attempts in each layer", naive, 5, lullhttp.PassRetriesOn()), 64, "naive: attempts a call, 4 × 4 × 4")
		// Even so, the server's word alone holds it to one layer.
		check.Equal(t, flight("the same, and servers say so", naive, 5), 4, "one layer of four: attempts a call")
		if got := flight("lull", ours, calls); got > 1.1+2.0/calls {
			t.Errorf("lull: %v attempts a call, want at most 1.1 and two retries in stock", got)
		}
	})
}

// The work for a request is done when its handler has returned: what it has left behind ends,
// whoever calls the handler.
func TestTheContextOfARequestEndsWithItsHandler(t *testing.T) {
	var ctx context.Context
	handle := newHandler(t, func(_ http.ResponseWriter, r *http.Request) {
		if ctx = r.Context(); ctx.Err() != nil {
			t.Errorf("in the handler: %v", ctx.Err())
		}
	})
	handle(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	check.Equal(t, ctx.Err(), context.Canceled, "after the handler")
}

// A host is sent the time from the first of its answers on that has the header Lull, also if
// that answer is a failure, and whatever is answered later. Other hosts are not sent it. The
// number of a retry is sent to every host.
func TestTheTimeIsSentToHostsThatAskForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eager
		p.AttemptTimeout = time.Second
		var got []string
		announce, status := "", 200
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			got = append(got, r.URL.Host+" "+r.Header.Get("Lull-Timeout")+" "+r.Header.Get("Lull-Attempt"))
			h := http.Header{}
			if r.URL.Host == announce {
				h["Lull"] = []string{"1"}
			}
			return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: r}, nil
		})
		cl := client(t, p, lullhttp.WithBase(base))
		get := func(host string) string {
			got = nil
			resp, err := cl.Get("http://" + host + "/")
			read(t, resp, err)
			return strings.Join(got, ", ")
		}
		for _, step := range []struct {
			announce string // the host that does
			status   int
			host     string
			want     string
		}{
			{"", 200, "a", "a  "},
			{"", 503, "a", "a  , a  2, a  3"}, // a stranger learns the number of a retry
			{"a", 503, "a", "a  , a 1000 2, a 1000 3"},
			{"a", 200, "a", "a 1000 "},
			{"a", 200, "b", "b  "},
			{"a", 200, "a:81", "a:81  "}, // another port is another server
			{"", 200, "a", "a 1000 "},    // a route without a handler of lull's
			{"", 503, "a", "a 1000 , a 1000 2, a 1000 3"},
			{"b", 200, "b", "b  "},
			{"b", 200, "b", "b 1000 "},
		} {
			announce, status = step.announce, step.status
			check.Equal(t, get(step.host), step.want, "%+v: sent", step)
		}
	})
}

// With WithHosts(8) no more than eight hosts are remembered to have asked for the time.
func TestHostsThatAskForTheTimeAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := map[string]string{}
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			sent[r.URL.Host] = r.Header.Get("Lull-Timeout")
			return &http.Response{StatusCode: 200, Header: http.Header{"Lull": {"1"}}, Body: http.NoBody, Request: r}, nil
		})
		p := eager
		p.AttemptTimeout = time.Second
		cl := client(t, p, lullhttp.WithBase(base), lullhttp.WithHosts(8))
		hosts := strings.Split("abcdefghi", "")
		for range 2 {
			for _, h := range hosts {
				resp, err := cl.Get("http://" + h + "/")
				read(t, resp, err)
			}
		}
		if n := len(slices.DeleteFunc(hosts, func(h string) bool { return sent[h] == "" })); n > 8 {
			t.Errorf("%d hosts are remembered", n)
		}
	})
}

// The headers of a request are trusted from clients that the option accepts, and from nobody
// else. Without the option they are trusted from everybody. A handler announces to whom it trusts that it reads
// the time, unless it does not, or reads it from another header.
func TestTrust(t *testing.T) {
	verified := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
	mutual := lullhttp.WithTrust(lullhttp.TrustMutualTLS)
	for name, c := range map[string]struct {
		opts     []lullhttp.HandlerOption
		tls      *tls.ConnectionState
		believed bool
		silent   bool
	}{
		"no option":              {nil, nil, true, false},
		"nobody":                 {[]lullhttp.HandlerOption{lullhttp.WithTrust(lullhttp.TrustNobody)}, verified, false, false},
		"everybody":              {[]lullhttp.HandlerOption{lullhttp.WithTrust(lullhttp.TrustEverybody)}, nil, true, false},
		"mutual TLS":             {[]lullhttp.HandlerOption{mutual}, verified, true, false},
		"TLS, no certificate":    {[]lullhttp.HandlerOption{mutual}, &tls.ConnectionState{}, false, false},
		"TLS, not verified":      {[]lullhttp.HandlerOption{mutual}, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, false, false},
		"no TLS":                 {[]lullhttp.HandlerOption{mutual}, nil, false, false},
		"nobody, another number": {[]lullhttp.HandlerOption{lullhttp.WithTrust(lullhttp.TrustNobody), lullhttp.ReadAttemptWith(func(*http.Request) int { return 3 })}, nil, false, false},
		"another header":         {[]lullhttp.HandlerOption{lullhttp.ReadTimeoutFrom("X-Left")}, nil, false, true},
		"no header":              {[]lullhttp.HandlerOption{lullhttp.ReadTimeoutFrom("")}, nil, false, true},
	} {
		status, ran := 0, false
		h := newHandler(t, func(w http.ResponseWriter, r *http.Request) {
			ran = true
			_, bounded := r.Context().Deadline()
			if n := inbound.From(r.Context()).Attempt(); bounded != c.believed || (n == 3) != (c.believed || c.silent) {
				t.Errorf("%s: attempt %d, with a deadline: %v; want that it is believed: %v", name, n, bounded, c.believed)
			}
			if status > 0 {
				w.WriteHeader(status)
			}
		}, c.opts...)
		r := httptest.NewRequest("GET", "/", nil)
		r.TLS = c.tls
		r.Header.Set("Lull-Attempt", "3")
		handle := func() {
			w := httptest.NewRecorder()
			h(w, r)
			check.Equal(t, len(w.Result().Header["Lull"]) > 0, c.believed, "%s, status %d: announced", name, status)
		}
		r.Header.Set("Lull-Timeout", lullhttp.FormatTimeout(time.Hour))
		for _, status = range []int{0, 103, 204, 503} {
			if handle(); !ran {
				t.Errorf("%s: not run", name)
			}
		}
		ran = false
		r.Header.Set("Lull-Timeout", "0")
		if handle(); ran == c.believed {
			t.Errorf("%s: the client's time is up, and the handler ran: %v", name, ran)
		}
	}
}

// At an edge no request is trusted: this one counts as a first attempt, and the server sets
// its client's time.
func ExampleWithTrust() {
	handler, err := lullhttp.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		until, _ := r.Context().Deadline()
		fmt.Println("attempt", inbound.From(r.Context()).Attempt(), "with", time.Until(until).Round(2*time.Minute)) //clock: rounded, a minute does not matter
	}), lullhttp.WithTrust(lullhttp.TrustNobody), lullhttp.LimitTimeout(0, 2*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Lull-Attempt", "3")
	r.Header.Set("Lull-Timeout", "5")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	// Output: attempt 1 with 2m0s
}
