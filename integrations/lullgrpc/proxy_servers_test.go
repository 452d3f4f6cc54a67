//go:build servers

package lullgrpc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/server/proxy"
)

// throughProxy starts a server of gRPC, and returns a connection to it through a door of server/proxy. Unary calls may be
// repeated.
func throughProxy(t *testing.T, e *echo, p lull.Policy, opts ...grpc.DialOption) (*grpc.ClientConn, *grpc.Server, chan *proxy.Record) {
	t.Helper()
	lis := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	s := grpc.NewServer(grpc.MaxRecvMsgSize(32 << 20))
	s.RegisterService(echoDesc(), e)
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	go s.Serve(lis)
	t.Cleanup(s.Stop)
	cc, records := door(t, lis.Addr().String(), p, opts...)
	return cc, s, records
}

func door(t *testing.T, to string, p lull.Policy, opts ...grpc.DialOption) (*grpc.ClientConn, chan *proxy.Record) {
	t.Helper()
	records := make(chan *proxy.Record, 1000)
	front := must.Have(proxy.New(proxy.Config{
		Upstreams: map[string]proxy.Upstream{"echo": {
			Listen: "127.0.0.1:0", To: []string{"h2c://" + to},
			Routes: []proxy.Route{{Match: "/lull.test.Echo/Unary", Repeat: proxy.Yes}},
		}},
		Policy: func(string) lull.Policy { return p },
	}, proxy.Wiring{Drain: pace.Stretch(5 * time.Second), Record: func(r *proxy.Record) { records <- r }}))
	must.Succeed(front.Listen())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- front.Serve(ctx) }()
	cc := must.Have(grpc.NewClient(front.Address("echo").String(), append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(32 << 20)),
	}, opts...)...))
	t.Cleanup(func() {
		cc.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return cc, records
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), pace.Stretch(20*time.Second))
	t.Cleanup(cancel)
	return ctx
}

// Unary calls have their metadata, in both directions, their status with its details, and messages of any length.
func TestProxyUnary(t *testing.T) {
	t.Parallel()
	cc, _, records := throughProxy(t, &echo{unary: func(ctx context.Context, _ int, in string) (string, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		grpc.SetHeader(ctx, metadata.Pairs("h", strings.Join(md["k"], "+"), "h-bin", "\x00\xff"))
		grpc.SetTrailer(ctx, metadata.Pairs("t", "1", "t", "2", "t-bin", "\x01\xfe"))
		if in == "fail" {
			st := must.Have(status.New(codes.FailedPrecondition, "ä % no").WithDetails(&errdetails.ErrorInfo{Reason: "why"}))
			return "", st.Err()
		}
		return in, nil
	}}, quick())
	var header, trailer metadata.MD
	ctx := metadata.AppendToOutgoingContext(bounded(t), "k", "a", "k", "b", "k-bin", "\x00\x01")
	for _, in := range []string{"", "x", strings.Repeat("y", 4<<20), strings.Repeat("z", 20<<20)} {
		out, err := call(ctx, cc, in, grpc.Header(&header), grpc.Trailer(&trailer))
		if err != nil || out != in {
			t.Fatalf("%d bytes: %d came back, %v", len(in), len(out), err)
		}
		check.Slices(t, header["h"], []string{"a+b"}, "header")
		check.Slices(t, header["h-bin"], []string{"\x00\xff"}, "binary header")
		check.Slices(t, trailer["t"], []string{"1", "2"}, "trailer")
		check.Slices(t, trailer["t-bin"], []string{"\x01\xfe"}, "binary trailer")
		one := <-records
		check.Equal(t, len(one.Attempts), 1, "attempts")
		check.Equal(t, one.Protocol, "HTTP/2.0", "protocol")
		check.Equal(t, one.BytesIn >= int64(len(in)), true, "BytesIn")
	}
	_, err := call(ctx, cc, "fail")
	st := status.Convert(err)
	if len(st.Details()) != 1 || st.Code() != codes.FailedPrecondition || st.Message() != "ä % no" {
		t.Errorf("status %v, details %v", st, st.Details())
	}
	one := <-records
	check.Equal(t, len(one.Attempts), 1, "attempts of a permanent failure")
	check.Equal(t, one.Own, false, "Own")
}

