package migrate

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullgrpc"
)

func grpcBefore(t *testing.T, b *backend) func(context.Context) error {
	dialer, creds := serve(t, b)
	conn, err := grpc.NewClient("passthrough:///ledger", dialer, creds, grpc.WithDefaultServiceConfig(`{"methodConfig": [{
		"name": [{"service": "grpc.health.v1.Health", "method": "Check"}],
		"retryPolicy": {
			"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "5s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return grpcCall(t, conn)
}

func grpcAfter(t *testing.T, b *backend) func(context.Context) error {
	dialer, creds := serve(t, b)
	opts, err := lullgrpc.DialOptions(lull.Policy{Attempts: 4}, lullgrpc.WithIdempotent("/grpc.health.v1.Health/Check"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///ledger", append(opts, dialer, creds)...)
	if err != nil {
		t.Fatal(err)
	}
	return grpcCall(t, conn)
}

func grpcCall(t *testing.T, conn *grpc.ClientConn) func(context.Context) error {
	t.Cleanup(func() { conn.Close() })
	return func(ctx context.Context) error {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
}

// serve starts a server for the backend, in memory.
func serve(t *testing.T, b *backend) (dialer, creds grpc.DialOption) {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health{b: b})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials())
}

type health struct {
	healthpb.UnimplementedHealthServer
	b *backend
}

func (h health) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if err := h.b.attempt(); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}
