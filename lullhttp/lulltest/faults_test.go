package lulltest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/lullhttp/lulltest"
)

// hello answers with a header and a body of five bytes, and counts.
type hello struct {
	mu    sync.Mutex
	calls int
}

func (h *hello) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
	w.Header().Set("X-Hello", "yes")
	io.WriteString(w, "hello")
}

func (h *hello) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	resp := w.Result()
	resp.ContentLength = 5
	resp.Request = r
	return resp, nil
}

func (h *hello) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// seen is what a client sees of an exchange.
type seen struct {
	status int    // 0: no answer
	body   string // what arrived of it
	code   string // of the error of the answer, or of its body
	sent   bool   // the error does not prove that the request was not sent
}

func see(t *testing.T, client *http.Client, req *http.Request) (s seen) {
	t.Helper()
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		s.status = resp.StatusCode
		var b []byte
		b, err = io.ReadAll(resp.Body)
		s.body = string(b)
	}
	if err != nil {
		v := lullhttp.ClassifyError(err)
		s.code, s.sent = v.Code, !v.NeverSent
		check.Equal(t, v.Kind, lull.KindTransient, "%v is no transient failure, but %+v", err, v)
	}
	return s
}

// Each fault looks to a client as it does on a real connection: at the transport, over HTTP/1 and
// over HTTP/2.
func TestWhatAClientSees(t *testing.T) {
	resets := seen{code: "connection_reset", sent: true}
	ends := seen{code: "unexpected_eof", sent: true}
	stream := seen{code: "http2", sent: true} // any code
	for _, c := range []struct {
		rule              lulltest.Rule
		transport, h1, h2 seen
		carried           bool
	}{
		{lulltest.Rule{}, seen{200, "hello", "", false}, seen{200, "hello", "", false}, seen{200, "hello", "", false}, true},
		{lulltest.Rule{Status: 503, Body: "busy"}, seen{503, "busy", "", false}, seen{503, "busy", "", false}, seen{503, "busy", "", false}, false},
		{lulltest.Rule{End: lulltest.Refuse}, seen{code: "connection_refused"}, resets, stream, false},
		{lulltest.Rule{End: lulltest.Reset}, resets, resets, stream, true},
		{lulltest.Rule{End: lulltest.Reset, Status: 200}, resets, resets, stream, false},
		{lulltest.Rule{End: lulltest.Reset, Where: lulltest.InHeader}, ends, ends, stream, true},
		{lulltest.Rule{End: lulltest.Reset, Where: lulltest.InBody}, seen{200, "", "connection_reset", true}, seen{200, "", "connection_reset", true}, seen{200, "", "http2", true}, true},
		{lulltest.Rule{End: lulltest.Reset, Where: lulltest.InBody, Bytes: 3}, seen{200, "hel", "connection_reset", true}, seen{200, "hel", "connection_reset", true}, seen{200, "hel", "http2", true}, true},
		{lulltest.Rule{End: lulltest.Close}, ends, ends, stream, true},
		{lulltest.Rule{End: lulltest.Close, Where: lulltest.InHeader}, ends, ends, stream, true},
		{lulltest.Rule{End: lulltest.Close, Where: lulltest.InBody, Bytes: 3}, seen{200, "hel", "unexpected_eof", true}, seen{200, "hel", "unexpected_eof", true}, seen{200, "hel", "http2", true}, true},
		{lulltest.Rule{End: lulltest.Close, Where: lulltest.InBody, Bytes: 5}, seen{200, "hello", "unexpected_eof", true}, seen{200, "hello", "unexpected_eof", true}, seen{200, "hello", "http2", true}, true},
		{lulltest.Rule{End: lulltest.Close, Where: lulltest.InBody, Bytes: 50}, seen{200, "hello", "unexpected_eof", true}, seen{200, "hello", "unexpected_eof", true}, seen{200, "hello", "http2", true}, true},
		{lulltest.Rule{End: lulltest.Close, Where: lulltest.InBody, Bytes: 2, Status: 500, Body: "broken"}, seen{500, "br", "unexpected_eof", true}, seen{500, "br", "unexpected_eof", true}, seen{500, "br", "http2", true}, false},
	} {
		name := fmt.Sprintf("%v %v %d status %d", c.rule.End, c.rule.Where, c.rule.Bytes, c.rule.Status)
		t.Run(name, func(t *testing.T) {
			check := func(where string, got, want seen, behind *hello, f *lulltest.Faults) {
				t.Helper()
				if want.code == "http2" && got.code != "" {
					got.code = "http2"
				}
				check.Equal(t, got, want, "%s: a client sees", where)
				if carried := behind.count() > 0; carried != c.carried {
					t.Errorf("%s: carried out: %v, want %v", where, carried, c.carried)
				}
				check.Equal(t, len(f.Attempts()), 1, "%s: attempts were seen", where)
			}
			post := func(url string) *http.Request { // no POST is repeated by http.Transport
				req, _ := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("ping"))
				return req
			}
			f, behind := &lulltest.Faults{Rules: []lulltest.Rule{c.rule}}, new(hello)
			check("transport", see(t, &http.Client{Transport: f.Transport(behind)}, post("http://shop/orders")), c.transport, behind, f)

			f, behind = &lulltest.Faults{Rules: []lulltest.Rule{c.rule}}, new(hello)
			server := memnet.NewServer(t, f.Handler(behind))
			check("HTTP/1", see(t, server.Client(), post(server.URL)), c.h1, behind, f)

			f, behind = &lulltest.Faults{Rules: []lulltest.Rule{c.rule}}, new(hello)
			secure := memnet.NewUnstartedServer(t, f.Handler(behind))
			secure.EnableHTTP2 = true
			memnet.StartTLS(secure)
			check("HTTP/2", see(t, secure.Client(), post(secure.URL)), c.h2, behind, f)
		})
	}
}

