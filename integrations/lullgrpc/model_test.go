package lullgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
)

// Attempts fail at random. The attempt that answers has been sent each message once, in order, and
// the caller gets its answer.
func TestStreamsOverAServerThatFailsAtRandom(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			messages := r.IntN(40)
			size := 1 + r.IntN(6000) // beyond a window of flow control, at times
			failures := r.IntN(5)
			failAt := make([]int, failures)
			for i := range failAt {
				failAt[i] = r.IntN(messages + 2)
			}
			early := r.IntN(3) == 0 // the answer begins before everything is heard
			pad := strings.Repeat("x", size)
			e := &echo{stream: func(ss grpc.ServerStream, call int) error {
				for n := 0; ; n++ {
					if call < failures && n == failAt[call] {
						return fails(codes.Unavailable)
					}
					m := new(wrapperspb.StringValue)
					err := ss.RecvMsg(m)
					if err == io.EOF {
						if call < failures {
							return fails(codes.Unavailable)
						}
						return answer(ss, strconv.Itoa(n))
					}
					if err != nil {
						return err
					}
					if m.Value != strconv.Itoa(n)+pad {
						return status.Errorf(codes.DataLoss, "message %d is %.20q", n, m.Value)
					}
					if early && n == 0 && call == failures {
						if err := answer(ss, "begun"); err != nil {
							return err
						}
					}
				}
			}}
			p := quick()
			p.Attempts = 10
			p.Backoff = backoff.Schedule{Base: time.Second}
			p.Deadline = lull.NoTimeout
			cc := inMemory(t, e, p, idempotent(), lullgrpc.WithReplayBuffer(1<<30))
			pauses := r.IntN(2) == 0
			cs := open(t, t.Context(), cc, bidiStreams)
			sent := make(chan error)
			go func() {
				for n := range messages {
					if pauses {
						time.Sleep(300 * time.Millisecond)
					}
					if err := cs.SendMsg(wrapperspb.String(strconv.Itoa(n) + pad)); err != nil {
						sent <- fmt.Errorf("message %d: %w", n, err)
						return
					}
				}
				sent <- cs.CloseSend()
			}()
			if early && messages > 0 {
				receive(t, cs, "begun")
			}
			receive(t, cs, strconv.Itoa(messages))
			receiveEOF(t, cs)
			check.Equal(t, <-sent, nil, "seed %d: sending", seed)
			check.Equal(t, e.count(), failures+1, "seed %d: attempts", seed)
		})
	}
}

// TestPropertiesOfRetries are those of gRPC core's retry_state_test.cc (in
// testdata/fuzz_properties.json), over a stub that answers at random.
func TestPropertiesOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 3000 {
			p := quick()
			p.Attempts = 1 + r.IntN(6)
			p.Backoff = backoff.Schedule{Base: time.Duration(1 + r.IntN(1e9)), Factor: 1 + r.Float64()*3, Jitter: backoff.Jitter(r.IntN(3))}
			p.HintLimit, p.Deadline = time.Hour, lull.NoTimeout
			allowed := r.IntN(2) == 0
			var ev events
			c := newClient(t, p, ev.watch())
			var last, made codes.Code
			attempts, stopped, asked := 0, false, time.Duration(0)
			var began time.Time
			invoker := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				attempts++
				if stopped {
					t.Error("repeated after a pushback that forbids it")
				}
				if attempts > 1 {
					if !allowed {
						t.Error("repeated what may not be")
					}
					if last != codes.Unavailable && last != codes.ResourceExhausted && last != codes.DeadlineExceeded {
						t.Errorf("repeated after %v", last)
					}
					if waited := time.Since(began); waited < asked {
						t.Errorf("repeated after %v, asked for %v", waited, asked)
					}
				}
				made, began, asked = codes.Code(r.IntN(17)), time.Now(), 0
				last = made
				var values []string
				switch r.IntN(4) {
				case 0:
					ms := r.IntN(5000)
					values, asked = []string{strconv.Itoa(ms)}, time.Duration(ms)*time.Millisecond
				case 1:
					values, stopped = []string{[]string{"-1", "x", ""}[r.IntN(3)]}, true
				}
				for _, o := range opts {
					if o, ok := o.(grpc.TrailerCallOption); ok && values != nil {
						*o.TrailerAddr = metadata.MD{"grpc-retry-pushback-ms": values}
					}
				}
				return status.Error(made, "") // nil if OK
			}
			var opts []grpc.CallOption
			if allowed {
				opts = append(opts, lullgrpc.Idempotent())
			}
			err := c.UnaryClientInterceptor()(t.Context(), unaryMethod, nil, nil, nil, invoker, opts...)
			if attempts > p.Attempts {
				t.Errorf("%d attempts of %d", attempts, p.Attempts)
			}
			check.Equal(t, status.Code(err), last, "code, and that of the last attempt")
			if ended := ev.of(event.CallEnded); len(ended) != 1 || (ended[0].Reason == engine.Success) != (last == codes.OK) {
				t.Errorf("ended %+v after %v", ended, last)
			}
			for i, e := range ev.of(event.RetryScheduled) {
				if e.Verdict.Kind == lull.KindTransient && e.Delay > p.Backoff.Max(i+1) {
					t.Errorf("wait %v beyond %v", e.Delay, p.Backoff.Max(i+1))
				}
			}
		}
	})
}

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
