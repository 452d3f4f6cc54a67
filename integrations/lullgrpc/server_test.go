package lullgrpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/server/admission"
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
		check.Equal(t, lullgrpc.AttemptNumber(ctx), c.want, "%q: attempt", c.values)
		lullgrpc.UnaryServerInterceptor(lullgrpc.WithTrust(lullgrpc.TrustNobody))(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
			if n, in := lullgrpc.AttemptNumber(ctx), inbound.From(ctx).Attempt(); n != 1 || in != 1 {
				t.Errorf("%q, of somebody who is not believed: attempt %d, %d", c.values, n, in)
			}
			return nil, nil
		})
		lullgrpc.UnaryServerInterceptor()(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
			check.Equal(t, lullgrpc.AttemptNumber(context.WithValue(ctx, key{}, 1)), c.want, "%q, intercepted: attempt", c.values)
			return nil, nil
		})
	}
	check.Equal(t, lullgrpc.AttemptNumber(t.Context()), 1, "attempt outside of a call")
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
		check.Equal(t, lullgrpc.TrustMutualTLS(c.ctx), c.want, "%s", name)
	}
}

// admitted is a server with admission control, and what connects to it.
func admitted(t *testing.T, e *echo, c admission.Config, observe func(admission.Event), trust ...lullgrpc.ServerOption) (g *admission.Gate, connect func(...grpc.DialOption) *grpc.ClientConn) {
	t.Helper()
	a := must.Have(admission.New(c, admission.WithObserver(observe), admission.WithRand(seed.Source(t))))
	g = admission.NewGate(a)
	return g, served(t, e, grpc.UnaryInterceptor(lullgrpc.AdmitUnary(g, trust...)), grpc.StreamInterceptor(lullgrpc.AdmitStream(g, trust...)))
}

// A refused call learns when to come back, the second time not to. lull's client obeys, and a call
// that is let in gives its place back.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{
			unary: func(_ context.Context, _ int, in string) (string, error) {
				time.Sleep(8 * time.Second)
				return in, nil
			},
			stream: func(grpc.ServerStream, int) error { time.Sleep(8 * time.Second); return nil },
		}
		var refused []admission.Event
		g, connect := admitted(t, e, admission.Config{Limit: 1, MaxWait: -1}, func(e admission.Event) {
			if e.Decision.Outcome == admission.Refused {
				refused = append(refused, e)
			}
		})
		cc := connect(newClient(t, quick(), idempotent()).DialOptions()...)
		first := make(chan error)
		go func() {
			_, err := call(t.Context(), cc, "first")
			first <- err
		}()
		time.Sleep(time.Second)
		check.Equal(t, g.Snapshot().InFlight, 1, "in flight")
		_, err := call(t.Context(), cc, "second")
		if status.Code(err) != codes.Unavailable || !errors.Is(err, lull.ErrOverloaded) || len(refused) != 2 || refused[0].Decision.DontRetry || !refused[1].Decision.DontRetry {
			t.Errorf("%v after refusals %+v", err, refused)
		}
		cs, err := cc.NewStream(t.Context(), bidiStreams, bidiMethod)
		if err == nil {
			err = receiveErr(t, cs)
		}
		if status.Code(err) != codes.Unavailable || len(refused) != 4 {
			t.Errorf("a stream: %v after %d refusals", err, len(refused))
		}
		check.Equal(t, <-first, nil, "the first call")
		if s := g.Snapshot(); s.InFlight != 0 || s.Departed(admission.Done) != 1 {
			t.Errorf("afterwards: %+v", s)
		}
		if cs, err = cc.NewStream(t.Context(), bidiStreams, bidiMethod); err != nil {
			t.Fatal(err)
		}
		receiveEOF(t, cs)
		synctest.Wait()
		if s := g.Snapshot(); s.InFlight != 0 || s.Departed(admission.Unmeasured) != 1 {
			t.Errorf("after a stream: %+v", s)
		}
	})
}

