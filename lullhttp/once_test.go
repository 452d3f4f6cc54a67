package lullhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
)

// onceBody is a body without GetBody that notes how it was used.
type onceBody struct {
	io.Reader
	closed atomic.Int64
	late   atomic.Bool // it was read after it was closed
}

func (b *onceBody) Read(p []byte) (int, error) {
	if b.closed.Load() > 0 {
		b.late.Store(true)
	}
	return b.Reader.Read(p)
}

func (b *onceBody) Close() error { b.closed.Add(1); return nil }

var refusedDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// A body that can be read once is sent again as long as nothing was read of it, and closed in the end, whatever became of
// the call. What it was not given to any more cannot read it.
func TestABodyThatIsReadOnce(t *testing.T) {
	serve := func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(b)))}, nil
	}
	refuse := func(r *http.Request) (*http.Response, error) { r.Body.Close(); return nil, refusedDial }
	unavailable := func(r *http.Request) (*http.Response, error) {
		r.Body.Close()
		return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
	}
	type attempt func(*http.Request) (*http.Response, error)
	for name, c := range map[string]struct {
		attempts []attempt // the last one for ever
		cancel   bool      // the caller leaves during the first wait
		before   error     // of WithBeforeRetry
		want     engine.Reason
		made     int
	}{
		"served":                         {attempts: []attempt{serve}, want: engine.Success, made: 1},
		"refused, then served":           {attempts: []attempt{refuse, refuse, serve}, want: engine.Success, made: 3},
		"refused":                        {attempts: []attempt{refuse}, want: engine.AttemptsExhausted, made: 3},
		"refused, and the caller leaves": {attempts: []attempt{refuse, serve}, cancel: true, want: engine.Canceled, made: 1},
		"refused, and not prepared":      {attempts: []attempt{refuse, serve}, before: errors.New("no signature"), want: engine.Permanent, made: 1},
		"not closed at once": {attempts: []attempt{func(r *http.Request) (*http.Response, error) {
			go func() {
				time.Sleep(time.Minute)
				r.Body.Close()
			}()
			return nil, refusedDial
		}, serve}, want: engine.Success, made: 2},
		"read too late": {attempts: []attempt{func(r *http.Request) (*http.Response, error) {
			go func() {
				time.Sleep(time.Millisecond)
				if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
					t.Errorf("it was read by an attempt that had ended: %d, %v", n, err)
				}
				r.Body.Close()
			}()
			return nil, refusedDial
		}, serve}, want: engine.Success, made: 2},
		"read, then refused": {attempts: []attempt{func(r *http.Request) (*http.Response, error) {
			r.Body.Read(make([]byte, 1))
			r.Body.Close()
			return nil, refusedDial
		}, serve}, want: engine.NotReplayable, made: 1},
		"an answer without reading it": {attempts: []attempt{unavailable, serve}, want: engine.NotReplayable, made: 1},
		"never closed":                 {attempts: []attempt{func(*http.Request) (*http.Response, error) { return nil, refusedDial }}, want: engine.AttemptsExhausted, made: 3},
		"a panic":                      {attempts: []attempt{func(r *http.Request) (*http.Response, error) { r.Body.Close(); panic("bug") }}, want: engine.Panicked, made: 1},
	} {
		for _, limit := range []time.Duration{0, lull.NoTimeout} {
			run(t, name, func(t *testing.T) {
				p := eager
				p.AttemptTimeout = limit
				p.Backoff.Base = 10 * time.Millisecond
				made := 0
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					made++
					return c.attempts[min(made, len(c.attempts))-1](r)
				})
				var reason engine.Reason
				options := []lullhttp.Option{lullhttp.WithBase(base), lullhttp.WithObserver(observer(func(_ context.Context, e lull.Event) { reason = e.Reason }))}
				if c.before != nil {
					options = append(options, lullhttp.WithBeforeRetry(func(*http.Request, error) error { return c.before }))
				}
				body := &onceBody{Reader: strings.NewReader("hello")}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel {
					time.AfterFunc(time.Millisecond, cancel)
				}
				req, _ := http.NewRequestWithContext(ctx, "PUT", host, body)
				rt := client(t, p, options...).Transport
				var resp *http.Response
				err := recovered(func() (err error) { resp, err = rt.RoundTrip(req); return err })
				if reason != c.want || made != c.made {
					t.Errorf("%v after %d attempts: %v", reason, made, err)
				}
				if c.want == engine.Success {
					if got := read(t, resp, err); got != "hello" {
						t.Errorf("%q was sent", got)
					}
				}
				synctest.Wait()
				if body.closed.Load() == 0 || body.late.Load() {
					t.Errorf("closed %d times, read afterwards: %v", body.closed.Load(), body.late.Load())
				}
				time.Sleep(time.Hour)
			})
		}
	}
}

