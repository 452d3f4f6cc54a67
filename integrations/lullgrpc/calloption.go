package lullgrpc

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/lullgo/lull/engine"
)

// Idempotent says of one call that carrying it out twice is the same as once:
// it may be repeated after it may have reached the server. It overrules whatever
// is known of the method.
func Idempotent() grpc.CallOption { return saysIdempotent }

// NotIdempotent says of one call that carrying it out twice is not the same as
// once. It is then repeated only if it was provably never sent. It overrules
// whatever is known of the method.
func NotIdempotent() grpc.CallOption { return saysNotIdempotent }

// callOption is what a caller says of one call. To gRPC it says nothing.
type callOption struct {
	grpc.EmptyCallOption
	idempotent bool
}

var saysIdempotent, saysNotIdempotent grpc.CallOption = callOption{idempotent: true}, callOption{}

// said is what the call options say that is not for gRPC, or not for each attempt.
type said struct {
	idempotent    bool
	notIdempotent bool
	buffer        int // of grpc.MaxRetryRPCBufferSize, plus one; 0: not said
	onFinish      []func(error)
	creds         *callerCreds // nil: none
}

// heed takes out of the caller's options, whose slice is not written to, what is
// not for the attempts, and puts the rest into room, if it fits. A caller's
// OnFinish is for the call.
func heed(room, theirs []grpc.CallOption) (opts []grpc.CallOption, s said) {
	opts = room
	for _, each := range theirs {
		switch each := each.(type) {
		case callOption:
			s.idempotent, s.notIdempotent = each.idempotent, !each.idempotent
			continue
		case grpc.OnFinishCallOption:
			s.onFinish = append(s.onFinish, each.OnFinish)
			continue
		case grpc.PerRPCCredsCallOption:
			if each.Creds != nil {
				s.creds = &callerCreds{PerRPCCredentials: each.Creds}
				opts = append(opts, grpc.PerRPCCredentials(s.creds))
				continue
			}
		case grpc.MaxRetryRPCBufferSizeCallOption:
			s.buffer = max(each.MaxRetryRPCBufferSize, 0) + 1
		}
		opts = append(opts, each)
	}
	return opts, s
}

// finish tells those whose OnFinish was kept from the attempts.
func (s *said) finish(err error) {
	for _, f := range s.onFinish {
		if f != nil {
			f(err)
		}
	}
}

// spec is what is known of a call before its first attempt.
func (m *method) spec(s said) engine.Spec {
	return engine.Spec{Operation: m.name, NotIdempotent: s.notIdempotent || !s.idempotent && !m.idempotent}
}

// callerCreds are the credentials that one caller has given for one call. When they cannot
// be had, that says nothing of the dependency, whatever status they fail with.
type callerCreds struct {
	credentials.PerRPCCredentials
	failed atomic.Bool
}

func (c *callerCreds) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	md, err := c.PerRPCCredentials.GetRequestMetadata(ctx, uri...)
	if err != nil {
		c.failed.Store(true)
	}
	return md, err
}

// missing tells whether an attempt without a connection has failed for want of them.
func (c *callerCreds) missing(neverSent bool) bool { return neverSent && c != nil && c.failed.Load() }
