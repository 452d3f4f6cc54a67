package lullotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
)

// StartGRPC is Start for a call of gRPC. Call it in an interceptor that is chained before those of
// lullgrpc, and so sees a call once. (Interceptors after them, and stats handlers such as
// otelgrpc's, see each attempt.)
//
//	func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
//		ctx, call := t.StartGRPC(ctx, cc.Target(), method)
//		err := invoke(ctx, method, req, reply, cc, opts...)
//		call.End(err)
//		return err
//	}
//
// A stream lasts for longer than the call that opens it, and so do its attempts. Its span ends with
// it:
//
//	ctx, call := t.StartGRPC(ctx, cc.Target(), method)
//	stream, err := streamer(ctx, desc, cc, method, append(opts, grpc.OnFinish(call.End))...)
//	if err != nil {
//		call.End(err)
//	}
//	return stream, err
//
// It also makes the metrics of gRFC A96 that can be known here: grpc.client.call.retries,
// grpc.client.call.hedges and grpc.client.call.retry_delay. They have no zeros, as in A96. (gRPC
// itself makes transparent retries, below lullgrpc.)
func (t *Telemetry) StartGRPC(ctx context.Context, target, method string) (context.Context, *CallSpan) {
	ctx, c := t.Start(ctx, "")
	c.grpc, c.target, c.method, c.operation = true, target, method, method
	return ctx, c
}

// endedGRPC records a call that has ended. c has received its events.
func (t *Telemetry) endedGRPC(ctx context.Context, c *CallSpan, e *lull.Event, o *operation) {
	c.mu.Lock()
	hedges := c.hedges
	c.mu.Unlock()
	retries := choice.Either(hedges > 0, 0, e.Attempt-1) // a call is hedged or retried (gRFC A6)
	if retries <= 0 && hedges == 0 && e.Waited == 0 {
		return
	}
	i := &t.instruments
	by := metric.WithAttributes(
		attribute.String("grpc.method", grpcLabel(strings.TrimPrefix(o.label, "/"))),
		attribute.String("grpc.target", grpcLabel(t.targets.get(c.target).label)))
	if retries > 0 {
		i.grpcRetries.Record(ctx, int64(retries), by)
	}
	if hedges > 0 {
		i.grpcHedges.Record(ctx, int64(hedges), by)
	}
	if e.Waited > 0 {
		i.grpcDelay.Record(ctx, e.Waited.Seconds(), by)
	}
}

// grpcLabel returns label, with gRFC A66's name for all others.
func grpcLabel(label string) string {
	return choice.Either(label == Other, "other", label)
}