// A call that hangs ends when its caller gives up, and with the caller's reason; a body also when that closes it.
func TestHangEndsWithTheCaller(t *testing.T) {
	for _, rule := range []lulltest.Rule{
		{End: lulltest.Hang},
		{End: lulltest.Hang, Where: lulltest.InHeader},
		{End: lulltest.Hang, Status: 200},
		{End: lulltest.Hang, Status: 200, Body: "hello", Where: lulltest.InBody, Bytes: 2},
		{Delay: time.Hour},
		{Delay: time.Hour, End: lulltest.Refuse},
	} {
		for _, closes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := &lulltest.Faults{Rules: []lulltest.Rule{rule}}
				reason := errors.New("the user left")
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, reason)
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://shop/", nil)
				began := time.Now()
				resp, err := f.Transport(nil).RoundTrip(req)
				want, after := reason, time.Second
				if err == nil {
					if closes {
						want, after = http.ErrBodyReadAfterClose, time.Second/2
						time.AfterFunc(after, func() { resp.Body.Close() })
					}
					var b []byte
					if b, err = io.ReadAll(resp.Body); string(b) != "he" {
						t.Errorf("%+v: the body is %q, want \"he\"", rule, b)
					}
				}
				if d := time.Since(began); !errors.Is(err, want) || d != after {
					t.Errorf("%+v: %v after %v, want %v after %v", rule, err, d, want, after)
				}
			})
		}
	}
}

// At a handler a hang lasts until the client has gone, before, in and after the header.
func TestHangingHandler(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		for _, rule := range []lulltest.Rule{
			{End: lulltest.Hang},
			{End: lulltest.Hang, Where: lulltest.InHeader},
			{End: lulltest.Hang, Where: lulltest.InBody, Bytes: 2},
			{Delay: time.Hour},
		} {
			synctest.Test(t, func(t *testing.T) {
				f := &lulltest.Faults{Rules: []lulltest.Rule{rule}}
				ended := make(chan struct{})
				faulty := f.Handler(new(hello))
				server := memnet.NewUnstartedServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					faulty.ServeHTTP(w, r)
				}))
				server.EnableHTTP2 = h2
				memnet.StartTLS(server)
				ctx, cancel := context.WithCancel(t.Context())
				req, _ := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader("ping"))
				if rule.Where == lulltest.InBody {
					resp := must.Have(server.Client().Do(req))
					b := make([]byte, 2)
					if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != "he" {
						t.Errorf("%q, %v, want the first two bytes", b, err)
					}
					cancel()
					if _, err := resp.Body.Read(b); !errors.Is(err, context.Canceled) {
						t.Errorf("the body ended with %v", err)
					}
					resp.Body.Close()
				} else {
					began := time.Now()
					time.AfterFunc(time.Minute, cancel)
					if _, err := server.Client().Do(req); !errors.Is(err, context.Canceled) || time.Since(began) != time.Minute {
						t.Errorf("HTTP/2 %v, %+v: %v after %v, want the caller's end", h2, rule, err, time.Since(began))
					}
				}
				<-ended
				server.Close()
				cancel()
			})
		}
	}
}

