package lullgrpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/event"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// The service that the tests call, described by hand. Its messages are wrapperspb.StringValue, and
// a script decides its answers.
const (
	unaryMethod  = "/lull.test.Echo/Unary"
	serverMethod = "/lull.test.Echo/Server"
	clientMethod = "/lull.test.Echo/Client"
	bidiMethod   = "/lull.test.Echo/Bidi"
)

var (
	serverStreams = &grpc.StreamDesc{StreamName: "Server", ServerStreams: true}
	clientStreams = &grpc.StreamDesc{StreamName: "Client", ClientStreams: true}
	bidiStreams   = &grpc.StreamDesc{StreamName: "Bidi", ServerStreams: true, ClientStreams: true}
)

// echo is a server that follows a script. Calls are counted from 0.
type echo struct {
	unary  func(ctx context.Context, call int, in string) (string, error)
	stream func(ss grpc.ServerStream, call int) error

	mu       sync.Mutex
	calls    int
	previous []string // grpc-previous-rpc-attempts of each call; "" if it had none
}

func (e *echo) begin(ctx context.Context) int {
	md, _ := metadata.FromIncomingContext(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	e.previous = append(e.previous, strings.Join(md["grpc-previous-rpc-attempts"], ","))
	return e.calls - 1
}

func (e *echo) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}

func (e *echo) attempts() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.previous)
}

func echoDesc() *grpc.ServiceDesc {
	stream := func(srv any, ss grpc.ServerStream) error {
		e := srv.(*echo)
		return e.stream(ss, e.begin(ss.Context()))
	}
	return &grpc.ServiceDesc{
		ServiceName: "lull.test.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Unary", Handler: func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.StringValue)
			if err := dec(in); err != nil {
				return nil, err
			}
			handle := func(ctx context.Context, req any) (any, error) {
				e := srv.(*echo)
				out, err := e.unary(ctx, e.begin(ctx), req.(*wrapperspb.StringValue).Value)
				if err != nil {
					return nil, err
				}
				return wrapperspb.String(out), nil
			}
			if interceptor == nil {
				return handle(ctx, in)
			}
			return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: unaryMethod}, handle)
		}}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Server", Handler: stream, ServerStreams: true},
			{StreamName: "Client", Handler: stream, ClientStreams: true},
			{StreamName: "Bidi", Handler: stream, ServerStreams: true, ClientStreams: true},
		},
	}
}

// serve starts a server on a listener, and stops it at the end of the test.
func serve(t testing.TB, lis net.Listener, e *echo, opts ...grpc.ServerOption) *grpc.Server {
	t.Helper()
	s := grpc.NewServer(opts...)
	s.RegisterService(echoDesc(), e)
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(lis)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-served
	})
	return s
}

// unused is the address of a server that is away.
func unused() string {
	lis := memnet.Listen()
	defer lis.Close()
	return lis.Addr().String()
}

// dial connects to target under a policy.
func dial(t testing.TB, target string, p lull.Policy, opts ...lullgrpc.Option) *grpc.ClientConn {
	t.Helper()
	return dialWith(t, target, newClient(t, p, opts...).DialOptions()...)
}

func newClient(t testing.TB, p lull.Policy, opts ...lullgrpc.Option) *lullgrpc.Client {
	t.Helper()
	return must.Have(lullgrpc.New(p, append([]lullgrpc.Option{lullgrpc.With(lull.WithRand(seed.Source(t)))}, opts...)...))
}

func dialWith(t testing.TB, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc := must.Have(grpc.NewClient(target, slices.Concat(local, opts)...))
	t.Cleanup(func() { cc.Close() })
	return cc
}

// served starts a server that uses nothing but memory, for tests in a bubble of package synctest, and returns what
// connects to it.
func served(t testing.TB, e *echo, opts ...grpc.ServerOption) (connect func(...grpc.DialOption) *grpc.ClientConn) {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	serve(t, lis, e, opts...)
	return func(opts ...grpc.DialOption) *grpc.ClientConn {
		return dialWith(t, "passthrough:///memory", append(opts, dialer(lis))...)
	}
}

// inMemory is a connection to such a server under a policy.
func inMemory(t testing.TB, e *echo, p lull.Policy, opts ...lullgrpc.Option) *grpc.ClientConn {
	t.Helper()
	return served(t, e)(newClient(t, p, opts...).DialOptions()...)
}

// open opens a stream of that kind.
func open(t testing.TB, ctx context.Context, cc *grpc.ClientConn, kind *grpc.StreamDesc, opts ...grpc.CallOption) grpc.ClientStream {
	t.Helper()
	return must.Have(cc.NewStream(ctx, kind, "/lull.test.Echo/"+kind.StreamName, opts...))
}

