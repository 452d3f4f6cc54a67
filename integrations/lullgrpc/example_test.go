package lullgrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/hedge"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/preset"
)

// moody is a health service that is unavailable at first.
type moody struct {
	healthpb.UnimplementedHealthServer
	failures int64
	calls    atomic.Int64
}

func (m *moody) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	m.calls.Add(1)
	if n := lullgrpc.AttemptNumber(ctx); int64(n) <= m.failures {
		if err := lullgrpc.SetPushback(ctx, 5*time.Millisecond); err != nil {
			return nil, err
		}
		return nil, status.Errorf(codes.Unavailable, "not at attempt %d", n)
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func (m *moody) Watch(_ *healthpb.HealthCheckRequest, ws healthpb.Health_WatchServer) error {
	if n := lullgrpc.AttemptNumber(ws.Context()); int64(n) <= m.failures {
		return status.Errorf(codes.Unavailable, "not at attempt %d", n)
	}
	return ws.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING})
}

// serveHealth runs a moody server; the examples call it.
func serveHealth(failures int64) (addr string, stop func()) {
	return serveExample(&moody{failures: failures}, grpc.ChainUnaryInterceptor(lullgrpc.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(lullgrpc.StreamServerInterceptor()))
}

func serveExample(service healthpb.HealthServer, opts ...grpc.ServerOption) (addr string, stop func()) {
	lis := memnet.Listen()
	s := grpc.NewServer(opts...)
	healthpb.RegisterHealthServer(s, service)
	go s.Serve(lis)
	return lis.Addr().String(), s.Stop
}

// connect is grpc.NewClient for an example.
func connect(addr string, opts []grpc.DialOption) *grpc.ClientConn {
	conn, err := grpc.NewClient(addr, append(opts, local...)...)
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

// brisk waits for milliseconds, so that the examples are quick.
var brisk = lull.Policy{
	RateLimitedBase: time.Millisecond,
	Backoff:         backoff.Schedule{Base: time.Millisecond, Cap: 10 * time.Millisecond},
}

func Example() {
	addr, stop := serveHealth(2)
	defer stop()

	opts, err := lullgrpc.DialOptions(brisk,
		lullgrpc.WithIdempotent("/grpc.health.v1.Health/"), // its descriptor declares nothing
	)
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(addr, append(opts, local...)...)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	resp, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(resp.GetStatus(), err)
	// Output: SERVING <nil>
}

func Example_stream() {
	addr, stop := serveHealth(1)
	defer stop()
	client, err := lullgrpc.New(brisk, lullgrpc.WithIdempotent("/grpc.health.v1.Health/"))
	if err != nil {
		log.Fatal(err)
	}
	conn := connect(addr, client.DialOptions())
	defer conn.Close()

	stream, err := healthpb.NewHealthClient(conn).Watch(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		log.Fatal(err)
	}
	for {
		resp, err := stream.Recv()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.GetStatus())
	}
	// Output:
	// SERVING
	// EOF
}

// A call that fails for good has the status of its last attempt, and reports what was tried.
func ExampleError() {
	addr, stop := serveHealth(9)
	defer stop()
	opts, err := lullgrpc.DialOptions(brisk)
	if err != nil {
		log.Fatal(err)
	}
	conn := connect(addr, opts)
	defer conn.Close()
	health := healthpb.NewHealthClient(conn)

	_, err = health.Check(context.Background(), &healthpb.HealthCheckRequest{}, lullgrpc.Idempotent())
	fmt.Println(status.Code(err), "-", status.Convert(err).Message())
	var call *lull.Error
	if errors.As(err, &call) {
		fmt.Println(call.Reason, "after", call.Attempts, "attempts")
	}

	// Nothing declares that this one may be repeated.
	_, err = health.Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(errors.Is(err, lull.ErrNotIdempotent))
	// Output:
	// Unavailable - not at attempt 5
	// attempts_exhausted after 5 attempts
	// true
}

// Methods may have policies of their own, each with its own budgets and breakers.
func ExampleWithPolicy() {
	client, err := lullgrpc.New(preset.InternalService(),
		lullgrpc.WithPolicy(preset.BackgroundWorker(), "/shop.Reports/", "/shop.Orders/Export"),
		lullgrpc.WithIdempotent("/shop.Reports/", "/shop.Orders/Get"),
	)
	if err != nil {
		log.Fatal(err)
	}
	for _, method := range []string{"/shop.Orders/Get", "/shop.Orders/Export"} {
		d := client.Dependency(context.Background(), "orders:443", method)
		fmt.Println(d.Name(), d.Policy().Attempts)
	}
	// Output:
	// orders:443 2
	// orders:443/shop.Reports/ 8
}

// sleepy is a health service that never answers the first attempt at each call.
type sleepy struct {
	healthpb.UnimplementedHealthServer
}

func (sleepy) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if lullgrpc.AttemptNumber(ctx) == 1 {
		<-ctx.Done() // until the client has its answer
		return nil, ctx.Err()
	}
	grpc.SetHeader(ctx, metadata.Pairs("from", "another server"))
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// A second attempt starts beside the first when that is slow. (For the example the delay is fixed,
// and the share of hedged calls is not bounded. hedge.Config{Attempts: 2} is recommended.)
func Example_hedging() {
	addr, stop := serveExample(sleepy{})
	defer stop()

	opts, err := lullgrpc.DialOptions(
		lull.Policy{Hedge: hedge.Config{Attempts: 2, Delay: 5 * time.Millisecond, Share: -1}},
		lullgrpc.WithIdempotent("/grpc.health.v1.Health/Check"),
	)
	if err != nil {
		log.Fatal(err)
	}
	conn := connect(addr, opts)
	defer conn.Close()

	var header metadata.MD
	resp, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{}, grpc.Header(&header))
	fmt.Println(resp.GetStatus(), err, header["from"])
	// Output: SERVING <nil> [another server]
}