// A slow body takes its time, in virtual time.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &lulltest.Faults{Rules: []lulltest.Rule{{PerByte: time.Second, Delay: time.Minute}}}
		began := time.Now()
		resp := must.Have((&http.Client{Transport: f.Transport(new(hello))}).Get("http://shop/"))
		check.Equal(t, time.Since(began), time.Minute, "the header came after")
		b, err := io.ReadAll(resp.Body)
		if d := time.Since(began); string(b) != "hello" || err != nil || d != time.Minute+5*time.Second {
			t.Errorf("%q, %v after %v, want hello after 1m5s", b, err, d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &lulltest.Faults{Rules: []lulltest.Rule{{PerByte: time.Second}}}
		began := time.Now()
		w := httptest.NewRecorder()
		f.Handler(new(hello)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if d := time.Since(began); w.Body.String() != "hello" || !w.Flushed || d != 5*time.Second || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%q, %v after %v, want hello after 5s", w.Body, w.Header(), d)
		}
	})
}

// ask makes one attempt at a time, in a test without a network.
func ask(t *testing.T, rt http.RoundTripper, method, url string, header ...string) int {
	t.Helper()
	req := must.Have(http.NewRequestWithContext(t.Context(), method, url, nil))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp := must.Have(rt.RoundTrip(req))
	defer resp.Body.Close()
	return resp.StatusCode
}

// The first rule whose condition holds is carried out, and each part of a condition counts.
func TestConditions(t *testing.T) {
	outage := true
	f := &lulltest.Faults{Rules: []lulltest.Rule{
		{On: "GET /health"}, // an exception
		{On: "GET /orders/{id}", First: 1, Status: 501},
		{On: "GET /orders/{id}", First: 3, Status: 502},
		{On: "api.example.com/", Every: 3, Status: 503},
		{When: func(r *http.Request) bool { return outage && r.Method == "POST" }, Status: 504},
	}}
	rt := f.Transport(nil)
	for i, c := range []struct {
		method, url string
		want        int
		rule        int
	}{
		{"GET", "http://a/health", 200, 0},
		{"GET", "http://a/orders/7", 501, 1},
		{"GET", "http://a/orders/8", 501, 1}, // another call
		{"GET", "http://a/orders/7", 502, 2},
		{"GET", "http://a/orders/7", 502, 2},
		{"GET", "http://a/orders/7", 200, -1},
		{"GET", "http://a/orders/7?x", 501, 1},
		{"PUT", "http://a/orders/7", 200, -1},
		{"GET", "http://a/orders/7/lines", 200, -1},
		{"GET", "http://api.example.com", 200, -1},
		{"GET", "http://api.example.com:8080/x", 200, -1},
		{"GET", "http://a/x", 200, -1},
		{"GET", "http://api.example.com/x", 503, 3},
		{"POST", "http://a/x", 504, 4},
	} {
		check.Equal(t, ask(t, rt, c.method, c.url), c.want, "%d: %s %s", i, c.method, c.url)
		if rule := f.Attempts()[i].Rule; rule != c.rule {
			t.Errorf("%d: %s %s: rule %d, want %d", i, c.method, c.url, rule, c.rule)
		}
	}
	outage = false
	check.Equal(t, ask(t, rt, "POST", "http://a/x"), 200, "after the outage")
}

func TestCalls(t *testing.T) {
	f := &lulltest.Faults{}
	rt := f.Transport(nil)
	ask(t, rt, "POST", "http://a/pay", "Idempotency-Key", "k1")
	ask(t, rt, "POST", "http://a/pay", "Idempotency-Key", "k2")
	ask(t, rt, "POST", "http://a/pay", "Idempotency-Key", "k1")
	ask(t, rt, "PUT", "http://a/pay", "Idempotency-Key", "k1")
	var numbers []int
	for _, a := range f.Attempts() {
		numbers = append(numbers, a.Number)
	}
	check.Slices(t, numbers, []int{1, 1, 2, 1}, "numbers")

	f = &lulltest.Faults{Call: func(r *http.Request) string { return r.Header.Get("X-Call") }}
	rt = f.Transport(nil)
	ask(t, rt, "GET", "http://a/1", "X-Call", "c")
	ask(t, rt, "GET", "http://a/2", "X-Call", "c")
	if a := f.Attempts()[1]; a.Number != 2 || a.Call != "c" {
		t.Errorf("%+v, want the second attempt of call c", a)
	}
}