// Streams of all kinds pass message by message, with the end of each side for itself.
func TestProxyStreams(t *testing.T) {
	t.Parallel()
	cc, _, _ := throughProxy(t, &echo{stream: func(ss grpc.ServerStream, _ int) error {
		method, _ := grpc.MethodFromServerStream(ss)
		in := new(wrapperspb.StringValue)
		got := ""
		for {
			if err := ss.RecvMsg(in); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			got += in.Value
			if method == bidiMethod {
				must.Succeed(ss.SendMsg(wrapperspb.String("<" + in.Value + ">")))
			}
			if method == serverMethod {
				for i := range 3 {
					must.Succeed(ss.SendMsg(wrapperspb.String(in.Value + strconv.Itoa(i))))
				}
			}
		}
		if method == clientMethod {
			return ss.SendMsg(wrapperspb.String(got))
		}
		ss.SetTrailer(metadata.Pairs("all", got))
		return status.Error(codes.DataLoss, "at the end")
	}}, lull.Policy{})
	receive := func(s grpc.ClientStream) string {
		t.Helper()
		out := new(wrapperspb.StringValue)
		if err := s.RecvMsg(out); err != nil {
			return status.Convert(err).Message()
		}
		return out.Value
	}
	bidi := open(t, bounded(t), cc, bidiStreams)
	for _, in := range []string{"a", "b", "c"} {
		must.Succeed(bidi.SendMsg(wrapperspb.String(in)))
		check.Equal(t, receive(bidi), "<"+in+">", "bidi")
	}
	must.Succeed(bidi.CloseSend())
	check.Equal(t, receive(bidi), "at the end", "end of the stream")
	check.Slices(t, bidi.Trailer()["all"], []string{"abc"}, "trailer")

	client := open(t, bounded(t), cc, clientStreams)
	for range 100 {
		must.Succeed(client.SendMsg(wrapperspb.String("x")))
	}
	must.Succeed(client.CloseSend())
	check.Equal(t, receive(client), strings.Repeat("x", 100), "client stream")

	server := open(t, bounded(t), cc, serverStreams)
	must.Succeed(server.SendMsg(wrapperspb.String("n")))
	must.Succeed(server.CloseSend())
	for _, want := range []string{"n0", "n1", "n2", "at the end"} {
		check.Equal(t, receive(server), want, "server stream")
	}
}

// UNAVAILABLE is repeated where a route allows it, and nowhere else. What was repeated says so.
func TestProxyRetries(t *testing.T) {
	t.Parallel()
	e := &echo{unary: func(_ context.Context, n int, _ string) (string, error) {
		if n < 2 {
			return "", status.Error(codes.Unavailable, "try again")
		}
		return "ok", nil
	}, stream: func(grpc.ServerStream, int) error { return status.Error(codes.Unavailable, "try again") }}
	cc, _, records := throughProxy(t, e, quick())
	var header metadata.MD
	out, err := call(bounded(t), cc, "x", grpc.Header(&header))
	if err != nil || out != "ok" {
		t.Errorf("%q, %v", out, err)
	}
	check.Equal(t, e.count(), 3, "calls of the route that may be repeated")
	check.Slices(t, header["lull-attempts"], []string{"3"}, "lull-attempts")
	one := <-records
	check.Equal(t, len(one.Attempts), 3, "attempts of the record")
	check.Equal(t, one.Attempts[0].Code != "", true, "the first has a code")

	s := open(t, bounded(t), cc, serverStreams)
	must.Succeed(s.SendMsg(wrapperspb.String("x")))
	must.Succeed(s.CloseSend())
	check.Equal(t, status.Code(s.RecvMsg(new(wrapperspb.StringValue))), codes.Unavailable, "code of the stream")
	check.Equal(t, e.count(), 4, "calls of the stream")
}

// Two proxies in a row, and a client that retries by its service config, do not multiply.
func TestProxyLayersDoNotMultiply(t *testing.T) {
	t.Parallel()
	e := &echo{unary: func(context.Context, int, string) (string, error) { return "", status.Error(codes.Unavailable, "down") }}
	inner, _, _ := throughProxy(t, e, quick())
	retries := grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy":
		{"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`)
	cc, _ := door(t, inner.Target(), quick(), retries)
	_, err := call(bounded(t), cc, "x")
	check.Equal(t, status.Code(err), codes.Unavailable, "code")
	check.Equal(t, e.count(), 4, "calls")

	lis := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	lis.Close()
	cc, records := door(t, lis.Addr().String(), quick(), retries)
	_, err = call(bounded(t), cc, "x")
	check.Equal(t, status.Code(err), codes.Unavailable, "code")
	check.Equal(t, len((<-records).Attempts), 4, "attempts")
	check.Equal(t, len(records), 0, "further requests to the proxy")
}

// The server's pushback and RetryInfo are obeyed.
func TestProxyHints(t *testing.T) {
	t.Parallel()
	e := &echo{unary: func(ctx context.Context, _ int, in string) (string, error) {
		if in == "stop" {
			grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "-1"))
			return "", status.Error(codes.Unavailable, "stop")
		}
		st := must.Have(status.New(codes.Unavailable, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Hour)}))
		return "", st.Err()
	}}
	cc, _, _ := throughProxy(t, e, quick())
	for i, in := range []string{"stop", "later"} {
		_, err := call(bounded(t), cc, in)
		check.Equal(t, status.Convert(err).Message(), in, "message")
		check.Equal(t, e.count(), i+1, "calls after %s", in)
	}
}

