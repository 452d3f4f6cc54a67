package lullhttp

import (
	"errors"
	"net/http"
)

// WithTrust makes a handler believe the claims of a request (its attempt's number, and how long its
// client still waits) only if trusted returns true. Other requests are first attempts of clients
// without a timeout, apart from LimitTimeout. trusted must be safe for concurrent use. Without
// WithTrust everybody is believed, since a lie harms only the liar. docs/servers.md, under "Whom to
// believe", has the reasons. Package admission and lullgrpc have an option of the same name.
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

// TrustMutualTLS is for WithTrust: a request is believed if its connection has a client certificate
// that this server has verified (tls.Config.ClientAuth is VerifyClientCertIfGiven or
// RequireAndVerifyClientCert). Then everybody with a certificate of tls.Config.ClientCAs is
// believed. If TLS ends at a proxy, the certificate is the proxy's, and every request that it
// forwards is believed.
//
// Private addresses prove nothing: behind a proxy or a load balancer all requests have one.
func TrustMutualTLS(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 }
