package lullhttp

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/internal/response"
)

// NewHandler is the server's end of what a [Transport] sends. It runs next with a
// request whose context
//
//   - ends when the client's time is up (ParseTimeout), unless the response has
//     begun by then. So what next calls has no more time than is left, and sends that
//     time in turn;
//   - knows which attempt of its client the request is (ParseAttempt), so that what
//     is done for a retry is not retried once more: lull.Policy.Nested;
//   - learns when a call to a dependency has failed for good. If the handler then
//     answers with a status of 500 or above, the response has X-Should-Retry: false,
//     unless the handler has set such a header itself. The call has been retried here,
//     where that costs least, and a retry from further up would multiply.
//
// A client can claim all that. At an edge choose whom to believe: [WithTrust].
//
// Responses to those who are believed have [AnnounceHeader]. A Transport sends its time
// from then on.
//
// A request whose client's time is up already, or whose client has gone, is not
// started: it is answered with 503, which nobody will read.
//
// A 413 closes its connection over HTTP/1, as it does without NewHandler when http.MaxBytesReader
// has cut the request's body short.
//
// It finds all this by inbound.From. It costs a request about half a
// microsecond, and four allocations.
func NewHandler(next http.Handler, opts ...HandlerOption) (http.Handler, error) {
	if next == nil {
		return nil, errors.New("lullhttp: NewHandler: no handler")
	}
	h := &handler{next: next, timeoutHeader: DefaultTimeoutHeader, attempt: func(r *http.Request) int { return ParseAttempt(r.Header) }}
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(h); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// A HandlerOption wires a handler made by NewHandler.
type HandlerOption func(*handler) error

// ReadTimeoutFrom reads the client's time in milliseconds from the named header
// instead of DefaultTimeoutHeader, and also from those of Envoy and gRPC; an empty
// name reads it from none.
func ReadTimeoutFrom(header string) HandlerOption {
	return func(h *handler) (err error) {
		h.timeoutHeader, err = headerName("ReadTimeoutFrom", header)
		return err
	}
}

// LimitTimeout bounds the time that a client sends: less than least counts as least, and
// more than most as most. A request without a time has most. Zero is no bound.
//
// A request with less than least is not refused: its client may have little left of a
// deadline and still get an answer, and work is cut off no earlier than after least. (A time
// of zero is believed: the answer is 503 at once.)
func LimitTimeout(least, most time.Duration) HandlerOption {
	return func(h *handler) error {
		if least < 0 || most < 0 || least == 0 && most == 0 || most > 0 && least > most {
			return fmt.Errorf("lullhttp: LimitTimeout(%v, %v): want a positive duration, zero for no bound, and the least no longer than the most", least, most)
		}
		h.least, h.most = least, most
		return nil
	}
}

// ReadAttemptWith makes number return which attempt a request is, from 1, instead of
// ParseAttempt. It must be safe for concurrent use.
func ReadAttemptWith(number func(*http.Request) int) HandlerOption {
	return func(h *handler) error {
		if number == nil {
			return errors.New("lullhttp: ReadAttemptWith(nil): want a function")
		}
		h.attempt = number
		return nil
	}
}

// PassRetriesOn leaves responses as they are when a dependency has failed for good:
// whoever calls may retry, and each layer multiplies.
func PassRetriesOn() HandlerOption {
	return func(h *handler) error {
		h.passOn = true
		return nil
	}
}

type handler struct {
	next          http.Handler
	timeoutHeader string // canonical; empty: none
	least, most   time.Duration
	attempt       func(*http.Request) int
	passOn        bool
	trusted       func(*http.Request) bool // nil: a lie harms nobody but the liar
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

// timeLeft is how much time the request has; zero without a bound.
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
	for _, key := range [...]string{hdrShouldRetry, hdrStripeShouldRetry, hdrPushback, "Retry-After"} {
		if len(h[key]) > 0 {
			return
		}
	}
	h[hdrShouldRetry] = []string{"false"}
}
