package lullhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/lullhttp"
)

const ms = time.Millisecond

// hedging sends a second request after 10 ms, whatever it costs.
var hedging = lull.Policy{
	Hedge:   hedge.Config{Attempts: 2, Delay: 10 * ms, Share: -1},
	Budget:  budget.Config{Unlimited: true},
	Breaker: breaker.Config{Off: true},
}

// slowly answers the requests in turn, each after its delay with its status.
type slowly struct {
	mu      sync.Mutex
	answers []answer
	got     []string // method, headers of attempts and hedges, and body
}

type answer struct {
	after  time.Duration
	status int
}

func (s *slowly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	n := len(s.got)
	s.got = append(s.got, r.Method+r.Header.Get(lullhttp.DefaultAttemptHeader)+r.Header.Get(lullhttp.DefaultHedgeHeader)+string(body))
	s.mu.Unlock()
	a := answer{0, 500}
	if n < len(s.answers) {
		a = s.answers[n]
	}
	select {
	case <-time.After(a.after):
		w.WriteHeader(a.status)
		fmt.Fprintf(w, "answer %d", n+1)
	case <-r.Context().Done():
	}
}

// Rule 9 over HTTP, and rule 4: what is not idempotent is not hedged. Nor is what has a trailer, whose values belong to one
// body. A hedge has the whole body and is marked: it is an attempt beside another, not one after it.
func TestRule09Hedging(t *testing.T) {
	keys := lullhttp.WithIdempotencyKeys(nil)
	for _, c := range []struct {
		name    string
		method  string
		answers []answer
		body    string
		took    time.Duration
		got     []string
		opts    []lullhttp.Option
	}{
		{"in time", "GET", []answer{{9 * ms, 200}}, "answer 1", 9 * ms, []string{"GETabc"}, nil},
		{"the hedge is quicker", "GET", []answer{{time.Hour, 200}, {5 * ms, 200}}, "answer 2", 15 * ms, []string{"GETabc", "GET2?1abc"}, nil},
		{"a fast 503 does not beat a slow 200", "GET", []answer{{100 * ms, 200}, {ms, 503}}, "answer 1", 100 * ms, []string{"GETabc", "GET2?1abc"}, nil},
		{"a 503 before the delay calls the next", "GET", []answer{{5 * ms, 503}, {5 * ms, 200}}, "answer 2", 10 * ms, []string{"GETabc", "GET2abc"}, nil},
		{"both fail", "GET", []answer{{15 * ms, 503}, {10 * ms, 502}}, "answer 2", 20 * ms, []string{"GETabc", "GET2?1abc"}, nil},
		{"PUT", "PUT", []answer{{time.Hour, 200}, {5 * ms, 200}}, "answer 2", 15 * ms, []string{"PUTabc", "PUT2?1abc"}, nil},
		{"POST", "POST", []answer{{100 * ms, 200}}, "answer 1", 100 * ms, []string{"POSTabc"}, nil},
		{"POST with a key", "POST", []answer{{100 * ms, 200}}, "answer 1", 100 * ms, []string{"POSTabc"}, []lullhttp.Option{keys}},
		{"trailer", "PUT", []answer{{100 * ms, 200}}, "answer 1", 100 * ms, []string{"PUTabc"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &slowly{answers: c.answers}
			inBubble(t, hedging, s.ServeHTTP, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
				req, _ := http.NewRequest(c.method, host, strings.NewReader("abc"))
				if c.name == "trailer" {
					req.Trailer = http.Header{"X-Sum": nil}
					req.ContentLength = -1
				}
				start := time.Now()
				resp, err := cl.Do(req)
				took := time.Since(start)
				if got := read(t, resp, err); got != c.body || took != c.took {
					t.Errorf("%q after %v, want %q after %v", got, took, c.body, c.took)
				}
				if !slices.Equal(s.got, c.got) {
					t.Errorf("the server got %q, want %q", s.got, c.got)
				}
			}, c.opts...)
		})
	}
}

// The winner's body can be read after the losers were cancelled, and their bodies
// are closed: in the end every connection is idle or gone.
func TestTheWinnersBodyOutlivesTheOthers(t *testing.T) {
	var n atomic.Int64
	gone := make(chan struct{})
	inBubble(t, hedging, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			<-r.Context().Done()
			close(gone)
			return
		}
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-gone
		time.Sleep(50 * time.Second) // longer than any timeout of the policy
		fmt.Fprint(w, "late")
	}, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
		resp, err := cl.Get(host)
		if got := read(t, resp, err); got != "late" {
			t.Errorf("the body is %q", got)
		}
	})
}