func ExampleParseServiceConfig() {
	config, err := lullgrpc.ParseServiceConfig([]byte(`{
		"methodConfig": [{
			"name": [{"service": "shop.Orders", "method": "Get"}],
			"timeout": "2s",
			"retryPolicy": {
				"maxAttempts": 4,
				"initialBackoff": "0.1s",
				"maxBackoff": "1s",
				"backoffMultiplier": 2,
				"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]
			}
		}],
		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	policy, losses := config.Methods[0].Policy(lull.Policy{}, lullgrpc.ServiceConfigOptions{})
	fmt.Println(policy.Attempts, policy.Deadline, policy.Backoff.Ceiling(1), policy.Backoff.Max(1))
	fmt.Println(losses)

	client, err := lullgrpc.New(lull.Policy{}, lullgrpc.WithServiceConfig(config, lullgrpc.ServiceConfigOptions{}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Dependency(context.Background(), "orders:443", "/shop.Orders/Get").Policy().Attempts)

	_, err = lullgrpc.ParseServiceConfig([]byte(`{"methodConfig": [{"name": [{}], "timeout": "2 sec", "retryPolicy": {"maxAttempts": 1,
		"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["NOT_THERE"]}}]}`))
	fmt.Println(err)
	// Output:
	// 4 2s 100ms 120ms
	// [retryPolicy.initialBackoff: after RESOURCE_EXHAUSTED waits grow from the policy's RateLimitedBase, where that is more]
	// 4
	// line 1: methodConfig[0].timeout is "2 sec": want a positive duration in seconds such as "0.25s", with up to nine decimals
	// line 1: methodConfig[0].retryPolicy.maxAttempts is 1: want a whole number from 2
	// line 2: methodConfig[0].retryPolicy.retryableStatusCodes[0] is "NOT_THERE": want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
}

func ExampleServiceConfigOf() {
	config, losses, err := lullgrpc.ServiceConfigOf(preset.InternalService(), lullgrpc.MethodName{Service: "shop.Orders", Method: "Get"})
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	fmt.Println(len(losses), "losses, such as", losses[len(losses)-1])
	// Output:
	// {
	//   "methodConfig": [
	//     {
	//       "name": [
	//         {
	//           "service": "shop.Orders",
	//           "method": "Get"
	//         }
	//       ],
	//       "timeout": "3s",
	//       "retryPolicy": {
	//         "maxAttempts": 2,
	//         "initialBackoff": "0.025s",
	//         "maxBackoff": "1s",
	//         "backoffMultiplier": 2,
	//         "retryableStatusCodes": [
	//           "UNAVAILABLE"
	//         ]
	//       }
	//     }
	//   ],
	//   "retryThrottling": {
	//     "maxTokens": 42,
	//     "tokenRatio": 0.1
	//   }
	// }
	// 9 losses, such as Limit: gRPC does not limit the calls in flight
}

// A server under load asks its clients to come back later, or not to come back.
func ExampleSetPushback() {
	overloaded := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if lullgrpc.AttemptNumber(ctx) > 1 { // retries are shed first, and for good
			_ = lullgrpc.DontRetry(ctx)
			return nil, status.Error(codes.ResourceExhausted, "overloaded")
		}
		_ = lullgrpc.SetPushback(ctx, time.Millisecond)
		return nil, status.Error(codes.ResourceExhausted, "busy")
	}
	addr, stop := serveExample(&moody{}, grpc.ChainUnaryInterceptor(lullgrpc.UnaryServerInterceptor(), overloaded))
	defer stop()

	opts, err := lullgrpc.DialOptions(brisk, lullgrpc.WithIdempotent("/"))
	if err != nil {
		log.Fatal(err)
	}
	conn := connect(addr, opts)
	defer conn.Close()
	_, err = healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(status.Convert(err).Message(), errors.Is(err, lull.ErrOverloaded))
	// Output: overloaded true
}