// The client's deadline goes on and shrinks; when it is over the call ends on both sides, and the client's cancellation too.
func TestProxyDeadlineAndCancel(t *testing.T) {
	t.Parallel()
	left, ends := make(chan time.Duration, 10), make(chan error, 10)
	e := &echo{unary: func(ctx context.Context, n int, in string) (string, error) {
		until, _ := ctx.Deadline()
		left <- time.Until(until)
		if in == "retry" && n == 0 {
			time.Sleep(50 * time.Millisecond)
			return "", status.Error(codes.Unavailable, "")
		}
		if in == "retry" {
			return "", nil
		}
		<-ctx.Done()
		ends <- ctx.Err()
		return "", status.FromContextError(ctx.Err()).Err()
	}}
	cc, _, records := throughProxy(t, e, quick())
	within := pace.Stretch(10 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if _, err := call(ctx, cc, "retry"); err != nil {
		t.Fatal(err)
	}
	first, second := <-left, <-left
	if first > within || first <= 0 || second > first-50*time.Millisecond {
		t.Errorf("the server had %v, and for the second attempt %v", first, second)
	}
	<-records

	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := call(ctx, cc, "hang")
	check.Equal(t, status.Code(err), codes.DeadlineExceeded, "code")
	if err := <-ends; err == nil {
		t.Error("the server's context has not ended")
	}
	<-records

	ctx, cancel = context.WithCancel(t.Context())
	go func() { <-left; <-left; cancel() }()
	_, err = call(ctx, cc, "hang")
	check.Equal(t, status.Code(err), codes.Canceled, "code")
	if err := <-ends; err == nil {
		t.Error("the server's context has not ended")
	}
	check.Equal(t, (<-records).Status, 499, "status of the record")
}

// A failure of the proxy's own is a status of gRPC.
func TestProxyOwnFailures(t *testing.T) {
	t.Parallel()
	lis := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	lis.Close()
	cc, records := door(t, lis.Addr().String(), quick())
	_, err := call(bounded(t), cc, "x")
	check.Equal(t, status.Code(err), codes.Unavailable, "nobody listens")
	if !strings.Contains(status.Convert(err).Message(), "4 attempts") {
		t.Errorf("message %q", status.Convert(err).Message())
	}
	one := <-records
	check.Equal(t, one.Own, true, "Own")
	check.Equal(t, len(one.Attempts), 4, "attempts")

	hang := quick()
	hang.Attempts, hang.AttemptTimeout = 1, 100*time.Millisecond
	cc, _, _ = throughProxy(t, &echo{unary: func(ctx context.Context, _ int, _ string) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}}, hang)
	_, err = call(bounded(t), cc, "x")
	check.Equal(t, status.Code(err), codes.DeadlineExceeded, "the policy's time is over")
}

// Health checks pass, also those that watch.
func TestProxyHealth(t *testing.T) {
	t.Parallel()
	cc, _, _ := throughProxy(t, &echo{}, lull.Policy{})
	c := grpc_health_v1.NewHealthClient(cc)
	got, err := c.Check(bounded(t), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || got.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", got, err)
	}
	w := must.Have(c.Watch(bounded(t), &grpc_health_v1.HealthCheckRequest{Service: "unknown"}))
	if got, err := w.Recv(); err != nil || got.Status != grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Errorf("%v, %v", got, err)
	}
}

// A graceful stop of the server loses no call: those under way end, and the next ones find the server that follows.
func TestProxyGracefulStop(t *testing.T) {
	t.Parallel()
	e := &echo{unary: func(_ context.Context, n int, in string) (string, error) {
		time.Sleep(20 * time.Millisecond)
		return in, nil
	}}
	lis := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	start := func() *grpc.Server {
		s := grpc.NewServer()
		s.RegisterService(echoDesc(), e)
		return s
	}
	s := start()
	go s.Serve(lis)
	patient := quick() // for a moment nobody listens
	patient.Attempts, patient.Backoff.Base, patient.Backoff.Cap = 100, 50*time.Millisecond, 50*time.Millisecond
	cc, _ := door(t, lis.Addr().String(), patient)
	calls := make(chan error, 400)
	for i := range 20 {
		go func() {
			for n := range 20 {
				in := fmt.Sprint(i, n)
				out, err := call(bounded(t), cc, in)
				if err == nil && out != in {
					err = fmt.Errorf("%q came back for %q", out, in)
				}
				calls <- err
			}
		}()
	}
	for n := range 400 {
		if n%100 == 50 {
			old := s
			old.GracefulStop() // closes the listener
			lis = must.Have(net.Listen("tcp", lis.Addr().String()))
			s = start()
			go s.Serve(lis)
		}
		if err := <-calls; err != nil {
			t.Errorf("call %d: %v", n, err)
		}
	}
	s.Stop()
}
