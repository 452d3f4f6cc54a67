package lullhttp_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lullhttp"
)

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
		got     string
		after   time.Duration
		timeout bool
	}{
		"by default":     {nil, []time.Duration{2 * time.Minute}, "x", lullhttp.DefaultBodyIdleTimeout, true},
		"switched off":   {[]lullhttp.Option{lullhttp.WithBodyIdleTimeout(0)}, []time.Duration{2 * time.Minute}, "xx", 2 * time.Minute, false},
		"after a while":  {[]lullhttp.Option{lullhttp.WithBodyIdleTimeout(second)}, []time.Duration{second / 2, 3 * second}, "xx", 3 * second / 2, true},
		"slow all along": {[]lullhttp.Option{lullhttp.WithBodyIdleTimeout(second)}, []time.Duration{second / 2, second / 2, second / 2, second / 2}, "xxxxx", 2 * second, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, eager, dripping(c.waits...), func(t *testing.T, cl *http.Client, _ *atomic.Int64) {
				resp, err := cl.Get(host)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				got, err := io.ReadAll(resp.Body)
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

// New sets no limit, and nobody who reads slowly is limited.
func TestASilentBodyOfNew(t *testing.T) {
	for _, silence := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			body := io.NopCloser(&pausing{pause: time.Hour})
			opts := []lullhttp.Option{lullhttp.WithBase(roundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: body, ContentLength: -1}, nil
			}))}
			if !silence {
				body = io.NopCloser(strings.NewReader("text"))
				opts = append(opts, lullhttp.WithBodyIdleTimeout(time.Second))
			}
			rt := transport(t, eager, opts...)
			resp, err := rt.RoundTrip(get(t))
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				if n, err := resp.Body.Read(make([]byte, 1)); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				if !silence {
					time.Sleep(time.Hour)
				}
			}
			resp.Body.Close()
		})
	}
}

type pausing struct{ pause time.Duration }

func (p *pausing) Read(b []byte) (int, error) {
	time.Sleep(p.pause)
	return copy(b, "x"), nil
}

// A connection that has switched protocols may be silent, and a response without a body is
// not wrapped.
func TestWhatHasNoIdleTimeout(t *testing.T) {
	for _, body := range []io.ReadCloser{http.NoBody, pipeBody{&pausing{}, io.Discard, io.NopCloser(nil)}} {
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: body, ContentLength: -1}, nil
		})
		p := lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}
		resp, err := client(t, p, lullhttp.WithBase(base), lullhttp.WithTimeoutHeader("")).Transport.RoundTrip(get(t))
		if err != nil || resp.Body != body {
			t.Errorf("%T became %T, %v", body, resp.Body, err)
		}
	}
	if _, err := lullhttp.New(eager, lullhttp.WithBodyIdleTimeout(-1)); err == nil {
		t.Error("a negative limit is accepted")
	}
}
