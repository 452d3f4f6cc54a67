package bench

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/must"
)

// A dialer is a way to call a gRPC server.
type dialer struct {
	name    string
	does    feature
	within  time.Duration // the deadline that its caller gives to each call; 0: none
	options func() []grpc.DialOption
}

// The service is gRPC's own health check, because its client is generated code as
// every program has it.
const healthService = "grpc.health.v1.Health"

// dialing gives every dialer a server of its own, in this process, that answers at
// once. The connection is there before anything is measured.
func dialing(dialers []dialer) []subject {
	var subjects []subject
	for _, d := range dialers {
		subjects = append(subjects, subject{d.name, d.does, func(atEnd func(func())) binder {
			call, stop := d.connect(func(context.Context) error { return nil })
			atEnd(stop)
			must.Succeed(call(context.Background()))
			return call.bind
		}})
	}
	return subjects
}

// connect starts a server, whose attempts at a call are answer, and connects to it
// through memory.
func (d dialer) connect(answer op) (call op, stop func()) {
	listener := bufconn.Listen(1 << 20)
	conn := must.Have(grpc.NewClient("passthrough:///memory", append(d.options(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...))
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, answering{answer: answer})
	go func() { _ = server.Serve(listener) }() // calls fail if it could not
	stop = func() {
		_ = conn.Close()
		server.Stop()
	}

	client := healthpb.NewHealthClient(conn)
	request := &healthpb.HealthCheckRequest{Service: "things"}
	call = func(ctx context.Context) error {
		_, err := client.Check(ctx, request)
		return err
	}
	if d.within > 0 {
		call = within(call, d.within)
	}
	return call, stop
}

// within is an operation with a deadline that its caller gives to it.
func within(timeless op, d time.Duration) op {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return timeless(ctx)
	}
}

// answering is a server whose attempts end as answer does.
type answering struct {
	healthpb.UnimplementedHealthServer
	answer op
}

var serving = &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}

func (a answering) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if err := a.answer(ctx); err != nil {
		return nil, err
	}
	return serving, nil
}

// ownRetries are gRPC's own retries, with the numbers of gRFC A6's examples: as many
// attempts as the others make.
const ownRetries = `{
	"methodConfig": [{
		"name": [{"service": "` + healthService + `"}],
		"retryPolicy": {
			"maxAttempts": 4,
			"initialBackoff": "0.1s",
			"maxBackoff": "1s",
			"backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}],
	"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
}`

func dialers() []dialer {
	const all = retries | budgeted | breaks
	return []dialer{
		bareDialer("grpc-go", 0, 0),
		bareDialer("grpc-go retryPolicy+throttling", retries|budgeted, 0, grpc.WithDefaultServiceConfig(ownRetries)),
		// A deadline is sent to the server and watched on both sides, whoever sets it.
		// The zero policy is compared with this.
		bareDialer("grpc-go deadline", timed, engine.DefaultDeadline),
		lullDialer("lullgrpc", all, untimed()),
		lullDialer("lullgrpc zero policy", all|timed, lull.Policy{}),
		lullDialer("lullgrpc zero policy+hedge", all|timed|hedges|learned|bounded|firstSuccess, hedged(lull.Policy{}, learnsDelay)),
	}
}

func bareDialer(name string, does feature, within time.Duration, opts ...grpc.DialOption) dialer {
	return dialer{name, does, within, func() []grpc.DialOption { return opts }}
}

// lullDialer declares that the method may be repeated, which nothing else does.
func lullDialer(name string, does feature, p lull.Policy) dialer {
	return dialer{name, does, 0, func() []grpc.DialOption {
		return must.Have(lullgrpc.DialOptions(p, lullgrpc.With(wiring...), lullgrpc.WithIdempotent("/"+healthService+"/")))
	}}
}