// run is t.Run in virtual time.
func run(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func dialer(lis *bufconn.Listener) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) })
}

func call(ctx context.Context, cc *grpc.ClientConn, in string, opts ...grpc.CallOption) (string, error) {
	out := new(wrapperspb.StringValue)
	err := cc.Invoke(ctx, unaryMethod, wrapperspb.String(in), out, opts...)
	return out.Value, err
}

// quick is a policy that retries almost at once. Only the number of attempts limits it.
func quick() lull.Policy {
	p := lull.Policy{Attempts: 4, Backoff: backoff.Schedule{Base: time.Millisecond, Cap: time.Millisecond, Jitter: backoff.None}}
	p.Budget.Unlimited = true
	p.Breaker.Off = true
	return p
}

// idempotent lets every method be repeated.
func idempotent() lullgrpc.Option { return lullgrpc.WithIdempotent("/") }

// events records the events of a dependency.
type events struct {
	mu  sync.Mutex
	all []lull.Event
}

func (r *events) Observe(_ context.Context, e lull.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, e)
}

func (r *events) of(kind event.Kind) []lull.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []lull.Event
	for _, e := range r.all {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// waits returns the waits that were scheduled.
func (r *events) waits() []time.Duration {
	var waits []time.Duration
	for _, e := range r.of(event.RetryScheduled) {
		waits = append(waits, e.Delay)
	}
	return waits
}

func (r *events) watch() lullgrpc.Option { return lullgrpc.WithObserver(r) }

// pushback answers with a status and a pushback.
func pushback(ctx context.Context, code codes.Code, values ...string) error {
	grpc.SetTrailer(ctx, metadata.MD{"grpc-retry-pushback-ms": values})
	return status.Error(code, "as scripted")
}

func fails(code codes.Code) error { return status.Error(code, "as scripted") }

// wantFailure checks the error of a call.
func wantFailure(t testing.TB, err error, code codes.Code, reason error, attempts int) {
	t.Helper()
	check.Equal(t, status.Code(err), code, "code (%v)", err)
	if reason == nil {
		return
	}
	check.Is(t, err, reason, "error")
	if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != attempts {
		t.Errorf("error %#v, want a *lull.Error after %d attempts", err, attempts)
	}
}

// send, receive and receiveEOF are steps of a streaming client.
func send(t testing.TB, cs grpc.ClientStream, text string) {
	t.Helper()
	if err := cs.SendMsg(wrapperspb.String(text)); err != nil {
		t.Fatalf("sending %.20q: %v", text, err)
	}
}

func receive(t testing.TB, cs grpc.ClientStream, want string) {
	t.Helper()
	got := new(wrapperspb.StringValue)
	if err := cs.RecvMsg(got); err != nil || got.Value != want {
		t.Fatalf("received %.20q, %v; want %.20q", got.Value, err, want)
	}
}

func receiveErr(t testing.TB, cs grpc.ClientStream) error {
	t.Helper()
	got := new(wrapperspb.StringValue)
	err := cs.RecvMsg(got)
	if err == nil {
		t.Fatalf("received %.20q, want an error", got.Value)
	}
	return err
}

func receiveEOF(t testing.TB, cs grpc.ClientStream) {
	t.Helper()
	if err := receiveErr(t, cs); err != io.EOF {
		t.Fatalf("received %v, want io.EOF", err)
	}
}

// heard, answer are steps of a streaming server.
func heard(ss grpc.ServerStream, want ...string) error {
	for _, w := range want {
		got := new(wrapperspb.StringValue)
		if err := ss.RecvMsg(got); err != nil {
			return err
		}
		if got.Value != w {
			return status.Errorf(codes.InvalidArgument, "heard %q, want %q", got.Value, w)
		}
	}
	return nil
}

func heardEOF(ss grpc.ServerStream) error {
	if err := ss.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
		return status.Errorf(codes.InvalidArgument, "heard %v, want io.EOF", err)
	}
	return nil
}

func answer(ss grpc.ServerStream, texts ...string) error {
	for _, text := range texts {
		if err := ss.SendMsg(wrapperspb.String(text)); err != nil {
			return err
		}
	}
	return nil
}

func nilString() *wrapperspb.StringValue { return new(wrapperspb.StringValue) }

type grpcThrottle = budget.GRPCConfig

// local connects to servers in the memory of this program, without TLS.
var local = []grpc.DialOption{
	grpc.WithTransportCredentials(insecure.NewCredentials()),
	grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return memnet.Dial(ctx, "tcp", addr) }),
}
