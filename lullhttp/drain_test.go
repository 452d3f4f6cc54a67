package lullhttp_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/lullhttp"
)

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
			c, err := lullhttp.NewClient(p, lullhttp.WithBase(base))
			if err != nil {
				t.Fatal(err)
			}
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
