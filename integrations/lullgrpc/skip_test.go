package lullgrpc_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/server/admission"
)

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
		if got != ctx {
			t.Error("a context of the interceptor's own")
		}
		return nil, io.EOF
	})
	if err != io.EOF {
		t.Error(err)
	}
	ss := standing{ctx: ctx}
	err = lullgrpc.StreamServerInterceptor(all)(nil, ss, &grpc.StreamServerInfo{FullMethod: bidiMethod}, func(_ any, got grpc.ServerStream) error {
		if got != grpc.ServerStream(ss) {
			t.Error("a stream of the interceptor's own")
		}
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
