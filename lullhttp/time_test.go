package lullhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/cutofftest"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// run is t.Run in virtual time.
func run(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// inBubble runs test in virtual time, with a client whose requests, to whatever
// host, are answered by handler. The number counts the connections.
func inBubble(t *testing.T, p lull.Policy, handler http.HandlerFunc, test func(*testing.T, *http.Client, *atomic.Int64), opts ...lullhttp.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, connections := server(t, handler)
		base := memnet.Transport(t)
		base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return memnet.Dial(ctx, network, s.Listener.Addr().String())
		}
		test(t, client(t, p, append(opts, lullhttp.WithBase(base))...), connections)
	})
}

// seeded has the client draw from a seed that a failure names.
func seeded(t testing.TB) lullhttp.Option { return lullhttp.With(lull.WithRand(seed.Source(t))) }

const host = "http://example.test/"

// The server's hint is waited out, to the millisecond and no less.
func TestAHintIsWaitedFor(t *testing.T) {
	for name, value := range map[string]string{"Retry-After": "2", "Retry-After-Ms": "2000", "X-Ratelimit-Reset": "2s"} {
		var at []time.Duration
		start := time.Time{}
		inBubble(t, eager, func(w http.ResponseWriter, r *http.Request) {
			if at = append(at, time.Since(start)); len(at) == 1 {
				w.Header().Set(name, value)
				w.Header().Set("X-Ratelimit-Remaining", "0")
				w.WriteHeader(429)
			}
		}, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
			start = time.Now()
			resp, err := cl.Get(host)
			read(t, resp, err)
		}, lullhttp.With(lull.WithRand(func() uint64 { return 0 })))
		if want := []time.Duration{0, 2 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("%s: attempts at %v, want %v", name, at, want)
		}
	}
}

// Headers that come when the attempt's time is up belong to an attempt that timed
// out: its body could not be read any more.
func TestHeadersThatComeTooLate(t *testing.T) {
	p := eager
	p.AttemptTimeout = time.Second
	var bodies []*trackedBody
	late := roundTripper(func(r *http.Request) (*http.Response, error) {
		if len(bodies) == 0 {
			<-r.Context().Done()
		}
		bodies = append(bodies, &trackedBody{r: strings.NewReader("x")})
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: bodies[len(bodies)-1]}, nil
	})
	synctest.Test(t, func(t *testing.T) {
		cl := client(t, p, lullhttp.WithBase(late))
		resp, err := cl.Get(host)
		read(t, resp, err)
		if o := lullhttp.OutcomeOf(resp); o.Attempts != 2 || bodies[0].closed.Load() != 1 {
			t.Errorf("outcome %+v; the late body was closed %d times", o, bodies[0].closed.Load())
		}
	})
}

// Problem details that do not come with their header do not hold the response back, nor do
// they become anything else for who reads them.
func TestProblemDetailsAreNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		timeout, after time.Duration
		details        string
		ended          bool // before the response is returned
	}{
		"at once":            {lull.NoTimeout, 0, `{"type":"about:blank"}`, true},
		"in drops":           {lull.NoTimeout, 250 * time.Millisecond, `{"type":"about:blank"}`, false},
		"little time left":   {300 * time.Millisecond, 150 * time.Millisecond, `{"type":"about:blank"}`, false},
		"longer than looked": {lull.NoTimeout, 250 * time.Millisecond, `{"type":"` + strings.Repeat("x", 100<<10) + `"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := eager
			p.AttemptTimeout, p.Deadline = c.timeout, lull.NoTimeout
			inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.Header().Set("Connection", "close") // else Close reads on from Go 1.27 on, and waits for a lock that stops the bubble's clock
				w.WriteHeader(404)
				if c.ended {
					io.WriteString(w, c.details)
					return
				}
				for half := range 2 {
					io.WriteString(w, c.details[half*len(c.details)/2:(half+1)*len(c.details)/2])
					w.(http.Flusher).Flush()
					time.Sleep(time.Second)
				}
			}, func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
				for _, whole := range []bool{true, false} {
					start := time.Now()
					resp, err := cl.Get(host)
					if err != nil || time.Since(start) != c.after {
						t.Fatalf("%v after %v, want the response after %v", err, time.Since(start), c.after)
					}
					if whole {
						if got := read(t, resp, nil); got != c.details {
							t.Errorf("read %d bytes, %.40q..., want %d", len(got), got, len(c.details))
						}
						continue
					}
					first := make([]byte, 9)
					if n, err := io.ReadFull(resp.Body, first); err != nil || string(first) != `{"type":"` {
						t.Errorf("read %q, %v", first[:n], err)
					}
					resp.Body.Close()
					if _, err := io.ReadAll(resp.Body); err == nil && !c.ended {
						t.Error("the body ended like a whole one after Close")
					}
				}
				time.Sleep(3 * time.Second) // for the handlers
			})
		})
	}
}

