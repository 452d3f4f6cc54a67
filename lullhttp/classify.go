package lullhttp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/neterr"
)

// ClassifyError returns what an error of an http.RoundTripper, or of an http.Client, means. It adds
// to [lull.Classify]:
//
//   - a certificate that is not accepted, and a peer that does not speak TLS: permanent, and never
//     sent. A TLS handshake beyond http.Transport.TLSHandshakeTimeout: transient, and never sent. A
//     TLS alert: unclassified;
//   - an answer of a SOCKS proxy: transient if it could not connect, on the caller's side if it refused;
//     never sent;
//   - a cancelled context: unclassified. The call's own context shows whether the caller has gone
//     away;
//   - a connection that ended or was closed under the request: transient;
//   - an HTTP/2 stream that was reset or lost to a GOAWAY: transient, or rate-limited if the code
//     is ENHANCE_YOUR_CALM. The server has not looked at a refused stream, so that was never sent
//     (RFC 9113, 8.7);
//   - a response whose header is cut or malformed: transient;
//   - an error that carries a response in an exported field (*oauth2.RetrieveError), and a
//     [*StatusError]: what that response means.
//
// Of lull.Classify these are never sent: a dial that failed or timed out, to the server or to a
// proxy; a name that was not resolved; a Unix socket without its file or with a full backlog; a
// machine without free files or ports, which is also on the caller's side.
//
// A [Transport] knows more than an error shows. See docs/protocols.md, "HTTP: what was never sent"
// and "HTTP: the caller's own side".
//
// Errors are recognised by type. Those of http.Transport without a type (see reference, and those
// of handshakes and proxies) are compared with errors that net/http itself makes, once for each
// process and after a failure. Other errors, such as an unsupported scheme, are unclassified and
// not repeated.
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
		// A RoundTripper's EOF is not the end of a body: the server hung up
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

// classifyTLS returns the verdict on a failure of TLS, if err is one. A certificate that this side
// rejects, or a peer without TLS, proves that nothing was sent. An alert of the server may follow
// the request: it may reject the client's certificate.
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

// classifyCarriedResponse returns what an error means that is a *StatusError, or carries a response
// in an exported field of the type *http.Response: *oauth2.RetrieveError, the ErrorResponse of many
// clients of APIs, azcore's ResponseError. They have no method in common, so it looks for the field
// by reflection. That takes half a microsecond, and only for a failure of which nothing else is
// known.
func classifyCarriedResponse(err error) (lull.Verdict, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if s, ok := err.(*StatusError); ok && s != nil && s.StatusCode >= 400 {
			return classifyHeader(s.StatusCode, s.Header), true
		}
		if resp := carriedResponse(err); resp != nil {
			return classifyHeader(resp.StatusCode, resp.Header), true
		}
	}
	return lull.Verdict{}, false
}

func classifyHeader(status int, h http.Header) lull.Verdict {
	hint, ok := ParseHint(h, status, time.Now())
	return classifyResponse(status, hint, ok)
}

func carriedResponse(err error) *http.Response {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if resp, _ := v.Field(i).Interface().(*http.Response); resp != nil && resp.StatusCode >= 400 {
			return resp
		}
	}
	return nil
}
