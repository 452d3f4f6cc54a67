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
	"github.com/lullgo/lull/driver/inbound"
)

// UnaryServerInterceptor returns the server's half for unary calls. It keeps the values of
// [SetPushback] and [DontRetry], and sends them once, if the call fails. It reads the number of the
// attempt, for [AttemptNumber].
//
// A call that fails after lull has given up one of its own calls to something else
// (lull.Reason.GaveUp) is sent back with "do not retry", unless the handler has set a pushback
// itself. Otherwise three layers with three attempts each would call the lowest 27 times. The
// handler's context has an [inbound.Request], so the work for a retry is not retried again
// (lull.Policy.Nested). [WithTrust] names the callers that are believed.
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
			_ = grpc.SetTrailer(ctx, md) // it fails only outside of a call
		}
		return resp, err
	}
}

// StreamServerInterceptor returns the server's half for streams: see [UnaryServerInterceptor].
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

// AttemptNumber returns which attempt of its client the call is, from 1. It works in a handler or
// in an interceptor, with or without the interceptors of this package. The number is the client's
// own claim (grpc-previous-rpc-attempts). It is good enough to shed retries before first attempts;
// do not use it where it must be true. Under an interceptor with [WithTrust], a call that is not
// believed is a first attempt.
func AttemptNumber(ctx context.Context) int {
	if sc, _ := ctx.Value(serverCallKey{}).(*serverCall); sc != nil {
		return sc.previous + 1
	}
	return previousAttempts(ctx) + 1
}

// SetPushback asks the client not to come back before d has passed, if the call fails. d is rounded
// up to milliseconds. If SetPushback is called several times the longest wait counts, and DontRetry
// overrules them all. A negative d is DontRetry.
//
// Without this package's interceptor the trailer is set at once. Then call SetPushback only once:
// gRPC clients take several values for "do not retry". It returns an error if ctx is not that of a
// call on a server.
func SetPushback(ctx context.Context, d time.Duration) error {
	if sc, _ := ctx.Value(serverCallKey{}).(*serverCall); sc != nil {
		sc.push(d)
		return nil
	}
	return grpc.SetTrailer(ctx, metadata.MD{pushbackKey: {formatPushback(d)}})
}

// DontRetry asks the client not to repeat the call if it fails, because the server is overloaded.
// Otherwise it is like SetPushback.
func DontRetry(ctx context.Context) error { return SetPushback(ctx, -1) }

// serverCall is the context of a call on the server, and the pushback for its client, in one
// allocation.
type serverCall struct {
	context.Context // has inbound
	inbound         *inbound.Request
	previous        int

	mu     sync.Mutex // guards the fields below
	pushed bool
	wait   time.Duration // negative: do not retry
}

type serverCallKey struct{}

// begin makes the context of the work on the call. gRPC itself carries deadlines.
func (sc *serverCall) begin(ctx context.Context) *inbound.Request {
	sc.Context, sc.inbound = inbound.With(ctx, sc.previous+1, 0)
	return sc.inbound
}

// Value returns the call itself under its key.
func (sc *serverCall) Value(key any) any {
	if key == (serverCallKey{}) {
		return sc
	}
	return sc.Context.Value(key)
}

func (sc *serverCall) push(d time.Duration) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if !sc.pushed || sc.wait >= 0 && (d < 0 || d > sc.wait) {
		sc.pushed, sc.wait = true, d
	}
}

// trailer returns what to send with a call that ended with err; nil: nothing.
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

// gaveUp reports whether err comes from a call that lull has given up, maybe one that was not made
// in the handler's context.
func gaveUp(err error) bool {
	call, ok := errors.AsType[*lull.Error](err)
	return ok && call != nil && call.Reason.GaveUp()
}

// previousAttempts reads the client's metadata. A malformed number counts as 0.
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
