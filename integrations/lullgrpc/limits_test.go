package lullgrpc_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/throttle"
)

// Rules 16 and 23: a message that is too large for either side, in either direction, is too large the
// next time as well. The call is not repeated, costs no budget, and closes neither the throttle nor the circuit for
// others. It is permanent if the server answered so, and no evidence about the server otherwise.
func TestMessagesTooLarge(t *testing.T) {
	random := make([]byte, 6000) // as text: 12,000 bytes that compress to more than 6000
	for i, source := 0, seed.Source(t); i < len(random); i++ {
		random[i] = byte(source())
	}
	incompressible, large := hex.EncodeToString(random), strings.Repeat("x", 10_000)
	received, sent := grpc.MaxRecvMsgSize(1000), grpc.MaxSendMsgSize(1000)
	gzipped := grpc.UseCompressor(gzip.Name)
	for _, c := range []struct {
		name   string
		in     string
		server []grpc.ServerOption
		dial   []grpc.DialOption
		opts   []grpc.CallOption
		kind   engine.VerdictKind
	}{
		{"sent", large, nil, nil, []grpc.CallOption{grpc.MaxCallSendMsgSize(1000)}, lull.KindUnclassified},
		{"sent, by the connection's options", large, nil, []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1000))}, nil, lull.KindUnclassified},
		{"sent, by the service config", large, nil, []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig":[{"name":[{}],"maxRequestMessageBytes":1000}]}`)}, nil, lull.KindUnclassified},
		{"sent, compressed", incompressible, nil, nil, []grpc.CallOption{grpc.MaxCallSendMsgSize(1000), gzipped}, lull.KindUnclassified},
		{"received", "large", nil, nil, []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000)}, lull.KindUnclassified},
		{"received, by the service config", "large", nil, []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig":[{"name":[{}],"maxResponseMessageBytes":1000}]}`)}, nil, lull.KindUnclassified},
		{"received, compressed", "incompressible", nil, nil, []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000), gzipped}, lull.KindUnclassified},
		{"received, when decompressed", "large", nil, nil, []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000), gzipped}, lull.KindUnclassified},
		{"received, much too large", "huge", nil, nil, nil, lull.KindUnclassified}, // its end is not there yet when it is refused
		{"the server's limit", large, []grpc.ServerOption{received}, nil, nil, lull.KindPermanent},
		{"the server's own limit of 4 MiB", strings.Repeat("x", 5<<20), nil, nil, nil, lull.KindPermanent},
		{"the server's limit, compressed", incompressible, []grpc.ServerOption{received}, nil, []grpc.CallOption{gzipped}, lull.KindPermanent},
		{"the server's limit, when decompressed", large, []grpc.ServerOption{received}, nil, []grpc.CallOption{gzipped}, lull.KindPermanent},
		{"the server's limit for what it sends", "large", []grpc.ServerOption{sent}, nil, nil, lull.KindPermanent},
	} {
		for _, way := range []string{"unary", "hedged", "stream"} {
			run(t, c.name+", "+way, func(t *testing.T) {
				reply := func(in string) string {
					switch in {
					case "large":
						return large
					case "incompressible":
						return incompressible
					case "huge":
						return strings.Repeat("x", 5<<20)
					}
					return "ok"
				}
				e := &echo{
					unary: func(_ context.Context, _ int, in string) (string, error) { return reply(in), nil },
					stream: func(ss grpc.ServerStream, _ int) error {
						in := nilString()
						if err := ss.RecvMsg(in); err != nil {
							return fmt.Errorf("receiving: %w", err) // as handlers do
						}
						return answer(ss, reply(in.Value))
					},
				}
				var ev events
				p := lull.Policy{Throttle: throttle.Config{Mode: throttle.Adaptive}}
				if way == "hedged" {
					p.Hedge.Attempts, p.Hedge.Delay = 2, time.Minute
				}
				cc := served(t, e, c.server...)(append(newClient(t, p, idempotent(), ev.watch()).DialOptions(), c.dial...)...)
				calls := 30
				if len(c.in) > 1<<20 || c.in == "huge" {
					calls = 5
				}
				for range calls {
					var err error
					if way == "stream" {
						var cs grpc.ClientStream
						if cs, err = cc.NewStream(t.Context(), bidiStreams, bidiMethod, c.opts...); err != nil {
							t.Fatal(err)
						}
						if err = cs.SendMsg(wrapperspb.String(c.in)); err == nil || err == io.EOF {
							err = receiveErr(t, cs)
						}
					} else {
						_, err = call(t.Context(), cc, c.in, c.opts...)
					}
					if _, lulls := errors.AsType[*lull.Error](err); status.Code(err) != codes.ResourceExhausted || lulls {
						t.Fatalf("%v, want gRPC's own error", err)
					}
					time.Sleep(10 * time.Millisecond)
				}
				if n := len(ev.of(event.RetryScheduled)); n > 0 {
					t.Errorf("%d retries", n)
				}
				if n := e.count(); n > calls {
					t.Errorf("%d calls reached the server", n)
				}
				for _, e := range ev.of(event.CallEnded) {
					answered := way == "stream" && e.Reason == engine.Success // by the header of the large message
					if e.Attempt != 1 || e.Verdict.Kind != c.kind && !answered {
						t.Fatalf("%+v after %d attempts, want %v", e.Verdict, e.Attempt, c.kind)
					}
				}
				for range 50 {
					if _, err := call(t.Context(), cc, "small"); err != nil {
						t.Fatalf("a call with a message of the right size: %v", err)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
}

// A refusal by the server stays a refusal, whatever the size of the request and the words of the server.
func TestAServersResourceExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 10_000)
		const said = "grpc: received message larger than max (10004 vs. 1000)"
		e := &echo{unary: func(ctx context.Context, _ int, in string) (string, error) {
			switch in {
			case "a quota":
				return "", status.Error(codes.ResourceExhausted, "quota for messages of 10004 bytes exceeded (11 vs. 10 in a minute)")
			case "a limit of its own":
				return "", status.Error(codes.ResourceExhausted, "larger than max of the day: 4194304")
			case "with a pushback":
				grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "0"))
				return "", status.Error(codes.ResourceExhausted, said)
			case "with details":
				st, err := status.New(codes.ResourceExhausted, said).WithDetails(&errdetails.QuotaFailure{})
				return "", cmp.Or(err, st.Err())
			case "passed on": // what a call of its own to another server failed with
				return "", fmt.Errorf("the store: %w", status.Error(codes.ResourceExhausted, said))
			case "after a header":
				grpc.SendHeader(ctx, metadata.Pairs("a", "b"))
			}
			return "", fails(codes.ResourceExhausted)
		}}
		p := quick()
		p.Attempts, p.RateLimitedBase = 2, time.Millisecond
		cc := inMemory(t, e, p, idempotent())
		for in, want := range map[string]int{large: 2, "a quota": 2, "a limit of its own": 2, "with a pushback": 2, "with details": 2, "after a header": 2, "passed on": 1} {
			n := e.count()
			if _, err := call(t.Context(), cc, in); status.Code(err) != codes.ResourceExhausted || e.count()-n != want {
				t.Errorf("%.20s: %d attempts, want %d: %v", in, e.count()-n, want, err)
			}
		}
	})
}

