package lullgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func names(c *lullgrpc.Client) []string {
	var all []string
	c.Dependencies(func(d *lull.Dependency) bool {
		all = append(all, d.Name())
		return true
	})
	slices.Sort(all)
	return all
}

func TestADependencyForEachTargetAndPolicy(t *testing.T) {
	patient := lull.Policy{Attempts: 7}
	tenant := must.Have(lull.NewDependency("tenant", lull.Policy{}))
	type tenantKey struct{}
	c := newClient(t, lull.Policy{},
		lullgrpc.WithPolicy(patient, "/a.A/", "/b.B/Get"),
		lullgrpc.WithPolicy(lull.Policy{Attempts: 2}, "/a.A/Put"),
		lullgrpc.WithDependencies(func(ctx context.Context, target, method string) *lull.Dependency {
			if ctx.Value(tenantKey{}) != nil && target == "x" && method == "/b.B/Get" {
				return tenant
			}
			return nil
		}))
	for _, w := range []struct {
		target, method, name string
		attempts             int
	}{
		{"x", "/a.A/Get", "x/a.A/", 7},
		{"x", "/b.B/Get", "x/a.A/", 7},
		{"x", "/a.A/Put", "x/a.A/Put", 2},
		{"x", "/b.B/Put", "x", 5},
		{"y", "/a.A/Get", "y/a.A/", 7},
		{"x", "odd", "x", 5},
		{"x", "", "x", 5},
	} {
		d := c.Dependency(t.Context(), w.target, w.method)
		if d.Name() != w.name || d.Policy().Attempts != w.attempts || d != c.Dependency(t.Context(), w.target, w.method) {
			t.Errorf("%s%s: dependency %q with %d attempts, want %q with %d", w.target, w.method, d.Name(), d.Policy().Attempts, w.name, w.attempts)
		}
	}
	check.Slices(t, names(c), []string{"x", "x/a.A/", "x/a.A/Put", "y/a.A/"}, "dependencies")
	if d := c.Dependency(context.WithValue(t.Context(), tenantKey{}, 1), "x", "/b.B/Get"); d != tenant {
		t.Errorf("dependency %q, want the one that was picked", d.Name())
	}
	n := 0
	c.Dependencies(func(*lull.Dependency) bool { n++; return false })
	check.Equal(t, n, 1, "dependencies until it was told to stop")
}

func TestTargetsAreBounded(t *testing.T) {
	c := newClient(t, lull.Policy{}, lullgrpc.WithTargets(8))
	kept := c.Dependency(t.Context(), "kept", "")
	for i := range 100 {
		if c.Dependency(t.Context(), "kept", "") != kept {
			t.Fatal("the one that is always asked for was forgotten")
		}
		c.Dependency(t.Context(), strconv.Itoa(i), "")
		if n := len(names(c)); n > 8 {
			t.Fatalf("%d targets", n)
		}
	}
}

