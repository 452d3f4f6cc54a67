package lullgrpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
)

func TestTheNumberOfAnAttempt(t *testing.T) {
	type key struct{}
	for _, c := range []struct {
		values []string
		want   int
	}{
		{nil, 1}, {[]string{"0"}, 1}, {[]string{"1"}, 2}, {[]string{"41"}, 42}, {[]string{"2147483646"}, 2147483647},
		{[]string{"-1"}, 1}, {[]string{"x"}, 1}, {[]string{""}, 1}, {[]string{"2147483647"}, 1}, {[]string{"99999999999"}, 1}, {[]string{"1", "2"}, 1},
	} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"grpc-previous-rpc-attempts": c.values})
		if got := lullgrpc.AttemptNumber(ctx); got != c.want {
			t.Errorf("%q: attempt %d, want %d", c.values, got, c.want)
		}
		lullgrpc.UnaryServerInterceptor(lullgrpc.WithTrust(lullgrpc.TrustNobody))(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
			if n, in := lullgrpc.AttemptNumber(ctx), inbound.From(ctx).Attempt(); n != 1 || in != 1 {
				t.Errorf("%q, of somebody who is not believed: attempt %d, %d", c.values, n, in)
			}
			return nil, nil
		})
		lullgrpc.UnaryServerInterceptor()(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
			if got := lullgrpc.AttemptNumber(context.WithValue(ctx, key{}, 1)); got != c.want {
				t.Errorf("%q, intercepted: attempt %d, want %d", c.values, got, c.want)
			}
			return nil, nil
		})
	}
	if lullgrpc.AttemptNumber(t.Context()) != 1 {
		t.Error("outside of a call")
	}
}

// answersWith runs handlers on a server, intercepted or not, and returns the pushback that its
// client gets.
func answersWith(t *testing.T, intercepted bool, handle func(ctx context.Context) error) (unary, stream []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &echo{
			unary:  func(ctx context.Context, _ int, _ string) (string, error) { return "", handle(ctx) },
			stream: func(ss grpc.ServerStream, _ int) error { return handle(ss.Context()) },
		}
		var opts []grpc.ServerOption
		if intercepted {
			opts = append(opts, grpc.UnaryInterceptor(lullgrpc.UnaryServerInterceptor()), grpc.StreamInterceptor(lullgrpc.StreamServerInterceptor()))
		}
		cc := served(t, e, opts...)()
		var trailer metadata.MD
		call(t.Context(), cc, "", grpc.Trailer(&trailer))
		unary = trailer["grpc-retry-pushback-ms"]
		cs := open(t, t.Context(), cc, bidiStreams)
		receiveErr(t, cs)
		stream = cs.Trailer()["grpc-retry-pushback-ms"]
	})
	return unary, stream
}

