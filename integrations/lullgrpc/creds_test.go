package lullgrpc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
)

type failingCreds struct{}

func (failingCreds) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, status.Error(codes.Unavailable, "the token server is away")
}
func (failingCreds) RequireTransportSecurity() bool { return false }

// Rule 16: credentials that one caller cannot have open no circuit for others.
func TestRule16CredentialsOfOneCaller(t *testing.T) {
	for _, kind := range []string{"unary", "stream", "hedged"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &echo{unary: func(context.Context, int, string) (string, error) { return "ok", nil },
					stream: func(ss grpc.ServerStream, _ int) error { return answer(ss, "ok") }}
				var ev events
				var p lull.Policy
				p.Breaker.OpenFor = 10 * time.Second
				if kind == "hedged" {
					p.Hedge.Attempts, p.Hedge.Delay = 2, time.Second
				}
				cc := inMemory(t, e, p, idempotent(), ev.watch())
				for range 300 {
					var err error
					if kind == "stream" {
						_, err = cc.NewStream(t.Context(), serverStreams, serverMethod, grpc.PerRPCCredentials(failingCreds{}))
					} else {
						_, err = call(t.Context(), cc, "", grpc.PerRPCCredentials(failingCreds{}))
					}
					if status.Code(err) != codes.Unavailable {
						t.Fatal(err)
					}
					time.Sleep(20 * time.Millisecond)
				}
				othersAreServed(t, cc, &ev)
			})
		})
	}
}

// othersAreServed checks that credentials that one caller could not have change nothing for others:
// nothing was repeated, and calls of others succeed.
func othersAreServed(t *testing.T, cc *grpc.ClientConn, ev *events) {
	t.Helper()
	if n := len(ev.of(event.RetryScheduled)); n > 0 {
		t.Errorf("%d retries: %+v", n, ev.of(event.RetryScheduled))
	}
	for range 50 {
		if _, err := call(t.Context(), cc, ""); err != nil {
			t.Fatalf("a call with good credentials: %v", err)
		}
	}
}
