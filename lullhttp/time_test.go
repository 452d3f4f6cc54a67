package lullhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
)

// pipes is a network of one host in memory, which virtual time reaches.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	open   atomic.Int64 // connections that the server has accepted
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		p.open.Add(1)
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// inBubble runs test in virtual time, with a client whose requests, to whatever
// host, are answered by handler.
func inBubble(t *testing.T, p lull.Policy, handler http.HandlerFunc, test func(*testing.T, *http.Client, *pipes), opts ...lullhttp.Option) {
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: handler}
		go server.Serve(network)
		base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			network.conns <- theirs
			return ours, nil
		}}
		client, err := lullhttp.NewClient(p, append(append([]lullhttp.Option{seeded(t)}, opts...), lullhttp.WithBase(base))...)
		if err != nil {
			t.Fatal(err)
		}
		test(t, client, network)
		base.CloseIdleConnections()
		server.Close()
		synctest.Wait()
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
		}, func(t *testing.T, cl *http.Client, _ *pipes) {
			start = time.Now()
			resp, err := cl.Get(host)
			read(t, resp, err)
		}, lullhttp.With(lull.WithRand(func() uint64 { return 0 })))
		if want := []time.Duration{0, 2 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("%s: attempts at %v, want %v", name, at, want)
		}
	}
}

// The timeout of an attempt covers it up to the headers, and never cuts a body
// that the caller is reading; nor does the deadline of the call.
func TestTheTimeoutDoesNotCutTheBody(t *testing.T) {
	p := eager
	p.AttemptTimeout, p.Deadline = time.Second, 2*time.Second
	inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		time.Sleep(time.Minute)
		io.WriteString(w, "second")
	}, func(t *testing.T, cl *http.Client, _ *pipes) {
		resp, err := cl.Get(host)
		if got := read(t, resp, err); got != "first second" {
			t.Errorf("the body is %q", got)
		}
	})
}

func TestAnAttemptWithoutHeadersTimesOut(t *testing.T) {
	p := eager
	p.AttemptTimeout = time.Second
	n := 0
	inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			<-r.Context().Done()
		}
	}, func(t *testing.T, cl *http.Client, _ *pipes) {
		start := time.Now()
		resp, err := cl.Get(host)
		read(t, resp, err)
		if o := lullhttp.OutcomeOf(resp); o.Attempts != 2 || time.Since(start) != time.Second {
			t.Errorf("outcome %+v after %v", o, time.Since(start))
		}
	})
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
		cl, err := lullhttp.NewClient(p, seeded(t), lullhttp.WithBase(late))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := cl.Get(host)
		read(t, resp, err)
		if o := lullhttp.OutcomeOf(resp); o.Attempts != 2 || bodies[0].closed.Load() != 1 {
			t.Errorf("outcome %+v; the late body was closed %d times", o, bodies[0].closed.Load())
		}
	})
}

// A server that sends problem details by the drop is cut off by the timeout of
// the attempt, and what it sent is still the caller's.
func TestAProblemThatNeverEnds(t *testing.T) {
	p := eager
	p.AttemptTimeout, p.Attempts = time.Second, 1
	inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(500)
		io.WriteString(w, `{"type":`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}, func(t *testing.T, cl *http.Client, _ *pipes) {
		start := time.Now()
		resp, err := cl.Get(host)
		if err != nil || time.Since(start) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != 500 || string(body) != `{"type":` || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d %q %v", resp.StatusCode, body, err)
		}
		resp.Body.Close()
	})
}

// A response that is to be discarded, and whose body does not end, is given a
// second.
func TestDrainingIsBoundedInTime(t *testing.T) {
	n := 0
	p := eager
	p.AttemptTimeout, p.Deadline = lull.NoTimeout, lull.NoTimeout
	inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.WriteHeader(503)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}, func(t *testing.T, cl *http.Client, network *pipes) {
		start := time.Now()
		resp, err := cl.Get(host)
		read(t, resp, err)
		if took := time.Since(start); took != time.Second || network.open.Load() != 2 {
			t.Errorf("answered after %v over %d connections", took, network.open.Load())
		}
	})
}

// A call that waits holds no place under the concurrency limit, and no connection.
func TestWaitingHoldsNothing(t *testing.T) {
	p := eager
	p.Limit = bulkhead.Config{Limit: 1}
	n := 0
	inBubble(t, p, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(429)
		}
	}, func(t *testing.T, cl *http.Client, network *pipes) {
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
		if n != 3 || network.open.Load() != 1 {
			t.Errorf("%d requests over %d connections, want 3 over one", n, network.open.Load())
		}
	})
}