// recovered is the error of f, or that it panicked.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("panic")
		}
	}()
	return f()
}

// What may have been sent is not repeated, whatever the error says, if the operation is not safe to repeat.
func TestWhatMayHaveBeenSentIsNotRepeated(t *testing.T) {
	cut := errors.New("cut")
	for name, base := range map[string]func(t *testing.T) http.RoundTripper{
		"the connection is cut": func(t *testing.T) http.RoundTripper {
			return handled(func(conn net.Conn, _ int) { conn.Read(make([]byte, 1<<14)) })
		},
		"the server is silent": func(t *testing.T) http.RoundTripper {
			return handled(func(conn net.Conn, _ int) { io.Copy(io.Discard, conn) })
		},
		"a transport that reports nothing": func(t *testing.T) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { r.Body.Close(); return nil, io.ErrUnexpectedEOF })
		},
		"a transport that reports and sends by other means": func(t *testing.T) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				httptrace.ContextClientTrace(r.Context()).GetConn("example.test:80")
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
				return nil, io.ErrUnexpectedEOF
			})
		},
		"a transport that had a connection once": func(t *testing.T) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn("example.test:80")
				trace.GotConn(httptrace.GotConnInfo{})
				trace.GetConn("example.test:80")
				r.Body.Close()
				return nil, io.ErrUnexpectedEOF
			})
		},
		"an unknown error before a connection": func(t *testing.T) http.RoundTripper {
			return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, cut }}
		},
	} {
		run(t, name, func(t *testing.T) {
			made := 0
			inner := base(t)
			counted := roundTripper(func(r *http.Request) (*http.Response, error) { made++; return inner.RoundTrip(r) })
			req, _ := http.NewRequest("POST", host, strings.NewReader("hello"))
			_, err := client(t, eager, lullhttp.WithBase(counted)).Transport.RoundTrip(req)
			if err == nil || made != 1 {
				t.Errorf("%v after %d attempts", err, made)
			}
			if tr, ok := inner.(*http.Transport); ok {
				tr.CloseIdleConnections()
			}
		})
	}
}

// The caller's own trace hears all that it would hear without lull.
func TestTheCallersTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memnet.NewServer(t, http.NotFoundHandler())
		for _, limit := range []int{0, 1} {
			tr := &http.Transport{DialContext: memnet.Dial, MaxConnsPerHost: limit}
			for _, rt := range []http.RoundTripper{tr, client(t, eager, lullhttp.WithBase(tr)).Transport} {
				var heard []string
				note := func(what string) { heard = append(heard, what) }
				trace := &httptrace.ClientTrace{
					GetConn:              func(string) { note("GetConn") },
					ConnectStart:         func(string, string) { note("ConnectStart") },
					GotConn:              func(httptrace.GotConnInfo) { note("GotConn") },
					WroteHeaders:         func() { note("WroteHeaders") },
					GotFirstResponseByte: func() { note("GotFirstResponseByte") },
				}
				req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "POST", s.URL, nil)
				resp, err := rt.RoundTrip(req)
				read(t, resp, err)
				tr.CloseIdleConnections()
				if got, want := strings.Join(heard, " "), "GetConn ConnectStart GotConn WroteHeaders GotFirstResponseByte"; got != want {
					t.Errorf("%T, limit %d: %s, want %s", rt, limit, got, want)
				}
			}
		}
	})
}