// What other implementations of gRPC report of a message that is too large, by their sources.
func TestTextsOfMessagesTooLarge(t *testing.T) {
	for text, want := range map[string]engine.VerdictKind{
		"grpc: received message larger than max (5242885 vs. 4194304)":                                               lull.KindPermanent, // grpc-go, rpc_util.go
		"grpc: received message larger than max length allowed on current machine (4294967295 vs. 2147483647)":       lull.KindPermanent,
		"grpc: message after decompression larger than max (5242885 vs. 4194304)":                                    lull.KindPermanent,
		"grpc: received message after decompression larger than max 4194304":                                         lull.KindPermanent,
		"grpc: trying to send message larger than max (5242885 vs. 4194304)":                                         lull.KindPermanent, // until 1.84
		"trying to send message larger than max (5242885 vs. 4194304)":                                               lull.KindPermanent, // stream.go
		"grpc: message too large (4294967296 bytes)":                                                                 lull.KindPermanent,
		"SERVER: Received message larger than max (5242885 vs. 4194304)":                                             lull.KindPermanent, // core, message_size_filter.cc
		"Sent message larger than max (5242885 vs. 4194304)":                                                         lull.KindPermanent,
		"received metadata size exceeds hard limit (value length 20000 vs. 16384)":                                   lull.KindPermanent, // core, hpack_parse_result.cc
		"gRPC message exceeds maximum size 4194304: 5242885":                                                         lull.KindPermanent, // java, MessageDeframer
		"Decompressed gRPC message exceeds maximum size 4194304":                                                     lull.KindPermanent,
		"message too large 5242885 > 4194304":                                                                        lull.KindPermanent, // java, MessageFramer
		"Received message larger than max (5242885 vs 4194304)":                                                      lull.KindPermanent, // node
		"Received message that decompresses to a size larger than 4194304":                                           lull.KindPermanent,
		"Attempted to send message with a size larger than 4194304":                                                  lull.KindPermanent,
		"Received message exceeds the maximum configured message size.":                                              lull.KindPermanent, // dotnet
		"Sending message exceeds the maximum configured message size.":                                               lull.KindPermanent,
		"received metadata size exceeds soft limit (9000 vs. 8192), rejecting requests with some random probability": lull.KindRateLimited,
		"quota exceeded: 5242885 of 4194304":                                                                         lull.KindRateLimited,
		"":                                                                                                           lull.KindRateLimited,
	} {
		f := lullgrpc.Failure{Err: status.Error(codes.ResourceExhausted, text), Trailer: metadata.Pairs("content-type", "application/grpc")}
		if v := lullgrpc.Classify(f); v.Kind != want || v.Code != "resource_exhausted" {
			t.Errorf("%q of the server: %+v, want %v", text, v, want)
		}
		f.Trailer = nil
		if v := lullgrpc.Classify(f); (v.Kind == lull.KindUnclassified) != (want == lull.KindPermanent) {
			t.Errorf("%q of this side: %+v", text, v)
		}
	}
}

