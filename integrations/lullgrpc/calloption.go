package lullgrpc

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/lullgo/lull/engine"
)

// Idempotent declares one call idempotent: carrying it out twice has the effect of carrying it out
// once. The call may then be repeated after it may have reached the server. It overrules what is
// known of the method.
func Idempotent() grpc.CallOption { return optionIdempotent }

// NotIdempotent declares one call not idempotent. The call is then repeated only if it was provably
// never sent. It overrules what is known of the method.
func NotIdempotent() grpc.CallOption { return optionNotIdempotent }

// callOption is Idempotent or NotIdempotent. gRPC ignores it.
type callOption struct {
	grpc.EmptyCallOption
	idempotent bool
}

var optionIdempotent, optionNotIdempotent grpc.CallOption = callOption{idempotent: true}, callOption{}

// callerOptions holds the caller's options that gRPC does not get, or not for each attempt.
type callerOptions struct {
	idempotent    bool
	notIdempotent bool
	buffer        int // grpc.MaxRetryRPCBufferSize plus one; 0: not set
	onFinish      []func(error)
	creds         *callerCreds // nil: none
}

// splitOptions splits the caller's options. It returns those for the attempts, in room if they fit, and the
// others in s. It does not write to the caller's slice. A caller's OnFinish belongs to the call.
func splitOptions(room, callerOpts []grpc.CallOption) (opts []grpc.CallOption, s callerOptions) {
	opts = room
	for _, each := range callerOpts {
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

// finish calls the caller's OnFinish functions, which the attempts did not get.
func (s *callerOptions) finish(err error) {
	for _, f := range s.onFinish {
		if f != nil {
			f(err)
		}
	}
}

// spec returns what is known of a call before its first attempt.
func (m *method) spec(s callerOptions) engine.Spec {
	return engine.Spec{Operation: m.name, NotIdempotent: s.notIdempotent || !s.idempotent && !m.idempotent}
}

// callerCreds are the credentials that a caller gave for one call. A failure to get them is no
// evidence about the dependency, whatever its status.
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