// What has arrived is recorded, and the caller may do with its own request what it likes.
func TestWhatIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &lulltest.Faults{Rules: []lulltest.Rule{{First: 1, Status: 503}}}
		behind := &echo{}
		rt := f.Transport(behind)
		for range 2 {
			body := strings.NewReader("amount=7")
			req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://shop/pay?x=1", body)
			req.Header.Set("Idempotency-Key", "k")
			resp := must.Have(rt.RoundTrip(req))
			if req.ContentLength != 8 || body.Len() != 0 {
				t.Error("the request was changed, or not read")
			}
			req.Header.Set("Idempotency-Key", "other")
			resp.Body.Close()
			time.Sleep(time.Second)
		}
		if behind.body != "amount=7" || behind.length != 8 {
			t.Errorf("passed on: %q of %d bytes", behind.body, behind.length)
		}
		a := f.Attempts()
		if len(a) != 2 {
			t.Fatalf("%d attempts, want 2", len(a))
		}
		for i, a := range a {
			if a.Method != "POST" || a.URL != "http://shop/pay?x=1" || string(a.Body) != "amount=7" || a.Header.Get("Idempotency-Key") != "k" || a.Number != i+1 {
				t.Errorf("attempt %d: %+v", i, a)
			}
		}
		check.Equal(t, a[1].At.Sub(a[0].At), time.Second, "apart")
	})
}

// echo keeps what it gets.
type echo struct {
	body   string
	length int64
}

func (e *echo) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	e.body, e.length = string(b), r.ContentLength
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, err
}

// A header is set on the answers of others, too, and one without values is removed.
func TestHeader(t *testing.T) {
	f := &lulltest.Faults{Rules: []lulltest.Rule{{Header: http.Header{"retry-after": {"2"}, "X-Hello": nil}}}}
	resp, err := (&http.Client{Transport: f.Transport(new(hello))}).Get("http://shop/")
	if err != nil || resp.Header.Get("Retry-After") != "2" || resp.Header["X-Hello"] != nil {
		t.Errorf("%v, %v", resp.Header, err)
	}
	for _, next := range []http.Handler{new(hello), nil} {
		w := httptest.NewRecorder()
		f.Handler(next).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if h := w.Result().Header; h.Get("Retry-After") != "2" || h["X-Hello"] != nil {
			t.Errorf("%v", h)
		}
	}
}

// A handler that flushes, or answers with an early hint, is carried as it is.
func TestFlushAndInformationalResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &lulltest.Faults{Rules: []lulltest.Rule{{End: lulltest.Close, Where: lulltest.InBody, Bytes: 4}}}
		last := make(chan error, 1)
		server := memnet.NewServer(t, f.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Content-Length", "6")
			w.(http.Flusher).Flush()
			io.WriteString(w, "one")
			check.Equal(t, http.NewResponseController(w).Flush(), nil, "http.NewResponseController(w).Flush()")
			_, err := io.WriteString(w, "two")
			if _, err := io.WriteString(w, "more"); err == nil {
				t.Error("a broken response takes more")
			}
			last <- err
		})))
		got := see(t, server.Client(), httpGet(t, server.URL))
		server.Close()
		if want := (seen{200, "onet", "unexpected_eof", true}); got != want {
			t.Errorf("a client sees %+v, want %+v", got, want)
		}
		if <-last == nil {
			t.Error("the write in which the response broke returns no error")
		}
	})
}

func httpGet(t *testing.T, url string) *http.Request {
	return must.Have(http.NewRequestWithContext(t.Context(), "GET", url, nil))
}

// Answers that have no body cannot break in it.
func TestNoBodyNoBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rule := range []lulltest.Rule{
			{End: lulltest.Reset, Where: lulltest.InBody, Bytes: 1},
			{End: lulltest.Close, Where: lulltest.InBody, Status: 204},
			{PerByte: time.Hour, Status: 304},
		} {
			f := &lulltest.Faults{Rules: []lulltest.Rule{rule}}
			server := memnet.NewServer(t, f.Handler(new(hello)))
			want := seen{status: 200}
			if rule.Status != 0 {
				want.status = rule.Status
			}
			head := func(url string) *http.Request {
				req := httpGet(t, url)
				if rule.Status == 0 {
					req.Method = "HEAD"
				}
				return req
			}
			check.Equal(t, see(t, server.Client(), head(server.URL)), want, "handler, %+v", rule)
			server.Close()
			check.Equal(t, see(t, &http.Client{Transport: f.Transport(headOnly{})}, head("http://shop/")), want, "transport, %+v", rule)
		}
	})
}