// What gRPC itself reports of a stream that a server has reset, and of an answer that is HTTP's, with the
// code of something else (RFC 9113, section 7; the tables in internal/transport/http_util.go).
func TestResetsAndHTTPStatuses(t *testing.T) {
	type frame func(id []byte) []byte // with the id of the stream
	reset := func(code byte) frame {
		return func(id []byte) []byte { return slices.Concat([]byte{0, 0, 4, 3, 0}, id, []byte{0, 0, 0, code}) }
	}
	http := func(status string) frame {
		return func(id []byte) []byte { return slices.Concat([]byte{0, 0, 5, 1, 5}, id, []byte{8, 3}, []byte(status)) }
	}
	goAway := func(code byte) frame { // of which the stream is the last; then the connection ends
		return func(id []byte) []byte {
			return slices.Concat([]byte{0, 0, 22, 7, 0, 0, 0, 0, 0}, id, []byte{0, 0, 0, code}, []byte("too_many_pings"))
		}
	}
	for _, c := range []struct {
		name  string
		frame frame
		code  codes.Code
		kind  engine.VerdictKind
	}{
		{"NO_ERROR", reset(0), codes.Internal, lull.KindUnclassified},
		{"PROTOCOL_ERROR", reset(1), codes.Internal, lull.KindUnclassified},
		{"INTERNAL_ERROR", reset(2), codes.Internal, lull.KindUnclassified},
		{"FLOW_CONTROL_ERROR", reset(3), codes.ResourceExhausted, lull.KindUnclassified}, // a defect of one side; nobody asks for fewer requests
		{"FRAME_SIZE_ERROR", reset(6), codes.Internal, lull.KindUnclassified},
		{"REFUSED_STREAM", reset(7), codes.Unavailable, lull.KindTransient},
		{"CANCEL", reset(8), codes.Canceled, lull.KindUnclassified},
		{"ENHANCE_YOUR_CALM", reset(0xb), codes.ResourceExhausted, lull.KindRateLimited},
		{"INADEQUATE_SECURITY", reset(0xc), codes.PermissionDenied, lull.KindUnclassified},
		{"an unknown reset", reset(0x77), codes.Unknown, lull.KindUnclassified},
		{"GOAWAY, then the end", goAway(0), codes.Unavailable, lull.KindTransient},
		{"GOAWAY with ENHANCE_YOUR_CALM, then the end", goAway(0xb), codes.Unavailable, lull.KindRateLimited}, // this side's keepalive, maybe
		{"400", http("400"), codes.Internal, lull.KindUnclassified},
		{"401", http("401"), codes.Unauthenticated, lull.KindUnclassified},
		{"403", http("403"), codes.PermissionDenied, lull.KindUnclassified},
		{"404", http("404"), codes.Unimplemented, lull.KindUnclassified},
		{"413", http("413"), codes.Unknown, lull.KindUnclassified},
		{"429", http("429"), codes.Unavailable, lull.KindRateLimited},
		{"431", http("431"), codes.Unknown, lull.KindUnclassified},
		{"500", http("500"), codes.Unknown, lull.KindUnclassified},
		{"502", http("502"), codes.Unavailable, lull.KindTransient},
		{"503", http("503"), codes.Unavailable, lull.KindTransient},
		{"504", http("504"), codes.Unavailable, lull.KindTransient},
	} {
		for _, way := range []string{"unary", "stream"} {
			run(t, c.name+", "+way, func(t *testing.T) {
				lis := memnet.Listen()
				t.Cleanup(func() { lis.Close() })
				go func() {
					for {
						conn, err := lis.Accept()
						if err != nil {
							return
						}
						go func() {
							defer conn.Close()
							onHeaders(conn, func(id []byte) ([]byte, bool) {
								time.Sleep(time.Millisecond) // the client has sent its message by then
								return c.frame(id), !strings.HasPrefix(c.name, "GOAWAY")
							})
							conn.(*memnet.Conn).CloseWrite() // a reset could overtake what was sent
							io.Copy(io.Discard, conn)
						}()
					}
				}()
				p := quick()
				p.Attempts, p.RateLimitedBase = 2, time.Millisecond
				var ev events
				cc := dial(t, lis.Addr().String(), p, idempotent(), ev.watch())
				var err error
				if way == "stream" {
					var cs grpc.ClientStream
					if cs, err = cc.NewStream(t.Context(), bidiStreams, bidiMethod); err == nil {
						err = receiveErr(t, cs)
					}
				} else {
					_, err = call(t.Context(), cc, "")
				}
				attempts := 1
				if c.kind == lull.KindTransient || c.kind == lull.KindRateLimited {
					attempts = 2
				}
				if ended := ev.of(event.CallEnded); status.Code(err) != c.code || len(ended) != 1 || ended[0].Verdict.Kind != c.kind || ended[0].Attempt != attempts {
					t.Errorf("%v, %+v; want %v, %d attempts", err, ended, c.kind, attempts)
				}
			})
		}
	}
}

