package lullgrpc_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Header, Trailer and Peer are those of the attempt whose status is returned: here of one
// that had no connection.
func TestOptionsOfTheAttemptThatCounts(t *testing.T) {
	e := &echo{unary: func(ctx context.Context, n int, _ string) (string, error) {
		grpc.SendHeader(ctx, metadata.Pairs("h", "first"))
		grpc.SetTrailer(ctx, metadata.Pairs("t", "first"))
		return "", fails(codes.Unavailable)
	}}
	lis := listen(t)
	serve(t, lis, e)
	calls := 0
	away := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if calls++; calls > 1 {
			return fails(codes.Unavailable) // gRPC has not been asked, as if it had no connection
		}
		return invoker(ctx, method, req, reply, cc, opts...)
	})
	p := quick()
	p.Attempts = 2
	cc := dialWith(t, lis.Addr().String(), append(newClient(t, p, idempotent()).DialOptions(), away)...)
	var h, tr metadata.MD
	var pr peer.Peer
	_, err := call(t.Context(), cc, "", grpc.Header(&h), grpc.Trailer(&tr), grpc.Peer(&pr))
	if err == nil || calls != 2 {
		t.Fatalf("%v after %d attempts", err, calls)
	}
	if h != nil || tr != nil || pr.Addr != nil {
		t.Errorf("header %v, trailer %v, peer %v of an attempt that does not count", h, tr, pr.Addr)
	}
}

// What is said of the attempts of another call does not travel on.
func TestForwardedAttemptsDoNotTravelOn(t *testing.T) {
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
			if note(ctx); n < 1 {
				return "", fails(codes.Unavailable)
			}
			return "", nil
		},
		stream: func(ss grpc.ServerStream, _ int) error {
			note(ss.Context())
			return answer(ss, "x")
		},
	}
	lis := listen(t)
	serve(t, lis, e)
	cc := dial(t, lis.Addr().String(), quick(), idempotent())
	ctx := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("grpc-previous-rpc-attempts", "7", "lull-hedge", "?1", "mine", "yes"))
	if _, err := call(ctx, cc, ""); err != nil {
		t.Fatal(err)
	}
	cs, err := cc.NewStream(ctx, serverStreams, serverMethod)
	if err != nil {
		t.Fatal(err)
	}
	if err := cs.SendMsg(wrapperspb.String("")); err != nil {
		t.Fatal(err)
	}
	cs.CloseSend()
	receive(t, cs, "x")
	receiveEOF(t, cs)
	if want := []string{"[] [] [yes]", "[1] [] [yes]", "[] [] [yes]"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	if md["lull-hedge"] == nil {
		t.Error("the caller's metadata was changed")
	}
}
