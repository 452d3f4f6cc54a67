package lullgrpc

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/inbound"
)

// UnaryServerInterceptor is the server's half for unary calls. It keeps what
// [SetPushback] and [DontRetry] say, and sends it if the call fails, once; and it
// reads the number of the attempt, for [AttemptNumber].
//
// A call that fails after lull has given up one of its own calls to something else
// (lull.Reason.GaveUp) is sent back with "do not retry", unless the handler has said
// something itself: where each of three layers makes three attempts, the lowest is
// called 27 times. And what the handler does for a retry is not retried once more
// (lull.Policy.Nested): its context has a [inbound.Request]. [WithTrust] names the callers
// that are believed.
func UnaryServerInterceptor(opts ...ServerOption) grpc.UnaryServerInterceptor {
	o := newServerOptions(opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if o.skip != nil && o.skip(ctx, info.FullMethod) {
			return handler(ctx, req)
		}
		sc := serverCall{previous: o.previous(ctx)}
		defer sc.begin(ctx).End()
		resp, err := handler(&sc, req)
		if md := sc.trailer(err); md != nil {
			_ = grpc.SetTrailer(ctx, md) // it fails only where there is no call
		}
		return resp, err
	}
}

// StreamServerInterceptor is the server's half for streams: see
// [UnaryServerInterceptor].
func StreamServerInterceptor(opts ...ServerOption) grpc.StreamServerInterceptor {
	o := newServerOptions(opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := ss.Context()
		if o.skip != nil && o.skip(ctx, info.FullMethod) {
			return handler(srv, ss)
		}
		s := serverStream{ServerStream: ss, call: serverCall{previous: o.previous(ctx)}}
		defer s.call.begin(ctx).End()
		err := handler(srv, &s)
		if md := s.call.trailer(err); md != nil {
			ss.SetTrailer(md)
		}
		return err
	}
}

type serverStream struct {
	grpc.ServerStream
	call serverCall
}

func (s *serverStream) Context() context.Context { return &s.call }

// AttemptNumber tells which attempt of its client the call is, from 1, in a
// handler or in an interceptor; with the interceptors of this package or without.
// It is what the client says of itself (grpc-previous-rpc-attempts): good enough to
// shed retries before first attempts, and for nothing that needs to be true. Under an
// interceptor with [WithTrust], a call that is not believed is a first attempt.
func AttemptNumber(ctx context.Context) int {
	if sc, _ := ctx.Value(serverCallKey{}).(*serverCall); sc != nil {
		return sc.previous + 1
	}
	return previousAttempts(ctx) + 1
}

// SetPushback asks the client, if the call fails, not to come back before d has
// passed. It is rounded up to milliseconds. If it is called several times the longest
// wait counts, and DontRetry counts for more. A negative d is DontRetry.
//
// Without this package's interceptor the trailer is set at once, and only one call
// should be made: gRPC clients take several values for "do not retry". The error
// says that ctx is not that of a call on a server.
func SetPushback(ctx context.Context, d time.Duration) error {
	if sc, _ := ctx.Value(serverCallKey{}).(*serverCall); sc != nil {
		sc.push(d)
		return nil
	}
	return grpc.SetTrailer(ctx, metadata.MD{pushbackKey: {formatPushback(d)}})
}

// DontRetry asks the client, if the call fails, not to come back with it: the
// server is overloaded. Other than that it is as SetPushback.
func DontRetry(ctx context.Context) error { return SetPushback(ctx, -1) }

// serverCall is the context of a call on the server, and what is to be told to its
// client: one piece of memory.
type serverCall struct {
	context.Context // has inbound
	inbound         *inbound.Request
	previous        int

	mu     sync.Mutex // guards what follows
	pushed bool
	wait   time.Duration // negative: do not retry
}

type serverCallKey struct{}

// begin makes the context of the work on the call. gRPC itself carries deadlines.
func (sc *serverCall) begin(ctx context.Context) *inbound.Request {
	sc.Context, sc.inbound = inbound.With(ctx, sc.previous+1, 0)
	return sc.inbound
}

// Value gives the call itself under its key.
func (sc *serverCall) Value(key any) any {
	if key == (serverCallKey{}) {
		return sc
	}
	return sc.Context.Value(key)
}

func (sc *serverCall) push(d time.Duration) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	switch {
	case !sc.pushed:
		sc.pushed, sc.wait = true, d
	case sc.wait >= 0:
		if d < 0 || d > sc.wait {
			sc.wait = d
		}
	}
}

// trailer is what to send with a call that ended with err; nil: nothing.
func (sc *serverCall) trailer(err error) metadata.MD {
	if err == nil {
		return nil
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	switch {
	case sc.pushed:
		return metadata.MD{pushbackKey: {formatPushback(sc.wait)}}
	case sc.inbound.GaveUp() || gaveUp(err):
		return metadata.MD{pushbackKey: {formatPushback(-1)}}
	}
	return nil
}

// gaveUp tells that err is that of a call that lull has given up, maybe one that was
// not made in the handler's context.
func gaveUp(err error) bool {
	call, ok := errors.AsType[*lull.Error](err)
	return ok && call != nil && call.Reason.GaveUp()
}

// previousAttempts reads the client's metadata. What makes no sense is no attempt.
func previousAttempts(ctx context.Context) int {
	values := metadata.ValueFromIncomingContext(ctx, attemptsKey)
	if len(values) != 1 {
		return 0
	}
	n, err := strconv.ParseUint(values[0], 10, 31)
	if err != nil || n == math.MaxInt32 {
		return 0
	}
	return int(n)
}