// A problem whose body cannot be read is one without details, and its owner gets the error.
func TestAProblemThatIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := errors.New("cut")
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			h := http.Header{"Content-Type": {"application/problem+json"}}
			body := io.MultiReader(strings.NewReader(`{"type":"about:blank"}`), iotest.ErrReader(cut))
			return &http.Response{StatusCode: 404, Header: h, Body: io.NopCloser(body), ContentLength: -1}, nil
		})
		resp := must(client(t, eager, lullhttp.WithBase(base), lullhttp.WithProblem("about:blank", lull.KindTransient)).Get(host))
		if o := lullhttp.OutcomeOf(resp); o.Reason != engine.Permanent {
			t.Errorf("%+v", o)
		}
		if body, err := io.ReadAll(iotest.OneByteReader(resp.Body)); string(body) != `{"type":"about:blank"}` || err != cut {
			t.Errorf("read %q, %v", body, err)
		}
	})
}

// A response that is to be discarded, and whose body does not end, is given a second, after the moment in which problem
// details were looked for.
func TestDrainingIsBoundedInTime(t *testing.T) {
	p := eager
	p.AttemptTimeout, p.Deadline = lull.NoTimeout, lull.NoTimeout
	for contentType, most := range map[string]time.Duration{"text/plain": time.Second, "application/problem+json": 1300 * time.Millisecond} {
		var n atomic.Int64
		inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) == 1 {
				w.Header().Set("Connection", "close") // as in TestProblemDetailsAreNotWaitedFor
				w.Header().Set("Content-Type", contentType)
				w.WriteHeader(503)
				io.WriteString(w, `{"type":`)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}, func(t *testing.T, cl *http.Client, connections *atomic.Int64) {
			start := time.Now()
			resp, err := cl.Get(host)
			read(t, resp, err)
			if took := time.Since(start); took < time.Second || took > most || connections.Load() != 2 {
				t.Errorf("%s: answered after %v over %d connections", contentType, took, connections.Load())
			}
		})
	}
}

// A call that waits holds no place under the concurrency limit, and no connection.
func TestWaitingHoldsNothing(t *testing.T) {
	p := eager
	p.Limit = bulkhead.Config{InFlight: 1}
	var n atomic.Int64
	inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(429)
		}
	}, func(t *testing.T, cl *http.Client, connections *atomic.Int64) {
		waits := make(chan struct{})
		go func() {
			defer close(waits)
			resp, err := cl.Get(host)
			read(t, resp, err)
		}()
		time.Sleep(time.Second)
		resp, err := cl.Get(host) // while the other waits
		read(t, resp, err)
		<-waits
		if n.Load() != 3 || connections.Load() != 1 {
			t.Errorf("%d requests over %d connections, want 3 over one", n.Load(), connections.Load())
		}
	})
}

// trickling is a body that gives a byte now and then until it is closed.
type trickling struct{ closed atomic.Bool }

func (d *trickling) Read(p []byte) (int, error) {
	if d.closed.Load() {
		return 0, errors.New("closed")
	}
	time.Sleep(20 * time.Millisecond)
	p[0] = 'a'
	return 1, nil
}

func (d *trickling) Close() error { d.closed.Store(true); return nil }

// Rule 17: a response that is drained before a retry does not take the call beyond its
// deadline, and counts into the wait.
func TestRule17DrainingDoesNotOutliveTheCall(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		1500 * time.Millisecond: 1500 * time.Millisecond, // draining is a second of it
		200 * time.Millisecond:  1020 * time.Millisecond, // draining is all of it, and ends with a read
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return &http.Response{StatusCode: 503, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: -1, Body: new(trickling), Request: r}, nil
				}
				return &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
			})
			p := lull.Policy{Deadline: 2 * time.Second, AttemptTimeout: 2 * time.Second, Budget: budget.Config{Unlimited: true}, Backoff: backoff.Schedule{Base: wait, Cap: wait, Jitter: backoff.None}}
			c := client(t, p, lullhttp.WithBase(base))
			start := time.Now()
			resp, err := c.Get("http://a.example/")
			if took := time.Since(start); err != nil || resp.StatusCode != 200 || took < want-20*time.Millisecond || took > want+20*time.Millisecond {
				t.Errorf("a wait of %v: %v after %v, want an answer after %v", wait, err, took, want)
			}
			// Near its end the call has less than a second for it.
			n = 0
			p.Deadline = 700 * time.Millisecond
			p.AttemptTimeout, p.Backoff.Base, p.Backoff.Cap = 0, 100*time.Millisecond, 100*time.Millisecond
			if c, err = lullhttp.NewClient(p, lullhttp.WithBase(base)); err != nil {
				t.Fatal(err)
			}
			start = time.Now()
			_, err = c.Get("http://a.example/")
			if took := time.Since(start); !errors.Is(err, lull.ErrDeadline) || took > 740*time.Millisecond {
				t.Errorf("with a deadline of 700 ms: %v after %v", err, took)
			}
		})
	}
}

// dripping writes a letter before each of the waits, and one at the end.
func dripping(waits ...time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for _, wait := range append(waits, 0) {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
			}
		}
	}
}