func TestMethodsAreBounded(t *testing.T) {
	c := newClient(t, lull.Policy{}, lullgrpc.WithPolicy(lull.Policy{Attempts: 7}, "/a.A/"))
	n := 0
	ask := func() {
		if d := c.Dependency(t.Context(), "x", "/a.A/M"+strconv.Itoa(n)); d.Policy().Attempts != 7 {
			t.Fatalf("method %d: the policy of others", n)
		}
		n++
	}
	for range 5000 {
		ask()
	}
	// One more is not remembered: that would copy what there is.
	if got := testing.AllocsPerRun(100, ask); got > 10 {
		t.Errorf("%v allocations for one method more", got)
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for want, o := range map[string]lullgrpc.Option{
		"a positive number of targets":     lullgrpc.WithTargets(0),
		"at least one pattern":             lullgrpc.WithPolicy(lull.Policy{}),
		`"/service/method"`:                lullgrpc.WithPolicy(lull.Policy{}, "a.A/Get"),
		`WithIdempotent("/a")`:             lullgrpc.WithIdempotent("/a"),
		`WithIdempotent("//Get")`:          lullgrpc.WithIdempotent("//Get"),
		`WithNotIdempotent("/a/b/c")`:      lullgrpc.WithNotIdempotent("/a/b/c"),
		"a number of bytes":                lullgrpc.WithReplayBuffer(-1),
		"a code from 1 to 16":              lullgrpc.WithCode(codes.OK, lull.KindTransient),
		"success, transient, rate_limited": lullgrpc.WithCode(codes.Internal, engine.KindCanceled),
		"Attempts":                         lullgrpc.WithPolicy(lull.Policy{Attempts: -1}, "/a.A/"),
		"retryThrottling.maxTokens":        lullgrpc.WithServiceConfig(lullgrpc.ServiceConfig{Throttling: new(grpcThrottle)}, lullgrpc.ServiceConfigOptions{}),
	} {
		_, err := lullgrpc.New(lull.Policy{}, nil, o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %s", err, want)
		}
	}
	if _, err := lullgrpc.New(lull.Policy{}, lullgrpc.WithPolicy(lull.Policy{}, "/a.A/"), lullgrpc.WithPolicy(lull.Policy{}, "/b.B/", "/a.A/")); err == nil {
		t.Error("two policies for one pattern")
	}
	if _, err := lullgrpc.New(lull.Policy{}, lullgrpc.WithIdempotent("/a.A/"), lullgrpc.WithNotIdempotent("/a.A/")); err == nil {
		t.Error("two words on one pattern")
	}
	_, err := lullgrpc.DialOptions(lull.Policy{Attempts: -1, HintLimit: -1})
	if p, ok := errors.AsType[engine.Problems](err); !ok || len(p) != 2 {
		t.Errorf("error %v, want two problems", err)
	}
}

// The service lull.test.Levels declares each idempotency level of protobuf.
func TestTheDescriptorNamesWhatMayBeRepeated(t *testing.T) {
	level := func(l descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodOptions {
		return &descriptorpb.MethodOptions{IdempotencyLevel: l.Enum()}
	}
	method := func(name string, o *descriptorpb.MethodOptions) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{Name: &name, InputType: proto.String(".lull.test.M"), OutputType: proto.String(".lull.test.M"), Options: o}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name:        proto.String("lull/test/levels.proto"),
		Package:     proto.String("lull.test"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Levels"), Method: []*descriptorpb.MethodDescriptorProto{
			method("Get", level(descriptorpb.MethodOptions_NO_SIDE_EFFECTS)),
			method("Put", level(descriptorpb.MethodOptions_IDEMPOTENT)),
			method("Post", level(descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN)),
			method("Plain", nil),
		}}},
	}, nil)
	must.Succeed(err)
	if _, err := protoregistry.GlobalFiles.FindFileByPath(file.Path()); err != nil { // or -count has registered it
		must.Succeed(protoregistry.GlobalFiles.RegisterFile(file))
	}
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, quick(), lullgrpc.WithNotIdempotent("/lull.test.Levels/Never"))
		for name, want := range map[string]int{"Get": 4, "Put": 4, "Post": 1, "Plain": 1, "Missing": 1, "": 1} {
			n := 0
			c.UnaryClientInterceptor()(t.Context(), "/lull.test.Levels/"+name, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				n++
				return fails(codes.Unavailable)
			})
			check.Equal(t, n, want, "%s: attempts", name)
		}
		said := newClient(t, quick(), lullgrpc.WithNotIdempotent("/lull.test.Levels/"))
		n := 0
		said.UnaryClientInterceptor()(t.Context(), "/lull.test.Levels/Get", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			n++
			return fails(codes.Unavailable)
		})
		check.Equal(t, n, 1, "attempts, where an option has said otherwise")
	})
}

var stub grpc.UnaryInvoker = func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }

func TestWhatAUnaryCallCosts(t *testing.T) {
	p := lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}
	intercept := newClient(t, p).UnaryClientInterceptor()
	opts := []grpc.CallOption{grpc.WaitForReady(true), lullgrpc.Idempotent()}
	for name, c := range map[string]struct {
		ctx  func() (context.Context, context.CancelFunc)
		want float64
	}{
		"without timeouts":         {func() (context.Context, context.CancelFunc) { return t.Context(), func() {} }, 2},
		"with a caller's deadline": {func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Minute) }, 2},
	} {
		ctx, cancel := c.ctx()
		got := testing.AllocsPerRun(1000, func() { intercept(ctx, unaryMethod, nil, nil, nil, stub, opts...) })
		cancel()
		if got > c.want {
			t.Errorf("%s: %v allocations, want %v at most", name, got, c.want)
		}
	}
	own := newClient(t, lull.Policy{}).UnaryClientInterceptor()
	if got := testing.AllocsPerRun(1000, func() { own(t.Context(), unaryMethod, nil, nil, nil, stub) }); got > 3 {
		t.Errorf("with a timeout of its own: %v allocations, want 3 at most", got)
	}
	hedged := newClient(t, hedging(2), idempotent()).UnaryClientInterceptor()
	req, reply := wrapperspb.String(""), wrapperspb.String("")
	if got := testing.AllocsPerRun(1000, func() { hedged(t.Context(), unaryMethod, req, reply, nil, stub) }); got > 4 {
		t.Errorf("hedged, and in time: %v allocations, want 4 at most", got)
	}
}

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
				must.Have(call(b.Context(), cc, ""))
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
				must.Succeed(cc.Invoke(ctx, unaryMethod, req, reply))
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