// headOnly answers HEAD.
type headOnly struct{}

func (headOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, ContentLength: 5, Body: http.NoBody, Request: r}, nil
}

// Draws are the same for the same seed, in any order; another seed, rule or call draws anew.
func TestChance(t *testing.T) {
	const calls = 2000
	failed := func(seed uint64, from, step int) []int {
		f := &lulltest.Faults{Seed: seed, Rules: []lulltest.Rule{{Chance: 0.2, Status: 503}}}
		rt := f.Transport(nil)
		var failed []int
		for i := range calls {
			n := (from + i*step) % calls
			if ask(t, rt, "GET", fmt.Sprint("http://a/", n)) == 503 {
				failed = append(failed, n)
			}
		}
		slices.Sort(failed)
		return failed
	}
	one := failed(1, 0, 1)
	check.Slices(t, one, failed(1, 5, 7), "what fails, whatever the order of requests")
	two := failed(2, 0, 1)
	if slices.Equal(one, two) {
		t.Error("two seeds draw the same")
	}
	// 400 expected; the standard deviation is 18
	for _, f := range [][]int{one, two} {
		if n := len(f); n < 310 || n > 490 {
			t.Errorf("%d of %d failed, want about 400", n, calls)
		}
	}

	f := &lulltest.Faults{Rules: []lulltest.Rule{{Chance: 1, Status: 503}}}
	for range 100 {
		if ask(t, f.Transport(nil), "GET", "http://a/") != 503 {
			t.Fatal("chance 1 does not always hold")
		}
	}
}

// Many goroutines at once: nothing is lost, and each call is counted for itself.
func TestConcurrent(t *testing.T) {
	f := &lulltest.Faults{Rules: []lulltest.Rule{{First: 2, Status: 503}}}
	rt := f.Transport(nil)
	var wg sync.WaitGroup
	for call := range 20 {
		wg.Go(func() {
			for i := range 3 {
				want := 503
				if i == 2 {
					want = 200
				}
				check.Equal(t, ask(t, rt, "GET", fmt.Sprint("http://a/", call)), want, "attempt %d", i+1)
				f.Attempts()
			}
		})
	}
	wg.Wait()
	check.Equal(t, len(f.Attempts()), 60, "attempts")
}

func TestValidate(t *testing.T) {
	for text, rule := range map[string]lulltest.Rule{
		"On":      {On: "GET orders"},
		"First":   {First: -1},
		"Every":   {Every: -1},
		"Chance":  {Chance: 1.5},
		"Delay":   {Delay: -1},
		"PerByte": {PerByte: -1},
		"Status":  {Status: 100},
		"Body":    {Body: "x"},
		"End":     {End: 9},
		"Where":   {Where: lulltest.InBody},
		"Bytes":   {Bytes: 3, End: lulltest.Close},
		"Header":  {Header: http.Header{"A": {"b"}}, End: lulltest.Reset},
	} {
		f := &lulltest.Faults{Rules: []lulltest.Rule{{}, rule}}
		err := f.Validate()
		if err == nil || !strings.Contains(err.Error(), "Rules[1]."+text+":") {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, got := f.Transport(nil).RoundTrip(httpGet(t, "http://a/")); got == nil || got.Error() != err.Error() {
			t.Errorf("%s: the transport returns %v", text, got)
		}
		w := httptest.NewRecorder()
		f.Handler(nil).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 500 || !strings.Contains(w.Body.String(), err.Error()) {
			t.Errorf("%s: the handler answers %d %s", text, w.Code, w.Body)
		}
	}
	both := &lulltest.Faults{Rules: []lulltest.Rule{{First: -1, Every: -2}, {Status: 7}}}
	if err := both.Validate(); strings.Count(err.Error(), "lulltest: Rules[") != 3 {
		t.Errorf("not every mistake at once: %v", err)
	}
}

// The zero value does nothing but record, and a context that has ended sends nothing.
func TestZero(t *testing.T) {
	var f lulltest.Faults
	if got := ask(t, f.Transport(nil), "GET", "http://a/"); got != 200 {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Transport(nil).RoundTrip(httpGet(t, "http://a/").WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	check.Equal(t, len(f.Attempts()), 1, "attempts")
}