// Policy.Deadline does not cover the body, so that a server which falls silent within it
// holds its reader for ever: NewClient bounds the silence, not the length.
func TestASilentBodyEnds(t *testing.T) {
	second := time.Second
	for name, c := range map[string]struct {
		options []lullhttp.Option
		waits   []time.Duration
		pause   time.Duration // of the reader, after each byte
		got     string
		after   time.Duration
		timeout bool
	}{
		"by default":     {nil, []time.Duration{2 * time.Minute}, 0, "x", lullhttp.DefaultBodyIdleTimeout, true},
		"switched off":   {[]lullhttp.Option{lullhttp.WithBodyIdleTimeout(0)}, []time.Duration{2 * time.Minute}, 0, "xx", 2 * time.Minute, false},
		"a slow reader":  {[]lullhttp.Option{lullhttp.WithBodyIdleTimeout(second)}, nil, time.Hour, "x", time.Hour, false},
		"after a while":  {[]lullhttp.Option{lullhttp.WithBodyIdleTimeout(second)}, []time.Duration{second / 2, 3 * second}, 0, "xx", 3 * second / 2, true},
		"slow all along": {[]lullhttp.Option{lullhttp.WithBodyIdleTimeout(second)}, []time.Duration{second / 2, second / 2, second / 2, second / 2}, 0, "xxxxx", 2 * second, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, eager, dripping(c.waits...), func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
				resp, err := cl.Get(host)
				start := time.Now()
				var got []byte
				for err == nil {
					var b [1]byte
					var n int
					if n, err = resp.Body.Read(b[:]); n > 0 {
						got = append(got, b[0])
						time.Sleep(c.pause)
					}
				}
				if err == io.EOF {
					err = nil
				}
				var ne net.Error
				timeout := errors.As(err, &ne) && ne.Timeout() && errors.Is(err, os.ErrDeadlineExceeded)
				if string(got) != c.got || timeout != c.timeout || (err != nil) != c.timeout || time.Since(start) != c.after {
					t.Errorf("%q, %v after %v; want %q, a timeout: %v, after %v", got, err, time.Since(start), c.got, c.timeout, c.after)
				}
				if v := lullhttp.ClassifyError(err); c.timeout && v.Code != engine.CodeTimeout {
					t.Errorf("%+v", v)
				}
				if _, err := resp.Body.Read(make([]byte, 1)); c.timeout && !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("and then %v", err)
				}
				resp.Body.Close()
				time.Sleep(5 * time.Minute) // for the handler
			}, c.options...)
		})
	}
}

// A connection that has switched protocols may be silent, and a response without a body is
// not wrapped.
func TestWhatHasNoIdleTimeout(t *testing.T) {
	for _, body := range []io.ReadCloser{http.NoBody, pipeBody{strings.NewReader(""), io.Discard, io.NopCloser(nil)}} {
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: body, ContentLength: -1}, nil
		})
		p := lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}
		resp, err := client(t, p, lullhttp.WithBase(base), lullhttp.WithTimeoutHeader("")).Transport.RoundTrip(get(t))
		if err != nil || resp.Body != body {
			t.Errorf("%T became %T, %v", body, resp.Body, err)
		}
	}
}

// What ended an attempt is decided by who ended its context, whatever the base transport returns then and whether
// the request's host has endpoints.
func TestWhoCutTheAttemptOff(t *testing.T) {
	for _, endpoints := range []bool{false, true} {
		cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
			var attempt func(context.Context) error
			base := roundTripper(func(req *http.Request) (*http.Response, error) { return nil, attempt(req.Context()) })
			opts := []lullhttp.Option{lullhttp.WithBase(base), lullhttp.With(lull.WithRand(seed.Source(t)))}
			if endpoints {
				e := must(lullhttp.NewEndpoints(outlier.Config{}, []string{"10.0.0.1:80"}))
				opts = append(opts, lullhttp.WithEndpoints("a.example", e))
			}
			rt := transport(t, p, opts...)
			return func(ctx context.Context, f func(context.Context) error) error {
				attempt = f
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
				_, err := (&http.Client{Transport: rt}).Do(req)
				return err
			}
		})
	}
}

// An endpoint has failed when an attempt's time was over, also with an error of which nothing is known. When the caller
// goes away, it has not.
func TestAnEndpointThatDoesNotAnswerInTime(t *testing.T) {
	for name, c := range map[string]struct {
		policy   lull.Policy
		leaves   bool
		failures int64
	}{
		"the attempt's time": {lull.Policy{Attempts: 1, AttemptTimeout: time.Second}, false, 1},
		"the caller":         {lull.Policy{Attempts: 1, AttemptTimeout: time.Minute}, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, errors.New("i/o timeout")
			})
			e := must(lullhttp.NewEndpoints(outlier.Config{}, []string{"10.0.0.1:80"}))
			rt := transport(t, c.policy, lullhttp.WithBase(base), lullhttp.WithEndpoints("a.example", e))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.leaves {
				time.AfterFunc(time.Second, cancel)
			}
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
			if _, err := rt.RoundTrip(req); err == nil {
				t.Fatal("it was answered")
			}
			if at := e.Status()[0]; at.Failures+at.Unanswered != c.failures {
				t.Errorf("%s: %+v, want %d failures", name, at, c.failures)
			}
		})
	}
}