// What gRPC itself refuses on this side, and a server for it, before any handler.
func TestRefusedByGRPCItself(t *testing.T) {
	long := metadata.Pairs("long", strings.Repeat("x", 10_000))
	for _, c := range []struct {
		name   string
		method string
		in     string
		ctx    func(context.Context) context.Context
		server []grpc.ServerOption
		dial   []grpc.DialOption
		opts   []grpc.CallOption
		code   codes.Code
		kind   engine.VerdictKind
		calls  int // that reach the handler
	}{
		{name: "no such method", method: "/lull.test.Echo/None", code: codes.Unimplemented, kind: lull.KindUnclassified},
		{name: "no such service", method: "/lull.test.None/Unary", code: codes.Unimplemented, kind: lull.KindUnclassified},
		{name: "no such compressor", opts: []grpc.CallOption{grpc.UseCompressor("none")}, code: codes.Internal, kind: lull.KindUnclassified},
		{name: "no such codec", opts: []grpc.CallOption{grpc.CallContentSubtype("none")}, code: codes.Internal, kind: lull.KindUnclassified},
		{name: "a message that cannot be marshalled", in: "\xff", code: codes.Internal, kind: lull.KindUnclassified},
		{name: "forbidden metadata", ctx: func(ctx context.Context) context.Context {
			return metadata.AppendToOutgoingContext(ctx, "a", "\n")
		}, code: codes.Internal, kind: lull.KindUnclassified},
		{name: "metadata too large for the server", ctx: func(ctx context.Context) context.Context { return metadata.NewOutgoingContext(ctx, long) },
			server: []grpc.ServerOption{grpc.MaxHeaderListSize(4000)}, code: codes.Internal, kind: lull.KindUnclassified},
		{name: "metadata of the response too large for this side", in: "long", dial: []grpc.DialOption{grpc.WithMaxHeaderListSize(4000)},
			code: codes.Internal, kind: lull.KindUnclassified, calls: 1},
		{name: "credentials without transport security", opts: []grpc.CallOption{grpc.PerRPCCredentials(secure{})}, code: codes.Unauthenticated, kind: lull.KindUnclassified}, // never sent
	} {
		run(t, c.name, func(t *testing.T) {
			e := &echo{unary: func(ctx context.Context, _ int, in string) (string, error) {
				if in == "long" {
					grpc.SetHeader(ctx, long)
				}
				return "ok", nil
			}}
			var ev events
			cc := served(t, e, c.server...)(append(newClient(t, quick(), idempotent(), ev.watch()).DialOptions(), c.dial...)...)
			if _, err := call(t.Context(), cc, "", grpc.WaitForReady(true)); err != nil { // the settings of the server have come
				t.Fatal(err)
			}
			synctest.Wait()
			ctx := t.Context()
			if c.ctx != nil {
				ctx = c.ctx(ctx)
			}
			err := cc.Invoke(ctx, cmp.Or(c.method, unaryMethod), wrapperspb.String(c.in), nilString(), c.opts...)
			ended := ev.of(event.CallEnded)
			if last := ended[len(ended)-1]; status.Code(err) != c.code || last.Verdict.Kind != c.kind || last.Attempt != 1 {
				t.Errorf("%v, %+v after %d attempts; want %v and one attempt", err, last.Verdict, last.Attempt, c.kind)
			}
			check.Equal(t, e.count()-1, c.calls, "calls of the handler")
		})
	}
}

