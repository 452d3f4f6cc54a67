package lullgrpc_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/must"
)

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
		if want := []string{"[] [] [yes]", "[1] [] [yes]", "[2] [] [yes]", "[] [] [yes]"}; !slices.Equal(seen, want) {
			t.Errorf("%q, want %q", seen, want)
		}
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
