package lullhttp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/neterr"
)

// ClassifyError returns what an error of an http.RoundTripper, or of an
// http.Client, means. It knows what [lull.Classify] knows, and in addition:
//
//   - certificates that are not accepted, and a peer that does not speak TLS: permanent, and never
//     sent. A TLS handshake that took longer than http.Transport.TLSHandshakeTimeout: transient, and
//     never sent. A TLS alert: unclassified;
//   - an answer of a SOCKS proxy: transient if it could not connect, and permanent if it does not want
//     to; never sent;
//   - a context that was cancelled: unclassified. Whether the caller has gone away is decided by the
//     call's own context;
//   - a connection that ended or was closed under the request: transient;
//   - HTTP/2: a stream that was reset or lost to a GOAWAY is transient, or
//     rate-limited if its code is ENHANCE_YOUR_CALM. A refused stream was not looked
//     at by the server (RFC 9113, 8.7), so it was never sent;
//   - a response whose header was cut, or is none: transient;
//   - an error that carries a response in an exported field (*oauth2.RetrieveError), and a
//     [*StatusError]: what that response means.
//
// With lull.Classify these are never sent: a dial that failed or timed out, whether to the server or to
// a proxy; a name that was not resolved; a Unix socket whose file is missing, or whose backlog is full; a
// machine without free files or ports, which is on the caller's side as well.
//
// A [Transport] knows more than an error shows: whether its base transport has had a connection for the request, what
// became of the request's body, and which host the error is about. See docs/protocols.md, "HTTP: what was never sent" and
// "HTTP: the caller's own side".
//
// It looks at types and never at words of its own. Errors of http.Transport without a type (see reference, and those of
// handshakes and proxies) are compared with those that net/http itself makes, once for each process and after a failure.
// Other errors without a type are unclassified, and not repeated, such as an unsupported scheme.
func ClassifyError(err error) lull.Verdict {
	if err == nil {
		return lull.Verdict{Kind: lull.KindSuccess}
	}
	return lull.VerdictOf(err, classifyError)
}

func classifyError(err error) lull.Verdict {
	if c, known := neterr.Classify(err); known {
		switch v := lull.Classify(err); c.Code {
		case "timeout":
			v.NeverSent = v.NeverSent || errors.Is(err, handshakeTimeout())
			return v
		case "dial":
			return classifySOCKS(err, v)
		default:
			return v
		}
	}
	if v, ok := classifyTLS(err); ok {
		return v
	}
	if v, ok := classifyHTTP2(err); ok {
		return v
	}
	switch {
	case errors.Is(err, io.EOF):
		// A RoundTripper's EOF is never the end of a body: the server hung up
		// where its answer was due.
		return lull.Verdict{Kind: lull.KindTransient, Code: "unexpected_eof"}
	case errors.Is(err, net.ErrClosed):
		// This process closed the connection, for another of its requests or to
		// shrink the pool. The request did nothing to deserve it.
		return lull.Verdict{Kind: lull.KindTransient, Code: "connection_closed"}
	}
	if v, ok := classifyCarriedResponse(err); ok {
		return v
	}
	if v, ok := classifyUntyped(err); ok {
		return v
	}
	return lull.Verdict{Kind: lull.KindUnclassified, Code: engine.CodeUnclassified}
}

// classifyTLS returns the verdict on a failure of TLS, if err is one. What this side finds wrong with
// the server's certificate or first bytes shows that nothing was sent. An alert of the server may come
// after the request (it may refuse the client's certificate), and is about how the two are configured.
func classifyTLS(err error) (lull.Verdict, bool) {
	if isType[*tls.CertificateVerificationError](err) || isType[x509.UnknownAuthorityError](err) ||
		isType[x509.HostnameError](err) || isType[x509.CertificateInvalidError](err) ||
		isType[x509.SystemRootsError](err) {
		return lull.Verdict{Kind: lull.KindPermanent, NeverSent: true, Code: "certificate"}, true
	}
	if isType[tls.RecordHeaderError](err) || errors.Is(err, http.ErrSchemeMismatch) {
		return lull.Verdict{Kind: lull.KindPermanent, NeverSent: true, Code: "not_tls"}, true
	}
	// crypto/tls reports an alert as the error of an operation of that name.
	op, _ := errors.AsType[*net.OpError](err)
	if isType[tls.AlertError](err) || isType[*tls.ECHRejectionError](err) || op != nil && (op.Op == "remote error" || op.Op == "local error") {
		return lull.Verdict{Kind: lull.KindUnclassified, Code: "tls_alert"}, true
	}
	return lull.Verdict{}, false
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
