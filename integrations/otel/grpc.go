package lullotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lullgo/lull"
)

// StartGRPC is Start for a call of gRPC, in an interceptor that is chained before those of
// lullgrpc, and so sees a call once (interceptors after them, and stats handlers such as
// otelgrpc's, see each attempt):
//
//	func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
//		ctx, call := t.StartGRPC(ctx, cc.Target(), method)
//		err := invoke(ctx, method, req, reply, cc, opts...)
//		call.End(err)
//		return err
//	}
//
// Besides, it makes the metrics of gRFC A96 that can be known here: grpc.client.call.retries,
// grpc.client.call.hedges and grpc.client.call.retry_delay. They have no zeros, as A96 has
// it. Of a stream End is for when it is open.
func (t *Telemetry) StartGRPC(ctx context.Context, target, method string) (context.Context, *Call) {
	if t.grpc.Load() == nil {
		t.grpc.CompareAndSwap(nil, newGRPC(t.meter))
	}
	ctx, c := t.Start(ctx, "")
	c.grpc, c.target, c.operation = true, target, method
	return ctx, c
}

// grpcInstruments are those of gRFC A96, "OTel metrics for retries". Transparent retries
// are made by gRPC itself, below lullgrpc.
type grpcInstruments struct {
	retries, hedges metric.Int64Histogram
	delay           metric.Float64Histogram
	targets         *names[tally]
}

// newGRPC makes the instruments. That they are valid is tested; a meter that refuses them
// gives some that do nothing.
func newGRPC(m metric.Meter) *grpcInstruments {
	g := &grpcInstruments{targets: newNames(64, newTally)}
	counts := metric.WithExplicitBucketBoundaries(1, 2, 3, 4, 5)
	g.retries, _ = m.Int64Histogram("grpc.client.call.retries", metric.WithUnit("{retry}"), counts,
		metric.WithDescription("Number of retry attempts made during the client call."))
	g.hedges, _ = m.Int64Histogram("grpc.client.call.hedges", metric.WithUnit("{hedge}"), counts,
		metric.WithDescription("Number of hedges made during the client call."))
	g.delay, _ = m.Float64Histogram("grpc.client.call.retry_delay", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(delayBuckets...),
		metric.WithDescription("Total time of delay while there is no active attempt during the client call."))
	return g
}

// ended records a call that has; c has learnt of it.
func (g *grpcInstruments) ended(ctx context.Context, c *Call, e *lull.Event, o *operation) {
	c.mu.Lock()
	hedges, delay := c.hedges, c.delay
	c.mu.Unlock()
	retries := e.Attempt - 1
	if hedges > 0 {
		retries = 0 // a call is hedged or retried (gRFC A6)
	}
	if retries <= 0 && hedges == 0 && delay == 0 {
		return
	}
	method := o.label
	if method == Other {
		method = "other" // as A66 has it
	}
	by := metric.WithAttributes(attribute.String("grpc.method", strings.TrimPrefix(method, "/")), attribute.String("grpc.target", g.targets.get(c.target).label))
	if retries > 0 {
		g.retries.Record(ctx, int64(retries), by)
	}
	if hedges > 0 {
		g.hedges.Record(ctx, int64(hedges), by)
	}
	if delay > 0 {
		g.delay.Record(ctx, delay.Seconds(), by)
	}
}