// Two answers at the same moment: one is returned, the other is closed, and no
// connection is lost by it.
func TestALosersResponseIsDrained(t *testing.T) {
	inBubble(t, hedging, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(lullhttp.DefaultAttemptHeader) == "" {
			time.Sleep(20 * ms)
		} else {
			time.Sleep(10 * ms)
		}
		fmt.Fprint(w, "the same")
	}, func(t *testing.T, cl *http.Client, connections *atomic.Int64) {
		for range 20 {
			resp, err := cl.Get(host)
			if got := read(t, resp, err); got != "the same" {
				t.Fatalf("%q", got)
			}
			time.Sleep(time.Second)
		}
		// A loser that is cancelled costs its connection, one that has answered does not.
		if open := connections.Load(); open > 21 {
			t.Errorf("%d connections for 20 calls of two requests", open)
		}
	})
}

// touch is everything of a request that a base transport may read.
func touch(r *http.Request) string {
	var b strings.Builder
	fmt.Fprint(&b, r.Method, r.URL, r.Host, r.ContentLength, r.TransferEncoding, r.Close, r.Proto, len(r.Trailer))
	for key, values := range r.Header {
		fmt.Fprint(&b, key, values)
	}
	return b.String()
}

// change changes everything of a request that belongs to the caller, in place.
func change(r *http.Request, i int) {
	for key, values := range r.Header {
		for j := range values {
			values[j] = fmt.Sprint("changed ", i)
		}
		r.Header[key] = append(values, "one more")
	}
	r.Header.Set(fmt.Sprint("X-New-", i), "x")
	r.URL.Path, r.URL.Host, r.URL.RawQuery = fmt.Sprint("/", i), fmt.Sprint("host", i), "q"
	r.Method, r.Host, r.Close = "PUT", fmt.Sprint("name", i), !r.Close
	if len(r.TransferEncoding) > 0 {
		r.TransferEncoding[0] = fmt.Sprint(i)
	}
	r.ContentLength++
	r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("another call's") }
}

// When a call has returned and its body is closed the caller may use the request again, all of
// it and its body's bytes. Attempts that have lost read nothing of it from then on: for the
// race detector. They go on for as long as they like.
func TestRule20ARequestIsTheCallersAgain(t *testing.T) {
	type attempt func(number int, r *http.Request) (*http.Response, error)
	answer := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, ProtoMajor: 1, Header: http.Header{}, Body: http.NoBody}, nil
	}
	reads := func(r *http.Request) {
		touch(r)
		if r.Body != nil {
			var b [1]byte
			r.Body.Read(b[:])
		}
	}
	for name, do := range map[string]attempt{
		"a loser that reads until it is cancelled, and after": func(n int, r *http.Request) (*http.Response, error) {
			if n == 1 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return answer(r)
		},
		"a loser that answers late": func(n int, r *http.Request) (*http.Response, error) {
			if n > 1 {
				<-r.Context().Done()
				for range 100 {
					reads(r)
				}
				return &http.Response{StatusCode: 503, ProtoMajor: 1, Header: http.Header{}, Body: http.NoBody}, nil
			}
			<-lostBegan(r.Context())
			return answer(r)
		},
		"a loser that repeats its body": func(n int, r *http.Request) (*http.Response, error) {
			if n > 1 {
				<-r.Context().Done()
				for range 100 {
					reads(r)
					if r.GetBody != nil {
						if b, err := r.GetBody(); err == nil {
							io.Copy(io.Discard, b)
							b.Close()
						}
					}
				}
				return nil, r.Context().Err()
			}
			<-lostBegan(r.Context())
			return answer(r)
		},
		"a base that writes to its request": func(n int, r *http.Request) (*http.Response, error) {
			for i := range 20 {
				r.Header.Set(fmt.Sprint("X-", i), fmt.Sprint(n))
			}
			if n > 1 {
				<-r.Context().Done()
				r.Header.Set("X-Late", "1")
				return nil, r.Context().Err()
			}
			<-lostBegan(r.Context())
			r.Header.Set("X-Late", "1")
			return answer(r)
		},
	} {
		for _, body := range []bool{false, true} {
			run(t, fmt.Sprint(name, ", body ", body), func(t *testing.T) {
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					a, _ := lull.AttemptFrom(r.Context())
					if a.Number > 1 {
						r.Context().Value(beganKey{}).(*began).once()
					}
					if r.Body != nil {
						defer r.Body.Close()
					}
					return do(a.Number, r)
				})

				classified := lullhttp.WithClassifier(func(resp *http.Response, err error) lull.Verdict {
					if resp != nil {
						touch(resp.Request)
					}
					return lull.Verdict{}
				})
				tr := transport(t, hedging, lullhttp.WithBase(base), classified)
				buffer := []byte(strings.Repeat("x", 100))
				for i := range 30 {
					b := &began{c: make(chan struct{})}
					ctx := context.WithValue(t.Context(), beganKey{}, b)
					var from io.Reader
					if body {
						from = newReader(buffer)
					}
					req, _ := http.NewRequestWithContext(ctx, "PUT", "http://example.test/a?b", from)
					if body {
						req.ContentLength = int64(len(buffer))
						req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(newReader(buffer)), nil }
					}
					req.Header = http.Header{"A": {"1", "2"}, "B": {"3"}, "C": nil}
					req.TransferEncoding = []string{"identity"}
					resp := sent(t, tr, req)
					resp.Body.Close()
					if resp.Request != req {
						t.Fatal("the response is not that of the caller's request")
					}
					change(req, i)
					for j := range buffer {
						buffer[j]++
					}
				}

			})
		}
	}
}

