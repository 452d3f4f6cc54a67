package lullhttp

import (
	"errors"
	"net/http"
)

// WithTrust makes a handler believe what a request claims (which attempt it is, how
// long its client still waits) only if trusted returns true. The others are first
// attempts of clients that wait for ever, but for LimitTimeout. trusted must be safe for
// concurrent use. Without WithTrust these two are believed from anybody: a lie harms nobody but
// the liar. docs/guide.md, under "Whom to believe", has the reasons. Package admission and lullgrpc have an
// option of the same name.
func WithTrust(trusted func(*http.Request) bool) HandlerOption {
	return func(h *handler) error {
		if trusted == nil {
			return errors.New("lullhttp: WithTrust(nil): want a function; TrustNobody is one")
		}
		h.trusted = trusted
		return nil
	}
}

// TrustNobody is for WithTrust at an edge: no request is believed.
func TrustNobody(*http.Request) bool { return false }

// TrustEverybody is for WithTrust where no request comes from outside.
func TrustEverybody(*http.Request) bool { return true }

// TrustMutualTLS is for WithTrust: a request is believed if its connection has a client
// certificate that this server has verified (tls.Config.ClientAuth is
// VerifyClientCertIfGiven or RequireAndVerifyClientCert). Everybody who has a certificate
// of tls.Config.ClientCAs is one of yours then. If TLS ends at a proxy, the certificate is
// the proxy's, and so is what it lets pass.
//
// There is none for private addresses: behind a proxy or a load balancer all requests
// come from one.
func TrustMutualTLS(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 }
