package lullgrpc_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// Rule 8: a probe is a call that can end. Streams that were accepted and stay silent do not keep
// the breaker open for a healthy server.
func TestRule08SilentStreamsAsProbes(t *testing.T) {
	for _, c := range []struct {
		name  string
		p     lull.Policy
		unary bool // somebody makes unary calls, too
		limit time.Duration
	}{
		{name: "zero policy", unary: true, limit: 100 * time.Millisecond},
		{name: "no timeouts", p: lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}, unary: true, limit: 100 * time.Millisecond},
		{name: "streams alone", limit: engine.DefaultDeadline + 100*time.Millisecond},
	} {
		run(t, c.name, func(t *testing.T) {
			var down atomic.Bool
			down.Store(true)
			e := &echo{
				unary: func(context.Context, int, string) (string, error) {
					if down.Load() {
						return "", fails(codes.Unavailable)
					}
					return "ok", nil
				},
				stream: func(ss grpc.ServerStream, _ int) error {
					<-ss.Context().Done() // a subscription to which nothing happens
					return nil
				},
			}
			client := newClient(t, c.p, idempotent())
			cc := served(t, e)(client.DialOptions()...)
			for range 1000 {
				if _, err := call(t.Context(), cc, ""); errors.Is(err, lull.ErrCircuitOpen) {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			down.Store(false)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := client.Dependency(ctx, cc.Target(), unaryMethod).Breaker()
			d := client.Dependency(ctx, cc.Target(), unaryMethod)
			time.Sleep(b.RetryAt(d.Now()) - d.Now())
			start := time.Now()
			streams := 0
			for range 100_000 {
				for range 10 { // subscribers that come back more often than anybody calls
					if _, err := cc.NewStream(ctx, serverStreams, serverMethod); err == nil {
						streams++
					}
					synctest.Wait()
				}
				time.Sleep(10 * time.Millisecond)
				var err error
				if c.unary {
					_, err = call(ctx, cc, "")
				} else if streams < 2 {
					err = lull.ErrCircuitOpen
				}
				if err == nil {
					break
				}
			}
			if took := time.Since(start); took > c.limit {
				t.Errorf("a server that is well was out of reach for %v, want %v at most", took, c.limit)
			}
			if c.unary && streams != 1 {
				t.Errorf("%d streams were let through half-open, want 1", streams)
			}
			cancel()
		})
	}
}
