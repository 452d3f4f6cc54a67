package lullgrpc_test

import (
	"context"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// read counts how often a message is read, as marshalling does.
type read struct {
	proto.Message
	n *atomic.Int64
}

func (r read) ProtoReflect() protoreflect.Message { r.n.Add(1); return r.Message.ProtoReflect() }

// An upload is answered only at its end. After its commit only gRPC marshals its messages.
func TestUploadsAreNotCopiedAfterTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{stream: func(ss grpc.ServerStream, _ int) error {
			for ss.RecvMsg(nilString()) == nil {
			}
			return answer(ss, "done")
		}}
		connect := served(t, e)
		looked := func(opts ...grpc.DialOption) int64 {
			cc := connect(opts...)
			cs := open(t, t.Context(), cc, clientStreams)
			var n atomic.Int64
			m := read{wrapperspb.String(strings.Repeat("x", 64<<10)), &n}
			for range 5 { // past the replay buffer
				must.Succeed(cs.SendMsg(m))
			}
			n.Store(0)
			for range 20 {
				must.Succeed(cs.SendMsg(m))
			}
			looks := n.Load()
			cs.CloseSend()
			receive(t, cs, "done")
			return looks
		}
		bare, under := looked(), looked(newClient(t, quick(), idempotent()).DialOptions()...)
		if bare == 0 || under != bare {
			t.Errorf("20 messages after the commit were looked at %d times, and %d times without lull", under, bare)
		}
	})
}

// Before the commit a message is copied once. A message without room is not copied at all.
func TestAMessageIsCopiedOnceAtMost(t *testing.T) {
	const kib = 1 << 10
	intercept := newClient(t, quick(), idempotent()).StreamClientInterceptor()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct{ first, size, least, most int }{
		{size: 200 * kib, least: 200 * kib, most: 300 * kib},
		{first: 200 * kib, size: 100 * kib, most: 50 * kib},
		{size: 8 << 20, most: 50 * kib},
	} {
		var best uint64 = math.MaxUint64 // others of the process allocate, too
		for range 10 {
			cs, err := intercept(ctx, clientStreams, nil, clientMethod, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return taking{ctx: ctx}, nil
			})
			must.Succeed(err)
			if c.first > 0 {
				send(t, cs, strings.Repeat("x", c.first))
			}
			m := wrapperspb.String(strings.Repeat("x", c.size))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			must.Succeed(cs.SendMsg(m))
			runtime.ReadMemStats(&after)
			best = min(best, after.TotalAlloc-before.TotalAlloc)
		}
		if best < uint64(c.least) || best > uint64(c.most) {
			t.Errorf("a message of %d KiB after %d took %d KiB, want %d to %d", c.size/kib, c.first/kib, best/kib, c.least/kib, c.most/kib)
		}
	}
}

// taking is a stream that takes every message and does not answer.
type taking struct {
	grpc.ClientStream
	ctx context.Context
}

func (taking) SendMsg(any) error              { return nil }
func (taking) Trailer() metadata.MD           { return nil }
func (s taking) RecvMsg(any) error            { return s.ctx.Err() }
func (s taking) Header() (metadata.MD, error) { <-s.ctx.Done(); return nil, nil }

// A stream keeps its place under the concurrency limit until it is answered. A commit before that,
// because its messages cannot be kept or because the caller has asked for its context, is no
// answer: the server is as busy with it as before.
func TestACommitIsNoAnswer(t *testing.T) {
	for how, want := range map[string]int{"header": 0, "overflow": 1, "context": 1} {
		synctest.Test(t, func(t *testing.T) {
			read := make(chan struct{})
			e := &echo{stream: func(ss grpc.ServerStream, _ int) error {
				if how == "header" {
					ss.SendHeader(metadata.Pairs("a", "b"))
				}
				for ss.RecvMsg(nilString()) == nil {
				}
				if err := answer(ss, "done"); err != nil {
					return err
				}
				<-read // the rest of the call takes no place
				return nil
			}}
			p := quick()
			p.Limit.InFlight = 1
			c := newClient(t, p, idempotent())
			cc := served(t, e)(c.DialOptions()...)
			limiter := c.Dependency(t.Context(), cc.Target(), bidiMethod).Limiter()
			cs := open(t, t.Context(), cc, bidiStreams)
			switch how {
			case "header":
				cs.Header()
			case "overflow":
				for range 10 {
					send(t, cs, strings.Repeat("x", 64<<10))
				}
			case "context":
				cs.Context()
			}
			synctest.Wait()
			check.Equal(t, limiter.InFlight(), want, "committed by %s: places taken", how)
			cs.CloseSend()
			receive(t, cs, "done")
			synctest.Wait()
			check.Equal(t, limiter.InFlight(), 0, "committed by %s, and answered: places taken", how)
			close(read)
			receiveEOF(t, cs)
		})
	}
}
