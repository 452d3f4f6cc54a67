package lullgrpc

import (
	"context"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// A ServerOption wires the interceptors of a server.
type ServerOption func(*serverOptions)

type serverOptions struct {
	trusted func(context.Context) bool // nil: only claims that harm nobody but the liar are believed
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

// WithTrust makes an interceptor believe the claims of a call only if trusted returns true. The
// claims are the number of the attempt and, for [AdmitUnary] and [AdmitStream], whether it is a
// hedge and its priority. Other calls count as first attempts with priority Critical. trusted gets
// the call's context, and must be safe for concurrent use. Without it, or with nil, nobody's priority is
// believed, since a false one takes from others, and everybody's other claims are. docs/servers.md, under
// "Whom to believe", has the reasons. The deadline of a call is gRPC's own, and is kept whoever set it.
func WithTrust(trusted func(ctx context.Context) bool) ServerOption {
	return func(o *serverOptions) { o.trusted = trusted }
}

// WithSkip makes an interceptor let calls pass for which skip returns true, as if it was not
// installed: [AdmitUnary] and [AdmitStream] neither delay nor count them. It is for methods that
// are long by design and would hold a place for as long. skip gets the call's context and its
// method, "/service/method", and must be safe for concurrent use. The option has the same name in
// package admission.
func WithSkip(skip func(ctx context.Context, method string) bool) ServerOption {
	return func(o *serverOptions) { o.skip = skip }
}

// TrustNobody is for WithTrust at an edge: no call is believed.
func TrustNobody(context.Context) bool { return false }

// TrustEverybody is for WithTrust where no call comes from outside.
func TrustEverybody(context.Context) bool { return true }

// TrustMutualTLS is for WithTrust: a call is believed if its connection has a client certificate
// that this server has verified. The connection must use package credentials. If TLS ends at a
// proxy, the certificate is the proxy's, and every call that the proxy forwards is believed.
func TrustMutualTLS(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	return ok && len(info.State.VerifiedChains) > 0
}

// previous returns the number of attempts before this one, if it is believed.
func (o *serverOptions) previous(ctx context.Context) int {
	if o.trusted != nil && !o.trusted(ctx) {
		return 0
	}
	return previousAttempts(ctx)
}