func newReader(b []byte) io.Reader { return &bytesReader{b: b} }

// bytesReader reads bytes one by one.
type bytesReader struct {
	b []byte
	n int
}

func (r *bytesReader) Read(p []byte) (int, error) {
	if r.n == len(r.b) {
		return 0, io.EOF
	}
	p[0] = r.b[r.n]
	r.n++
	return 1, nil
}

type beganKey struct{}

// began is closed when a second attempt has begun.
type began struct {
	c chan struct{}
	sync.Once
}

func (b *began) once()                              { b.Do(func() { close(b.c) }) }
func lostBegan(ctx context.Context) <-chan struct{} { return ctx.Value(beganKey{}).(*began).c }

// Each attempt of a hedged call has the caller's request as it was before the first: header fields
// with several values, without any, and none at all.
func TestAHedgeSendsTheCallersRequest(t *testing.T) {
	many := http.Header{}
	for i := range 30 {
		many[fmt.Sprint("X-", i)] = []string{"a", "b"}[:i%3%2+1]
	}
	for name, h := range map[string]http.Header{
		"nil": nil, "empty": {}, "few": {"A": {"1", "2"}, "B": nil, "C": {""}, "D": {}}, "many": many,
	} {
		run(t, name, func(t *testing.T) {
			got := make(chan *http.Request, 2)
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				got <- r
				if r.URL.Host = "elsewhere.test"; r.Header != nil { // what a base must not do
					r.Header.Set("A", "base")
				}
				a, _ := lull.AttemptFrom(r.Context())
				if a.Number == 1 {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
			})
			tr := transport(t, hedging, lullhttp.WithBase(base), lullhttp.WithAttemptHeader(""))
			u, _ := url.Parse("http://user:pw@example.test/a?b#c")
			req := (&http.Request{Method: "GET", URL: u, Header: h.Clone()}).WithContext(t.Context())
			sent(t, tr, req)
			<-got
			second := <-got
			want := h.Clone()
			if want != nil {
				want.Set("A", "base") // by the base, for this attempt
			}
			if fmt.Sprint(second.Header) != fmt.Sprint(want) || (second.Header == nil) != (want == nil) {
				t.Errorf("header %v, want %v", second.Header, want)
			}
			if len(second.Header["B"]) != len(h["B"]) || second.URL.Path != "/a" || second.URL.User.String() != "user:pw" || second.URL == u {
				t.Errorf("%v %v", second.Header, second.URL)
			}
		})
	}
}

// The hook before a retry gets the error of the attempt that failed most recently, whether or not
// the policy hedges; a hedge gets it if one has failed.
func TestBeforeRetryHasTheLastError(t *testing.T) {
	hedged := eager
	hedged.Attempts, hedged.Hedge = 0, hedge.Config{Attempts: 3, Delay: 10 * ms, Share: -1}
	for name, p := range map[string]lull.Policy{"not hedged": eager, "hedged": hedged} {
		for _, fails := range []error{io.ErrUnexpectedEOF, nil} { // nil: a status
			run(t, fmt.Sprint(name, ", ", fails), func(t *testing.T) {
				n, calls := 0, 0
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					resp := &http.Response{StatusCode: 200, Header: http.Header{"X-Id": {"7"}}, Body: http.NoBody}
					if n++; n > 1 {
						return resp, nil
					}
					if fails != nil {
						return nil, fails
					}
					resp.StatusCode = 503
					return resp, nil
				})
				tr := transport(t, p, lullhttp.WithBase(base), lullhttp.WithBeforeRetry(func(_ *http.Request, last error) error {
					calls++
					status, ok := errors.AsType[*lullhttp.StatusError](last)
					if fails == nil && (!ok || status.StatusCode != 503 || status.Header.Get("X-Id") != "7") || fails != nil && last != fails {
						t.Errorf("the last error is %v", last)
					}
					return nil
				}))
				if _, err := tr.RoundTrip(get(t)); err != nil || calls != 1 {
					t.Errorf("%d calls of the hook; %v", calls, err)
				}
			})
		}
	}
}