// Header, Trailer and Peer are those of the attempt whose status is returned: here of one
// that had no connection.
func TestOptionsOfTheAttemptThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{unary: func(ctx context.Context, n int, _ string) (string, error) {
			grpc.SendHeader(ctx, metadata.Pairs("h", "first"))
			grpc.SetTrailer(ctx, metadata.Pairs("t", "first"))
			return "", fails(codes.Unavailable)
		}}
		calls := 0
		away := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if calls++; calls > 1 {
				return fails(codes.Unavailable) // gRPC has not been asked, as if it had no connection
			}
			return invoker(ctx, method, req, reply, cc, opts...)
		})
		p := quick()
		p.Attempts = 2
		cc := served(t, e)(append(newClient(t, p, idempotent()).DialOptions(), away)...)
		var h, tr metadata.MD
		var pr peer.Peer
		_, err := call(t.Context(), cc, "", grpc.Header(&h), grpc.Trailer(&tr), grpc.Peer(&pr))
		if err == nil || calls != 2 {
			t.Fatalf("%v after %d attempts", err, calls)
		}
		if h != nil || tr != nil || pr.Addr != nil {
			t.Errorf("header %v, trailer %v, peer %v of an attempt that does not count", h, tr, pr.Addr)
		}
	})
}

// The server learns the number of an attempt. That of another call is not forwarded.
func TestForwardedAttemptsDoNotTravelOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		note := func(ctx context.Context) {
			md, _ := metadata.FromIncomingContext(ctx)
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprint(md["grpc-previous-rpc-attempts"], md["lull-hedge"], md["mine"]))
		}
		e := &echo{
			unary: func(ctx context.Context, n int, _ string) (string, error) {
				if note(ctx); n < 2 {
					return "", fails(codes.Unavailable)
				}
				return "", nil
			},
			stream: func(ss grpc.ServerStream, _ int) error {
				note(ss.Context())
				return answer(ss, "x")
			},
		}
		cc := inMemory(t, e, quick(), idempotent())
		ctx := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("grpc-previous-rpc-attempts", "7", "lull-hedge", "?1", "mine", "yes"))
		must.Have(call(ctx, cc, ""))
		cs := open(t, ctx, cc, serverStreams)
		send(t, cs, "")
		cs.CloseSend()
		receive(t, cs, "x")
		receiveEOF(t, cs)
		check.Slices(t, seen, []string{"[] [] [yes]", "[1] [] [yes]", "[2] [] [yes]", "[] [] [yes]"}, "seen")
		md, _ := metadata.FromOutgoingContext(ctx)
		if md["lull-hedge"] == nil {
			t.Error("the caller's metadata was changed")
		}
	})
}

// The same holds for streams. Attempts that do not count write nothing to the caller's memory,
// however late they end.
func TestOptionsOfTheStreamThatCounts(t *testing.T) {
	serving := func(ss grpc.ServerStream, n int) error {
		ss.SetTrailer(metadata.Pairs("t", fmt.Sprint(n)))
		switch n {
		case 0:
			return fails(codes.Unavailable)
		case 1:
			ss.SetTrailer(metadata.Pairs("silent", "yes"))
			<-ss.Context().Done()
			return nil
		}
		ss.SetHeader(metadata.Pairs("h", fmt.Sprint(n)))
		ss.SendHeader(nil)
		if n == 3 {
			return fails(codes.NotFound)
		}
		return answer(ss, "ok")
	}
	for _, c := range []struct {
		name  string
		away  int // the attempt that has no connection
		from  int // the server's first call
		whole bool
		want  string
	}{
		{"a message", -1, 0, true, "[2] [2] true EOF"},
		{"an answer that is an error", -1, 3, true, "[3] [3] true NotFound"},
		{"given up by the engine", -1, 0, false, "[] [0] true Unavailable"},
		{"no connection at last", 2, 0, true, "[] [] false Unavailable"},
		{"no connection at first", 0, 0, false, "[] [] false Unavailable"},
	} {
		run(t, c.name, func(t *testing.T) {
			e := &echo{calls: c.from, stream: serving}
			p := quick()
			p.Attempts, p.AttemptTimeout, p.Timeouts = 3, time.Second, lull.TimeoutsAlways
			if !c.whole {
				p.Attempts = 1
			}
			opened := 0
			away := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				if opened++; opened == c.away+1 {
					return nil, fails(codes.Unavailable)
				}
				return streamer(ctx, desc, cc, method, opts...)
			})
			client := newClient(t, p, idempotent(), lullgrpc.WithStreamTimeouts())
			cc := served(t, e)(append(client.DialOptions(), away)...)
			var h, tr metadata.MD
			var pr peer.Peer
			cs, err := cc.NewStream(t.Context(), serverStreams, serverMethod, grpc.Header(&h), grpc.Trailer(&tr), grpc.Peer(&pr))
			if err == nil {
				send(t, cs, "")
				cs.CloseSend()
				for err == nil {
					err = cs.RecvMsg(nilString())
				}
			}
			end := "EOF"
			if err != io.EOF {
				end = status.Code(err).String()
			}
			if got := fmt.Sprintln(h["h"], tr["t"], pr.Addr != nil, end); got != c.want+"\n" {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
