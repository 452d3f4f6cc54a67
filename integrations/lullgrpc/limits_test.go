package lullgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/throttle"
)

// Rule 16: a message that is larger than this side takes is no evidence about the server. The call
// is not repeated, and the throttle stays open for others.
func TestRule16MessagesTooLargeForThisSide(t *testing.T) {
	large := strings.Repeat("x", 10_000)
	for _, c := range []struct {
		name string
		in   string
		dial []grpc.DialOption
		opts []grpc.CallOption
	}{
		{"sent", large, nil, []grpc.CallOption{grpc.MaxCallSendMsgSize(1000)}},
		{"sent, by the connection's options", large, []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1000))}, nil},
		{"sent, by the service config", large, []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig":[{"name":[{}],"maxRequestMessageBytes":1000}]}`)}, nil},
		{"sent, compressed", large, nil, []grpc.CallOption{grpc.MaxCallSendMsgSize(10), grpc.UseCompressor(gzip.Name)}},
		{"received", "large", nil, []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000)}},
		{"received, by the service config", "large", []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig":[{"name":[{}],"maxResponseMessageBytes":1000}]}`)}, nil},
		{"received, much too large", "huge", nil, nil}, // its end is not there yet when it is refused
	} {
		for _, hedged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, hedged %v", c.name, hedged), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := &echo{unary: func(_ context.Context, _ int, in string) (string, error) {
						switch in {
						case "large":
							return large, nil
						case "huge":
							return strings.Repeat("x", 5<<20), nil
						}
						return "ok", nil
					}}
					var ev events
					p := lull.Policy{Throttle: throttle.Config{Mode: throttle.Adaptive}}
					if hedged {
						p.Hedge.Attempts, p.Hedge.Delay = 2, time.Minute
					}
					lis := bufconn.Listen(1 << 20)
					serve(t, lis, e)
					cc := dialWith(t, "passthrough:///memory", append(append(newClient(t, p, idempotent(), ev.watch()).DialOptions(), dialer(lis)), c.dial...)...)
					for range 50 {
						_, err := call(t.Context(), cc, c.in, c.opts...)
						if _, lulls := errors.AsType[*lull.Error](err); status.Code(err) != codes.ResourceExhausted || lulls {
							t.Fatalf("%v, want gRPC's own error", err)
						}
						time.Sleep(10 * time.Millisecond)
					}
					if n := len(ev.of(event.RetryScheduled)); n > 0 {
						t.Errorf("%d retries", n)
					}
					for _, e := range ev.of(event.CallEnded) {
						if e.Verdict.Kind != lull.KindUnclassified || e.Attempt != 1 {
							t.Fatalf("%+v after %d attempts: want one that counts for nothing", e.Verdict, e.Attempt)
						}
					}
					for range 100 {
						if _, err := call(t.Context(), cc, "small"); err != nil {
							t.Fatalf("a call with a message of the right size: %v", err)
						}
						time.Sleep(time.Millisecond)
					}
				})
			})
		}
	}
}

// A refusal by the server stays a refusal, whatever this side has learnt of messages that are too
// large.
func TestAServersResourceExhausted(t *testing.T) {
	large := strings.Repeat("x", 10_000)
	e := &echo{unary: func(ctx context.Context, _ int, in string) (string, error) {
		switch in {
		case "large":
			return large, nil
		case "trailers alone":
			return "", fails(codes.ResourceExhausted)
		case "with a pushback":
			grpc.SendHeader(ctx, metadata.Pairs("a", "b"))
			return "", pushback(ctx, codes.ResourceExhausted, "0")
		case "with details":
			grpc.SendHeader(ctx, metadata.Pairs("a", "b"))
			return "", informing(codes.ResourceExhausted, time.Millisecond)(ctx)
		}
		grpc.SendHeader(ctx, metadata.Pairs("a", "b")) // it has begun to answer
		return "", fails(codes.ResourceExhausted)
	}}
	lis := listen(t)
	serve(t, lis, e)
	p := quick()
	p.Attempts, p.RateLimitedBase = 2, time.Millisecond
	cc := dial(t, lis.Addr().String(), p, idempotent())
	for _, learnt := range []bool{false, true} {
		if learnt {
			if _, err := call(t.Context(), cc, "large", grpc.MaxCallRecvMsgSize(1000)); status.Code(err) != codes.ResourceExhausted {
				t.Fatal(err)
			}
		}
		for in, want := range map[string]int{"trailers alone": 2, "with a pushback": 2, "with details": 2, "after a header": 1} {
			n := e.count()
			if _, err := call(t.Context(), cc, in, grpc.MaxCallSendMsgSize(1000)); status.Code(err) != codes.ResourceExhausted || e.count()-n != want {
				t.Errorf("%s, learnt %v: %d attempts, want %d: %v", in, learnt, e.count()-n, want, err)
			}
		}
	}
}