func TestWhatAServerAsksFor(t *testing.T) {
	below := func(r lull.Reason) error { return fmt.Errorf("below: %w", &lull.Error{Reason: r}) }
	for _, c := range []struct {
		name        string
		intercepted bool
		handle      func(ctx context.Context) error
		want        []string
	}{
		{"nothing", true, func(context.Context) error { return fails(codes.Unavailable) }, nil},
		{"a wait", true, func(ctx context.Context) error {
			return errors.Join(fails(codes.Unavailable), lullgrpc.SetPushback(ctx, 1500*time.Millisecond))
		}, []string{"1500"}},
		{"a wait without the interceptor", false, func(ctx context.Context) error {
			return errors.Join(fails(codes.Unavailable), lullgrpc.SetPushback(ctx, 1500*time.Millisecond))
		}, []string{"1500"}},
		{"rounded up", true, func(ctx context.Context) error {
			lullgrpc.SetPushback(ctx, 1)
			return fails(codes.Unavailable)
		}, []string{"1"}},
		{"no more than there is room for", true, func(ctx context.Context) error {
			lullgrpc.SetPushback(ctx, 1<<62)
			return fails(codes.Unavailable)
		}, []string{"2147483647"}},
		{"the longest of several", true, func(ctx context.Context) error {
			for _, s := range []time.Duration{2, 3, 1} {
				lullgrpc.SetPushback(ctx, s*time.Second)
			}
			return fails(codes.Unavailable)
		}, []string{"3000"}},
		{"no retry", true, func(ctx context.Context) error {
			lullgrpc.SetPushback(ctx, time.Second)
			lullgrpc.DontRetry(ctx)
			lullgrpc.SetPushback(ctx, time.Second)
			return fails(codes.Unavailable)
		}, []string{"-1"}},
		{"no retry without the interceptor", false, func(ctx context.Context) error {
			lullgrpc.DontRetry(ctx)
			return fails(codes.Unavailable)
		}, []string{"-1"}},
		{"of a success", true, func(ctx context.Context) error { return lullgrpc.DontRetry(ctx) }, nil},
		{"retried below", true, func(context.Context) error { return below(engine.BudgetExhausted) }, []string{"-1"}},
		{"not retried below", true, func(context.Context) error { return below(engine.NotIdempotent) }, nil},
		{"retried below, but", true, func(ctx context.Context) error {
			lullgrpc.SetPushback(ctx, time.Second)
			return below(engine.AttemptsExhausted)
		}, []string{"1000"}},
	} {
		unary, stream := answersWith(t, c.intercepted, c.handle)
		if !slices.Equal(unary, c.want) || !slices.Equal(stream, c.want) {
			t.Errorf("%s: sent %q to a unary call and %q to a stream, want %q", c.name, unary, stream, c.want)
		}
	}
	if err := lullgrpc.DontRetry(t.Context()); err == nil {
		t.Error("no error outside of a call")
	}
}

// Work that a server does for a retry is not retried again, and the servers that it calls learn
// that it is a retry.
func TestWhatIsDoneForARetryIsNotRetried(t *testing.T) {
	for sent, want := range map[string][]string{"": {"", "1", "2"}, "1": {"1"}, "3": {"3"}} {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Attempts = 3
			bottom := &echo{
				unary:  func(context.Context, int, string) (string, error) { return "", fails(codes.Unavailable) },
				stream: func(grpc.ServerStream, int) error { return fails(codes.Unavailable) },
			}
			below := inMemory(t, bottom, p, idempotent())
			cc := served(t, &echo{
				unary: func(ctx context.Context, _ int, in string) (string, error) { return call(ctx, below, in) },
				stream: func(ss grpc.ServerStream, _ int) error {
					cs, err := below.NewStream(ss.Context(), bidiStreams, bidiMethod)
					if err != nil {
						return err
					}
					return receiveErr(t, cs)
				},
			}, grpc.UnaryInterceptor(lullgrpc.UnaryServerInterceptor()), grpc.StreamInterceptor(lullgrpc.StreamServerInterceptor()))(grpc.WithDisableRetry())
			ctx := t.Context()
			if sent != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "grpc-previous-rpc-attempts", sent)
			}
			call(ctx, cc, "")
			cs := open(t, ctx, cc, bidiStreams)
			receiveErr(t, cs)
			if got := bottom.attempts(); !slices.Equal(got, slices.Concat(want, want)) {
				t.Errorf("%q: the lowest layer saw %q, want %q twice", sent, got, want)
			}
		})
	}
}

func TestTrustMutualTLS(t *testing.T) {
	verified := credentials.TLSInfo{State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}}
	for name, c := range map[string]struct {
		ctx  context.Context
		want bool
	}{
		"no peer":         {t.Context(), false},
		"no credentials":  {peer.NewContext(t.Context(), &peer.Peer{}), false},
		"not verified":    {peer.NewContext(t.Context(), &peer.Peer{AuthInfo: credentials.TLSInfo{State: tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}}}), false},
		"verified by TLS": {peer.NewContext(t.Context(), &peer.Peer{AuthInfo: verified}), true},
	} {
		if got := lullgrpc.TrustMutualTLS(c.ctx); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
