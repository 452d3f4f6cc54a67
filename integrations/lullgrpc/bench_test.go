package lullgrpc_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
)

// BenchmarkUnary is a call that succeeds, to a server in memory: bare, under gRPC's own retry
// policy, and under lull with and without hedging, which does not fire. Each iteration makes a bare
// call and a measured one, so that other load slows down both. ns/op is the median of the measured
// calls, x/bare its ratio to the median of the bare ones.
func BenchmarkUnary(b *testing.B) {
	const native = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s",
		"maxBackoff": "20s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}], "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}`
	hedged := lull.Policy{Hedge: hedge.Config{Attempts: 2, Delay: time.Second}}
	learned := lull.Policy{Hedge: hedge.Config{Attempts: 2, MinDelay: time.Second}}
	patient := lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout} // no deadline to send and to watch
	under := func(p lull.Policy) []grpc.DialOption { return newClient(b, p, idempotent()).DialOptions() }
	for _, c := range []struct {
		name     string
		opts     []grpc.DialOption
		deadline bool // the caller has one, nearer than the policy's
	}{
		{"bare", nil, false},
		{"bare with a deadline", nil, true},
		{"grpc-go retries", []grpc.DialOption{grpc.WithDefaultServiceConfig(native)}, false},
		{"lull without timeouts", under(patient), false},
		{"lull with the caller's deadline", under(lull.Policy{}), true},
		{"lull", under(lull.Policy{}), false},
		{"lull hedge on, not fired", under(hedged), false},
		{"lull hedge learned, not fired", under(learned), false},
	} {
		b.Run(c.name, func(b *testing.B) {
			anew := served(b, &echo{unary: func(_ context.Context, _ int, in string) (string, error) { return in, nil }})
			connect := func(opts ...grpc.DialOption) *grpc.ClientConn {
				cc := anew(opts...)
				if _, err := call(b.Context(), cc, ""); err != nil {
					b.Fatal(err)
				}
				return cc
			}
			bare, cc := connect(), connect(c.opts...)
			req, reply := wrapperspb.String("hello"), new(wrapperspb.StringValue)
			timed := func(cc *grpc.ClientConn, deadline bool) time.Duration {
				start := time.Now()
				ctx := b.Context()
				if deadline {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
					defer cancel()
				}
				if err := cc.Invoke(ctx, unaryMethod, req, reply); err != nil {
					b.Fatal(err)
				}
				return time.Since(start)
			}
			var baseline, took []time.Duration
			for b.Loop() {
				if len(took)%2 == 0 {
					baseline = append(baseline, timed(bare, false))
					took = append(took, timed(cc, c.deadline))
				} else {
					took = append(took, timed(cc, c.deadline))
					baseline = append(baseline, timed(bare, false))
				}
			}
			slices.Sort(baseline)
			slices.Sort(took)
			m, of := float64(took[len(took)/2]), float64(baseline[len(baseline)/2])
			b.ReportMetric(m, "ns/op")
			b.ReportMetric(m/of, "x/bare")
			b.ReportMetric(testing.AllocsPerRun(500, func() { timed(cc, c.deadline) }), "allocs/call")
		})
	}
}
