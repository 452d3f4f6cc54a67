package lullhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lullhttp"
)

// closedBody counts how often it was closed.
type closedBody struct {
	io.Reader
	closed *atomic.Int32
}

func (b closedBody) Close() error { b.closed.Add(1); return nil }

// withAll has every option that looks at a response.
func withAll() []lullhttp.Option {
	return []lullhttp.Option{lullhttp.WithBodyIdleTimeout(time.Second), lullhttp.WithReplay(10), lullhttp.WithClassifier(func(r *http.Response, err error) lull.Verdict {
		if r != nil {
			lullhttp.Peek(r, 10)
		}
		return lull.Verdict{}
	})}
}

// What a base transport returns against the rules of net/http ends as it does under http.Client: with
// an error or a response that has a body, never with a panic.
func TestABaseThatBreaksTheRules(t *testing.T) {
	var closed atomic.Int32
	for name, c := range map[string]struct {
		method string
		answer func(n int) (*http.Response, error)
		want   string // of the error; else
		status int
	}{
		"neither": {"PUT", func(int) (*http.Response, error) { return nil, nil }, "neither response nor error", 0},
		"both": {"PUT", func(int) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: closedBody{strings.NewReader("x"), &closed}}, errors.New("both")
		}, "both", 0},
		"no Body, and too late":      {"PUT", func(int) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil }, "deadline exceeded", 0},
		"no Body":                    {"PUT", func(int) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil }, "", 200},
		"no Body, nor Header, a 503": {"PUT", func(int) (*http.Response, error) { return &http.Response{StatusCode: 503}, nil }, "", 503},
		"no Body, problem": {"GET", func(int) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Header: http.Header{"Content-Type": {"application/problem+json"}}}, nil
		}, "", 503},
		"no Body, of five bytes": {"GET", func(int) (*http.Response, error) { return &http.Response{StatusCode: 200, ContentLength: 5}, nil }, "without a Body", 0},
		"no Body, HEAD":          {"HEAD", func(int) (*http.Response, error) { return &http.Response{StatusCode: 200, ContentLength: 5}, nil }, "", 200},
		"no Body, of unknown length": {"GET", func(int) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ContentLength: -1, ProtoMajor: 1}, nil
		}, "", 200},
		"no Body, 101": {"GET", func(int) (*http.Response, error) { return &http.Response{StatusCode: 101, ProtoMajor: 1}, nil }, "", 101},
		"a longer body than its length": {"GET", func(int) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ProtoMajor: 1, ContentLength: 1, Body: io.NopCloser(strings.NewReader("longer"))}, nil
		}, "", 200},
	} {
		for how, p := range map[string]lull.Policy{"plain": eager, "hedged": hedging} {
			run(t, name+", "+how, func(t *testing.T) {
				var n atomic.Int32
				closed.Store(0)
				p.AttemptTimeout = time.Second
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					if c.want == "deadline exceeded" {
						<-r.Context().Done()
					} else if r.Body != nil { // all has been sent
						r.Body.Close()
					}
					return c.answer(int(n.Add(1)))
				})
				tr := transport(t, p, append(withAll(), lullhttp.WithBase(base))...)
				req, _ := http.NewRequestWithContext(t.Context(), c.method, "http://example.test/", strings.NewReader("x"))
				resp, err := tr.RoundTrip(req)
				switch {
				case c.want != "":
					if err == nil || !strings.Contains(err.Error(), c.want) || resp != nil {
						t.Errorf("%v, %v", resp, err)
					}
					if c.want == "both" && closed.Load() != n.Load() {
						t.Errorf("%d of %d bodies that came with an error were closed", closed.Load(), n.Load())
					}
					return
				case err != nil:
					t.Fatal(err)
				case resp.StatusCode != c.status || resp.Body == nil:
					t.Errorf("%d, body %v", resp.StatusCode, resp.Body)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		}
	}
}

// The same response again is that of another call: how the last one went is no part of it.
func TestABaseThatReturnsTheSameResponseAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []int{404, 503} {
			same := &http.Response{StatusCode: status, Header: http.Header{"Set-Cookie": {"a=1"}}, Body: http.NoBody}
			n := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) { n++; return same, nil })
			tr := transport(t, eager, lullhttp.WithBase(base))
			want := map[int]lullhttp.Outcome{404: {Attempts: 1, Reason: engine.Permanent}, 503: {Attempts: 3, Reason: engine.AttemptsExhausted}}[status]
			for call := range 3 {
				n = 0
				resp := sent(t, tr, get(t))
				if o := lullhttp.OutcomeOf(resp); o.Attempts != want.Attempts || o.Reason != want.Reason || n != want.Attempts || o.Verdict.Code != fmt.Sprint(status) {
					t.Errorf("%d, call %d: %+v after %d attempts", status, call+1, o, n)
				}
				if len(same.Header["Set-Cookie"]) != 1 {
					t.Errorf("the base's response was changed: %v", same.Header)
				}
			}
		}
	})
}

// GetBody must return a body. http.Transport calls it, too, when it repeats a request itself.
func TestRule06GetBodyThatReturnsNoBody(t *testing.T) {
	var closed atomic.Int32
	for name, get := range map[string]func() (io.ReadCloser, error){
		"nothing": func() (io.ReadCloser, error) { return nil, nil },
		"both": func() (io.ReadCloser, error) {
			return closedBody{strings.NewReader("x"), &closed}, errors.New("GetBody failed")
		},
	} {
		for _, length := range []int64{5, 0, -1, 1 << 20} {
			for how, p := range map[string]lull.Policy{"plain": eager, "hedged": hedging} {
				run(t, fmt.Sprint(name, length, how), func(t *testing.T) {
					closed.Store(0)
					base := roundTripper(func(r *http.Request) (*http.Response, error) {
						if again, err := r.GetBody(); length != 5 && err == nil {
							t.Errorf("GetBody of the attempt returned %v, %v", again, err)
						}
						r.Body.Close()
						return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}, nil
					})
					tr := transport(t, p, lullhttp.WithBase(base))
					req, _ := http.NewRequest("PUT", "http://example.test/", io.NopCloser(strings.NewReader("hello")))
					req.ContentLength, req.GetBody = length, get
					_, err := tr.RoundTrip(req)
					if err == nil || !strings.Contains(err.Error(), "body for attempt 2: GetBody ") {
						t.Error(err)
					}
					if name == "both" && closed.Load() == 0 {
						t.Error("a body that came with an error was not closed")
					}
				})
			}
		}
	}
}