// The claims of a request reach the controller, as far as they are believed. Malformed ones are
// ignored.
func TestWhatAdmissionKnowsOfARequest(t *testing.T) {
	everybody := lullgrpc.WithTrust(lullgrpc.TrustEverybody)
	nobody := lullgrpc.WithTrust(lullgrpc.TrustNobody)
	for _, c := range []struct {
		md       []string
		trust    lullgrpc.ServerOption
		class    admission.AttemptKind
		priority admission.Priority
	}{
		{nil, nil, admission.First, admission.Critical},
		{[]string{"grpc-previous-rpc-attempts", "1"}, nil, admission.Retry, admission.Critical},
		{[]string{"grpc-previous-rpc-attempts", "1", "lull-hedge", "?1"}, nil, admission.Hedge, admission.Critical},
		{[]string{"lull-hedge", "no"}, nil, admission.First, admission.Critical},
		{[]string{"lull-criticality", "critical-plus"}, nil, admission.First, admission.Critical},
		{[]string{"lull-criticality", "sheddable"}, everybody, admission.First, admission.Sheddable},
		{[]string{"lull-criticality", "critical-plus", "grpc-previous-rpc-attempts", "1"}, everybody, admission.Retry, admission.CriticalPlus},
		{[]string{"lull-criticality", "nonsense"}, everybody, admission.First, admission.Critical},
		{[]string{"lull-criticality", "critical-plus", "grpc-previous-rpc-attempts", "1", "lull-hedge", "?1"}, nobody, admission.First, admission.Critical},
	} {
		synctest.Test(t, func(t *testing.T) {
			var events []admission.Event
			_, connect := admitted(t, &echo{unary: func(context.Context, int, string) (string, error) { return "", nil }}, admission.Config{}, func(e admission.Event) {
				events = append(events, e)
			}, c.trust)
			cc := connect(grpc.WithDisableRetry())
			_, err := call(metadata.AppendToOutgoingContext(t.Context(), c.md...), cc, "")
			if err != nil || len(events) == 0 || events[0].Class != c.class || events[0].Priority != c.priority {
				t.Errorf("%q: %v, %+v", c.md, err, events)
			}
		})
	}
}

// A caller that goes while its call waits is not served.
func TestACallerThatHasGoneIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{unary: func(_ context.Context, _ int, in string) (string, error) {
			time.Sleep(50 * time.Millisecond)
			return in, nil
		}}
		g, connect := admitted(t, e, admission.Config{Limit: 1, MaxWait: time.Second}, nil)
		cc := connect(grpc.WithDisableRetry())
		go call(t.Context(), cc, "first")
		time.Sleep(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		// Its time ends at one moment for both: either may report it first.
		if _, err := call(ctx, cc, "second"); status.Code(err) != codes.DeadlineExceeded && status.Code(err) != codes.Unavailable {
			t.Errorf("the second: %v", err)
		}
		time.Sleep(time.Second)
		check.Equal(t, e.count(), 1, "calls were worked on")
		if s := g.Snapshot(); s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// The methods that pass admission, and those that do not.
func TestWithSkip(t *testing.T) {
	a := must.Have(admission.New(admission.Config{Limit: 1, MaxWait: -1}, admission.WithRand(seed.Source(t))))
	g := admission.NewGate(a)
	pass, d := g.Enter(t.Context(), admission.Request{})
	if d.Outcome != admission.Admitted {
		t.Fatal(d)
	}
	defer pass.Depart(admission.Unmeasured)
	var mu sync.Mutex
	var asked []string
	skip := lullgrpc.WithSkip(func(ctx context.Context, method string) bool {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, method)
		return strings.HasSuffix(method, "Watch")
	})
	for method, admitted := range map[string]bool{
		"/grpc.health.v1.Health/Check":                                   true,
		"/grpc.health.v1.Health/Watch":                                   true,
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      true,
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": true,
		"/shop.Orders/Watch":                                             true,
		"/shop.Orders/Get":                                               false,
		"/grpc.healthy/Get":                                              false,
	} {
		called := false
		_, err := lullgrpc.AdmitUnary(g, skip)(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method},
			func(context.Context, any) (any, error) { called = true; return nil, nil })
		if called != admitted || (err == nil) != admitted {
			t.Errorf("unary %s: called %v (%v), want %v", method, called, err, admitted)
		}
		called = false
		err = lullgrpc.AdmitStream(g, skip)(nil, standing{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: method},
			func(any, grpc.ServerStream) error { called = true; return nil })
		if called != admitted || (err == nil) != admitted {
			t.Errorf("stream %s: called %v (%v), want %v", method, called, err, admitted)
		}
	}
	if !slices.Contains(asked, "/shop.Orders/Get") {
		t.Errorf("asked for %v", asked)
	}
}

// The other two interceptors let skipped methods pass, too.
func TestWithSkipOfTheOthers(t *testing.T) {
	all := lullgrpc.WithSkip(func(context.Context, string) bool { return true })
	info := &grpc.UnaryServerInfo{FullMethod: unaryMethod}
	ctx := t.Context()
	_, err := lullgrpc.UnaryServerInterceptor(all)(ctx, nil, info, func(got context.Context, _ any) (any, error) {
		check.Equal(t, got, ctx, "the context")
		return nil, io.EOF
	})
	if err != io.EOF {
		t.Error(err)
	}
	ss := standing{ctx: ctx}
	err = lullgrpc.StreamServerInterceptor(all)(nil, ss, &grpc.StreamServerInfo{FullMethod: bidiMethod}, func(_ any, got grpc.ServerStream) error {
		check.Equal(t, got, grpc.ServerStream(ss), "the stream")
		return io.EOF
	})
	if err != io.EOF {
		t.Error(err)
	}
}

// standing is a ServerStream that only has a context.
type standing struct {
	grpc.ServerStream
	ctx context.Context
}

func (s standing) Context() context.Context { return s.ctx }
