package lullgrpc

import (
	"context"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// A ServerOption wires the interceptors of a server.
type ServerOption func(*serverOptions)

type serverOptions struct {
	trusted func(context.Context) bool // nil: what harms nobody but the liar is believed
	skip    func(ctx context.Context, method string) bool
}

func newServerOptions(opts []ServerOption) (o serverOptions) {
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// WithTrust has an interceptor believe what a call says of itself only if trusted returns
// true: which attempt it is, and for [AdmitUnary] and [AdmitStream] also whether it is a
// hedge and how much it matters. The others are first attempts that are Critical. It gets
// the call's context, and must be safe for concurrent use. [TrustNobody] and
// [TrustMutualTLS] are such functions. The option has the same name, and the same
// defaults, in lullhttp.NewHandler and in package admission: without it, or with nil, how
// much a call matters is believed from nobody, since that takes from others, and the rest
// from anybody.
//
// The deadline of a call is gRPC's own, and is kept whoever set it.
func WithTrust(trusted func(ctx context.Context) bool) ServerOption {
	return func(o *serverOptions) { o.trusted = trusted }
}

// WithSkip has an interceptor let calls pass for which skip is true, as if it was not
// installed: [AdmitUnary] and [AdmitStream] do not ask and do not count them. It is for
// methods that are long by design, which would hold a place for as long. It gets the call's
// context and its method, "/service/method", and must be safe for concurrent use. The option
// has the same name in package admission.
func WithSkip(skip func(ctx context.Context, method string) bool) ServerOption {
	return func(o *serverOptions) { o.skip = skip }
}

// skips tells whether a call passes by.
func (o *serverOptions) skips(ctx context.Context, method string) bool {
	return o.skip != nil && o.skip(ctx, method)
}

// TrustNobody is for WithTrust at an edge: no call is believed.
func TrustNobody(context.Context) bool { return false }

// TrustEverybody is for WithTrust where no call comes from outside.
func TrustEverybody(context.Context) bool { return true }

// TrustMutualTLS is for WithTrust: a call is believed if its connection has a client
// certificate that this server has verified. It must be one by package credentials; if TLS
// ends at a proxy, the certificate is the proxy's, and so is what it lets pass.
func TrustMutualTLS(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	return ok && len(info.State.VerifiedChains) > 0
}

// previous is the number of attempts before this one, as far as it is believed.
func (o *serverOptions) previous(ctx context.Context) int {
	if o.trusted != nil && !o.trusted(ctx) {
		return 0
	}
	return previousAttempts(ctx)
}
