package lullotel

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
)

// downFor is an operation that fails n times, and then succeeds.
func downFor(n int) func(context.Context) error {
	return func(context.Context) error {
		if n--; n >= 0 {
			return errDown
		}
		return nil
	}
}

// StartGRPC makes A96's metrics, of calls with retries only.
func TestGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		d := dependencyOn(t, r, "dns:///pay /pay.V1/", steady())
		for fails := range 3 {
			ctx, c := r.StartGRPC(t.Context(), "dns:///pay", "/pay.V1/Charge")
			c.End(lull.Run(ctx, d, downFor(fails), lull.Operation("/pay.V1/Charge")))
		}
		all := r.collect(t)
		is := []string{"grpc.method", "pay.V1/Charge", "grpc.target", "dns:///pay"}
		all.want(t, 2, "grpc.client.call.retries", is...)
		all.want(t, 2, "grpc.client.call.retry_delay", is...)
		all.want(t, 0, "grpc.client.call.hedges")
		all.wantSum(t, 3, "grpc.client.call.retries")
		all.wantSum(t, .04, "grpc.client.call.retry_delay")
		s := r.spans.GetSpans()[2]
		expect(t, s.Attributes, "retry.dependency", "dns:///pay /pay.V1/")
		check.Equal(t, s.Name, "call dns:///pay /pay.V1/ /pay.V1/Charge", "span")
	})
}

// A call that is made while another is opened (for a token, for example) has the context of the other.
func TestGRPCCallsInsideOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		payments, tokens := dependencyOn(t, r, "dns:///pay", steady()), dependencyOn(t, r, "tokens", steady())
		ctx, c := r.StartGRPC(t.Context(), "dns:///pay", "/pay.V1/Charge")
		err := lull.Run(ctx, payments, func(ctx context.Context) error {
			return lull.Run(ctx, tokens, downFor(1), lull.Operation("POST"))
		}, lull.Operation("/pay.V1/Charge"))
		c.End(err)
		s := r.spans.GetSpans()[0]
		expect(t, s.Attributes, "retry.dependency", "dns:///pay", "retry.attempt", 1)
		if len(s.Events) != 0 {
			t.Errorf("%s has what the call for a token did: %v", s.Name, s.Events)
		}
		r.collect(t).want(t, 0, "grpc.client.call.retries")
	})
}

// The span of a stream ends with the stream, or when the caller ends it. The figures are those of
// the call, even if that is not over then.
func TestGRPCStreamEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		d := dependencyOn(t, r, "dns:///pay", steady())
		ctx, c := r.StartGRPC(t.Context(), "dns:///pay", "/pay.V1/Watch")
		op := downFor(2)
		lull.Run(ctx, d, func(ctx context.Context) error {
			time.Sleep(time.Millisecond)
			c.End(nil) // it is open
			return op(ctx)
		}, lull.Operation("/pay.V1/Watch"))
		c.End(nil)
		all := r.collect(t)
		all.want(t, 2, "retry.attempt.failures")
		all.want(t, 3, "retry.attempt.duration")
		all.want(t, 1, "grpc.client.call.retries")
		all.wantSum(t, .03, "grpc.client.call.retry_delay")
		check.Equal(t, len(r.spans.GetSpans()), 1, "spans")
	})
}

// A call is hedged or retried. Targets beyond the limit are "other", as in A66. Buckets are those
// that A66 and A96 recommend.
func TestGRPCHedgesAndTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, WithLimits(Limits{Dependencies: 1, Operations: 1}))
		p := steady()
		p.Attempts = 1
		p.Hedge = hedge.Config{Attempts: 3, Delay: time.Millisecond, Share: -1}
		d := dependencyOn(t, r, "pay", p)
		for _, to := range []struct{ target, method string }{{"dns:///a", "/pay.V1/A"}, {"dns:///b", "/pay.V1/B"}} {
			ctx, c := r.StartGRPC(t.Context(), to.target, to.method)
			_, err := lull.DoHedged(ctx, d, func(ctx context.Context) (int, error) {
				if a, _ := lull.AttemptFrom(ctx); a.Number < 2 {
					<-ctx.Done()
					return 0, ctx.Err()
				}
				return 1, nil
			}, lull.Operation(to.method))
			c.End(err)
		}
		all := r.collect(t)
		all.want(t, 0, "grpc.client.call.retries")
		all.want(t, 1, "grpc.client.call.hedges", "grpc.method", "pay.V1/A", "grpc.target", "dns:///a")
		all.want(t, 1, "grpc.client.call.hedges", "grpc.method", "other", "grpc.target", "other")
		ctx, _ := r.StartGRPC(t.Context(), "dns:///a", "/pay.V1/A")
		r.Observe(ctx, lull.Event{Kind: event.CallEnded, Dependency: "pay", Operation: "/pay.V1/A", Attempt: 2, EndedAttempt: 2, Waited: time.Second})
		all = r.collect(t)
		if b := all["grpc.client.call.retries"].(metricdata.Histogram[int64]).DataPoints[0].Bounds; !slices.Equal(b, []float64{1, 2, 3, 4, 5}) {
			t.Errorf("buckets %v", b)
		}
		if b := all["grpc.client.call.retry_delay"].(metricdata.Histogram[float64]).DataPoints[0].Bounds; len(b) != 41 || b[1] != 1e-5 || b[40] != 100 {
			t.Errorf("buckets %v", b)
		}
	})
}