// A server that resets streams with ENHANCE_YOUR_CALM asks for fewer requests. The first of
// a method might also be a reply that is too large; those after it are known.
func TestEnhanceYourCalm(t *testing.T) {
	lis := listen(t)
	t.Cleanup(func() { lis.Close() })
	go func() {
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				onHeaders(c, func(id []byte) ([]byte, bool) {
					return slices.Concat([]byte{0, 0, 4, 3, 0}, id, []byte{0, 0, 0, 0xb}), true
				})
			}()
		}
	}()
	p := quick()
	p.Attempts, p.RateLimitedBase = 2, time.Millisecond
	var ev events
	cc := dial(t, lis.Addr().String(), p, idempotent(), ev.watch())
	for i, want := range []engine.Kind{lull.KindUnclassified, lull.KindRateLimited, lull.KindRateLimited} {
		_, err := call(t.Context(), cc, "")
		if ended := ev.of(event.CallEnded); status.Code(err) != codes.ResourceExhausted || len(ended) != i+1 || ended[i].Verdict.Kind != want {
			t.Errorf("call %d: %v, %+v; want %v", i, err, ended, want)
		}
	}
}

// Options for RESOURCE_EXHAUSTED also apply to those made on this side.
func TestOptionsDecideOfMessagesTooLarge(t *testing.T) {
	e := &echo{unary: func(context.Context, int, string) (string, error) { return strings.Repeat("x", 10_000), nil }}
	for name, o := range map[string]lullgrpc.Option{
		"WithCode":       lullgrpc.WithCode(codes.ResourceExhausted, lull.KindTransient),
		"WithClassifier": lullgrpc.WithClassifier(func(lullgrpc.Failure) lull.Verdict { return lull.Verdict{Kind: lull.KindRateLimited} }),
	} {
		synctest.Test(t, func(t *testing.T) {
			cc := inMemory(t, e, quick(), idempotent(), o)
			_, err := call(t.Context(), cc, "", grpc.MaxCallRecvMsgSize(1000))
			t.Log(name)
			wantFailure(t, err, codes.ResourceExhausted, lull.ErrAttemptsExhausted, 4)
		})
	}
}

// tokens are credentials of a connection, which some callers cannot have.
type tokens struct{ credentials.PerRPCCredentials }

type noToken struct{}

func (tokens) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if code, none := ctx.Value(noToken{}).(codes.Code); none {
		return nil, status.Error(code, "no token for this caller")
	}
	return map[string]string{"token": "yes"}, nil
}
func (tokens) RequireTransportSecurity() bool { return false }

// Rule 16: the same holds for credentials of the connection that one caller cannot have.
func TestRule16CredentialsOfTheConnection(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded} {
		for _, kind := range []string{"unary", "stream", "hedged"} {
			t.Run(fmt.Sprint(code, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := &echo{unary: func(context.Context, int, string) (string, error) { return "ok", nil }}
					var ev events
					p := lull.Policy{Throttle: throttle.Config{Mode: throttle.Adaptive}}
					p.Breaker.OpenFor = 10 * time.Second
					if kind == "hedged" {
						p.Hedge.Attempts, p.Hedge.Delay = 2, time.Second
					}
					lis := bufconn.Listen(1 << 20)
					serve(t, lis, e)
					cc := dialWith(t, "passthrough:///memory", append(newClient(t, p, idempotent(), ev.watch()).DialOptions(), dialer(lis), grpc.WithPerRPCCredentials(tokens{}))...)
					if _, err := call(t.Context(), cc, ""); err != nil {
						t.Fatal(err)
					}
					synctest.Wait() // a connection can serve calls a moment before its state is ready
					ctx := context.WithValue(t.Context(), noToken{}, code)
					for range 300 {
						var err error
						if kind == "stream" {
							_, err = cc.NewStream(ctx, serverStreams, serverMethod)
						} else {
							_, err = call(ctx, cc, "")
						}
						if status.Code(err) != code || !strings.Contains(err.Error(), "no token") {
							t.Fatal(err)
						}
						time.Sleep(20 * time.Millisecond)
					}
					othersAreServed(t, cc, &ev)
				})
			})
		}
	}
}
