package lullhttp

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/internal/option"
	"github.com/lullgo/lull/internal/response"
)

// NewHandler is the server's half of a [Transport]. It runs next with a request whose context
//
//   - ends when the client's time is up (ParseTimeout), unless the response has begun. What next
//     calls has no more time than is left, and sends that time in turn;
//   - has the number of the client's attempt (ParseAttempt), so that the work for a retry is not
//     retried again (lull.Policy.Nested);
//   - records when a call to a dependency is given up. If the handler then answers with a status of
//     500 or above, the response has X-Should-Retry: false, unless the handler has set such a
//     header itself. A retry from further up would multiply those made here.
//
// A client can claim all that. At an edge choose whom to believe: [WithTrust].
//
// Responses to those who are believed have [AnnounceHeader]. A Transport then sends its time.
//
// A request whose client has gone, or has no time left, is answered with 503 without running next.
//
// A 413 closes its connection over HTTP/1, as it does without NewHandler if http.MaxBytesReader has
// cut the request's body.
//
// inbound.From returns these facts. They cost a request about half a microsecond and four
// allocations.
func NewHandler(next http.Handler, opts ...HandlerOption) (http.Handler, error) {
	if next == nil {
		return nil, errors.New("lullhttp: NewHandler: no handler")
	}
	h := &handler{next: next, timeoutHeader: DefaultTimeoutHeader, attempt: func(r *http.Request) int { return ParseAttempt(r.Header) }}
	if err := option.Apply(h, opts); err != nil {
		return nil, err
	}
	return h, nil
}

// A HandlerOption wires a handler made by NewHandler.
type HandlerOption func(*handler) error

// ReadTimeoutFrom reads the client's time in milliseconds from the named header instead of
// DefaultTimeoutHeader, and still from those of Envoy and gRPC. An empty name reads it from none.
func ReadTimeoutFrom(header string) HandlerOption {
	return func(h *handler) (err error) {
		h.timeoutHeader, err = headerName("ReadTimeoutFrom", header)
		return err
	}
}

// LimitTimeout bounds the time that a client sends: less than least counts as least, and more than
// most as most. A request without a time has most. Zero is no bound. A time of zero stays zero: the
// answer is 503 at once.
func LimitTimeout(least, most time.Duration) HandlerOption {
	ok := least >= 0 && most >= 0 && (least > 0 || most > 0) && (most == 0 || least <= most)
	return option.If(ok, func(h *handler) { h.least, h.most = least, most },
		"lullhttp: LimitTimeout(%v, %v): want a positive duration, zero for no bound, and the least no longer than the most",
		least, most)
}

// ReadAttemptWith makes number return which attempt a request is, from 1, instead of ParseAttempt.
// It must be safe for concurrent use.
func ReadAttemptWith(number func(*http.Request) int) HandlerOption {
	return option.If(number != nil, func(h *handler) { h.attempt = number }, "lullhttp: ReadAttemptWith(nil): want a function")
}

// PassRetriesOn adds no X-Should-Retry to responses after a call was given up. Then callers may
// retry, and each layer multiplies.
func PassRetriesOn() HandlerOption {
	return option.Set(func(h *handler) { h.passOn = true })
}

type handler struct {
	next          http.Handler
	timeoutHeader string // canonical; empty: none
	least, most   time.Duration
	attempt       func(*http.Request) int
	passOn        bool
	trusted       func(*http.Request) bool // nil: everybody
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	believed := h.trusted == nil || h.trusted(r)
	if believed && h.timeoutHeader == DefaultTimeoutHeader {
		w.Header()[AnnounceHeader] = announcement
	}
	left, bounded := h.timeLeft(r, believed)
	if bounded && left <= 0 || r.Context().Err() != nil {
		w.Header()[hdrShouldRetry] = []string{"false"}
		http.Error(w, "the client's time is up", http.StatusServiceUnavailable)
		return
	}
	attempt := 1
	if believed {
		attempt = h.attempt(r)
	}
	ctx, in := inbound.With(r.Context(), attempt, left)
	defer in.End()
	out := response.New(w, func(status int) {
		in.Began()
		if status == http.StatusRequestEntityTooLarge && r.ProtoMajor == 1 {
			// As http.MaxBytesReader does, which finds net/http's own ResponseWriter only: the
			// rest of the request is not read.
			w.Header().Set("Connection", "close")
		}
		if status >= 500 && !h.passOn && in.GaveUp() {
			stopRetries(w.Header())
		}
	})
	h.next.ServeHTTP(out.ForHandler(), r.WithContext(ctx))
}

// timeLeft returns how much time the request has.
func (h *handler) timeLeft(r *http.Request, believed bool) (d time.Duration, bounded bool) {
	if believed && h.timeoutHeader != "" {
		d, bounded = parseTimeout(r.Header, h.timeoutHeader)
	}
	if bounded && d > 0 {
		d = max(d, h.least)
	}
	if h.most > 0 && (!bounded || d > h.most) {
		return h.most, true
	}
	return d, bounded
}

// stopRetries asks the client not to retry, unless the handler has set a header about that.
func stopRetries(h http.Header) {
	headers := []string{hdrShouldRetry, hdrStripeShouldRetry, hdrPushback, "Retry-After"}
	if !slices.ContainsFunc(headers, func(key string) bool { return len(h[key]) > 0 }) {
		h[hdrShouldRetry] = []string{"false"}
	}
}

// WithTrust makes a handler believe the claims of a request (its attempt's number, and how long its
// client still waits) only if trusted returns true. Other requests are first attempts of clients
// without a timeout, apart from LimitTimeout. trusted must be safe for concurrent use. Without
// WithTrust everybody is believed, since a lie harms only the liar. docs/servers.md, under "Whom to
// believe", has the reasons. Package admission and lullgrpc have an option of the same name.
func WithTrust(trusted func(*http.Request) bool) HandlerOption {
	return option.If(trusted != nil, func(h *handler) { h.trusted = trusted },
		"lullhttp: WithTrust(nil): want a function; TrustNobody is one")
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