// secure are credentials that gRPC does not send on a connection without TLS.
type secure struct{ credentials.PerRPCCredentials }

func (secure) RequireTransportSecurity() bool { return true }

// Rule 23: calls that end because the caller closes the connection say nothing about the server.
// Another connection to it goes on.
func TestTheCallerClosesTheConnection(t *testing.T) {
	for _, way := range []string{"unary", "stream"} {
		for _, mayRepeat := range []bool{false, true} {
			run(t, fmt.Sprint(way, ", idempotent ", mayRepeat), func(t *testing.T) {
				hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
				e := &echo{
					unary: func(ctx context.Context, _ int, in string) (string, error) {
						if in == "hang" {
							return "", hang(ctx)
						}
						return "ok", nil
					},
					stream: func(ss grpc.ServerStream, _ int) error { return hang(ss.Context()) },
				}
				var ev events
				var opts []lullgrpc.Option
				if mayRepeat {
					opts = append(opts, idempotent())
				}
				c := newClient(t, lull.Policy{Throttle: throttle.Config{Mode: throttle.Adaptive}}, append(opts, ev.watch())...)
				connect := served(t, e)
				first, second := connect(c.DialOptions()...), connect(c.DialOptions()...)
				var wg sync.WaitGroup
				const calls = 200
				for range calls {
					wg.Go(func() {
						if way == "unary" {
							call(t.Context(), first, "hang")
							return
						}
						cs, err := first.NewStream(t.Context(), bidiStreams, bidiMethod)
						if err != nil {
							t.Error(err)
							return
						}
						receiveErr(t, cs)
					})
				}
				synctest.Wait()
				first.Close()
				wg.Wait()
				synctest.Wait()
				ended := ev.of(event.CallEnded)
				if len(ended) != calls || len(ev.of(event.RetryScheduled)) > 0 {
					t.Errorf("%d calls, %d retries", len(ended), len(ev.of(event.RetryScheduled)))
				}
				for _, e := range ended {
					if e.Verdict.Kind != lull.KindUnclassified {
						t.Fatalf("%+v", e)
					}
				}
				for range 20 {
					must.Have(call(t.Context(), second, ""))
				}
			})
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

// tokens are credentials that some callers cannot have.
type tokens struct{ credentials.PerRPCCredentials }

type noToken struct{}

func (tokens) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if code, none := ctx.Value(noToken{}).(codes.Code); none {
		return nil, status.Error(code, "no token for this caller")
	}
	return map[string]string{"token": "yes"}, nil
}
func (tokens) RequireTransportSecurity() bool { return false }

// Rule 16: credentials that one caller cannot have, of the call or of the connection, open no circuit for others.
func TestRule16CredentialsOfOneCaller(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded} {
		for _, kind := range []string{"unary", "stream", "hedged"} {
			for _, own := range []bool{true, false} {
				run(t, fmt.Sprint(code, kind, ", of the call ", own), func(t *testing.T) {
					e := &echo{unary: func(context.Context, int, string) (string, error) { return "ok", nil }}
					var ev events
					p := lull.Policy{Throttle: throttle.Config{Mode: throttle.Adaptive}}
					p.Breaker.OpenFor = 10 * time.Second
					if kind == "hedged" {
						p.Hedge.Attempts, p.Hedge.Delay = 2, time.Second
					}
					opts := newClient(t, p, idempotent(), ev.watch()).DialOptions()
					creds := []grpc.CallOption{grpc.PerRPCCredentials(tokens{})}
					if !own {
						opts, creds = append(opts, grpc.WithPerRPCCredentials(tokens{})), nil
					}
					cc := served(t, e)(opts...)
					if !own { // without a connection that is ready the credentials of the call alone show it
						must.Have(call(t.Context(), cc, ""))
						synctest.Wait() // a connection can serve calls a moment before its state is ready
					}
					ctx := context.WithValue(t.Context(), noToken{}, code)
					for range 300 {
						var err error
						if kind == "stream" {
							_, err = cc.NewStream(ctx, serverStreams, serverMethod, creds...)
						} else {
							_, err = call(ctx, cc, "", creds...)
						}
						if status.Code(err) != code || !strings.Contains(err.Error(), "no token") {
							t.Fatal(err)
						}
						time.Sleep(20 * time.Millisecond)
					}
					if retries := ev.of(event.RetryScheduled); len(retries) > 0 {
						t.Errorf("%d retries: %+v", len(retries), retries)
					}
					for range 50 {
						if _, err := call(t.Context(), cc, ""); err != nil {
							t.Fatalf("a call with good credentials: %v", err)
						}
					}
				})
			}
		}
	}
}
