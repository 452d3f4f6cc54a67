package idempotency

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The problem types (RFC 9457) of the middleware's own answers. They are tag URIs
// (RFC 4151), which lead nowhere and stay what they are; Config.Documentation leads
// somewhere.
const (
	// ProblemKeyMissing, 400: the request needs a key and has none.
	ProblemKeyMissing = "tag:lullgo.github.io,2026:idempotency-key-missing"
	// ProblemKeyInvalid, 400: the key is malformed, or there are several.
	ProblemKeyInvalid = "tag:lullgo.github.io,2026:idempotency-key-invalid"
	// ProblemKeyTooLong, 400: the key is longer than the member "limit".
	ProblemKeyTooLong = "tag:lullgo.github.io,2026:idempotency-key-too-long"
	// ProblemNoCaller, 400: keys belong to callers, and this one is not known.
	ProblemNoCaller = "tag:lullgo.github.io,2026:idempotency-no-caller"
	// ProblemBodyUnreadable, 400: the body broke off.
	ProblemBodyUnreadable = "tag:lullgo.github.io,2026:idempotency-body-unreadable"
	// ProblemBodyTooLarge, 413: the body is longer than the member "limit".
	ProblemBodyTooLarge = "tag:lullgo.github.io,2026:idempotency-body-too-large"
	// ProblemInFlight, 409 with Retry-After: the first request is still running.
	ProblemInFlight = "tag:lullgo.github.io,2026:idempotency-in-flight"
	// ProblemKeyReused, 422: the key was used for another request.
	ProblemKeyReused = "tag:lullgo.github.io,2026:idempotency-key-reused"
	// ProblemOutcomeUnknown, 409: the first request began, and it is not known how it
	// ended. To repeat it with this key is of no use, with another it is a risk.
	ProblemOutcomeUnknown = "tag:lullgo.github.io,2026:idempotency-outcome-unknown"
	// ProblemResponseNotKept, 409: the first request was carried out, but its response
	// was not kept. The member "original_status" is its status, if it had one.
	ProblemResponseNotKept = "tag:lullgo.github.io,2026:idempotency-response-not-kept"
	// ProblemTooManyKeys, 429: the caller holds its share of the store's room (ErrShare). To
	// come back is of use when the first of its keys are forgotten.
	ProblemTooManyKeys = "tag:lullgo.github.io,2026:idempotency-too-many-keys"
	// ProblemStoreUnavailable, 503 with Retry-After: it is not known whether the request
	// is the first. It was not carried out now.
	ProblemStoreUnavailable = "tag:lullgo.github.io,2026:idempotency-store-unavailable"
)

// details is an answer of the middleware's own.
type details struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`

	Limit          int64 `json:"limit,omitempty"`           // what was exceeded
	OriginalStatus int   `json:"original_status,omitempty"` // of the response that was not kept
	Retention      int64 `json:"retention,omitempty"`       // seconds that keys are remembered

	retryAfter time.Duration // more than zero: Retry-After
	retry      string        // X-Should-Retry
}

func (m *Middleware) problem(w http.ResponseWriter, d details) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Language", "en")
	h.Set("Cache-Control", "no-store")
	if doc := m.config.Documentation; doc != "" {
		h.Add("Link", "<"+doc+`>; rel="describedby"; type="text/html"`)
	}
	if d.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((d.retryAfter+time.Second-1)/time.Second), 10))
	}
	if d.retry != "" {
		h.Set("X-Should-Retry", d.retry)
	}
	body, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings and numbers
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(d.Status)
	w.Write(body)
}

func (m *Middleware) keyMissing() details {
	return details{
		Type: ProblemKeyMissing, Status: http.StatusBadRequest, Title: "Idempotency-Key is missing",
		Detail:    "This operation needs an Idempotency-Key: a unique string in double quotes, the same for all attempts at one operation.",
		Retention: m.retentionSeconds(),
	}
}

func (m *Middleware) keyUnusable(why keyError) details {
	d := details{Type: ProblemKeyInvalid, Status: http.StatusBadRequest, Title: "Idempotency-Key is not valid"}
	switch why {
	case keySeveral:
		d.Detail = "There is more than one Idempotency-Key."
	case keyTooLong:
		d.Type, d.Title = ProblemKeyTooLong, "Idempotency-Key is too long"
		d.Detail = fmt.Sprintf("The key may have up to %d characters.", m.config.MaxKey)
		d.Limit = int64(m.config.MaxKey)
	default:
		d.Detail = "The key must be a string of printable ASCII characters in double quotes, and not empty."
	}
	return d
}

func noCaller() details {
	return details{
		Type: ProblemNoCaller, Status: http.StatusBadRequest, Title: "Idempotency-Key without a known caller",
		Detail: "Keys belong to callers, and this request does not say whose it is. Send it with your credentials.",
	}
}

func bodyUnreadable() details {
	return details{
		Type: ProblemBodyUnreadable, Status: http.StatusBadRequest, Title: "The request body could not be read",
		Detail: "The request was not carried out.",
	}
}

func (m *Middleware) bodyTooLarge() details {
	return details{
		Type: ProblemBodyTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The request body is too large",
		Detail: fmt.Sprintf("With an Idempotency-Key the body may have up to %d bytes. The request was not carried out.", m.config.MaxBody),
		Limit:  m.config.MaxBody,
	}
}

func (m *Middleware) inFlight(remaining time.Duration) details {
	wait := m.config.RetryAfter
	if remaining > 0 {
		wait = min(wait, remaining)
	}
	return details{
		Type: ProblemInFlight, Status: http.StatusConflict, Title: "A request is outstanding for this Idempotency-Key",
		Detail:     "The first request with this key is still being processed. Send it again later, with the same key.",
		retryAfter: wait, retry: "true",
	}
}

func (m *Middleware) keyReused() details {
	return details{
		Type: ProblemKeyReused, Status: http.StatusUnprocessableEntity, Title: "Idempotency-Key is already used",
		Detail:    "This key was used for another request. A key must not be used again with another method, target or payload.",
		Retention: m.retentionSeconds(), retry: "false",
	}
}

func outcomeUnknown() details {
	return details{
		Type: ProblemOutcomeUnknown, Status: http.StatusConflict, Title: "The outcome of the first request is unknown",
		Detail: "A request with this key began and was interrupted. It may or may not have been carried out, and is not carried out again. Find out before you send it with a new key.",
		retry:  "false",
	}
}

func responseNotKept(status int) details {
	return details{
		Type: ProblemResponseNotKept, Status: http.StatusConflict, Title: "The response to the first request was not kept",
		Detail:         "The request with this key was carried out, and is not carried out again. Its response cannot be repeated.",
		OriginalStatus: status, retry: "false",
	}
}

func (m *Middleware) tooManyKeys() details {
	return details{
		Type: ProblemTooManyKeys, Status: http.StatusTooManyRequests, Title: "Too many Idempotency-Keys of this caller",
		Detail:    fmt.Sprintf("The request was not carried out: this caller's share of the keys that can be remembered is used up. Each is forgotten %s after its request.", period(m.config.Retention)),
		Retention: m.retentionSeconds(), retry: "false",
	}
}

func (m *Middleware) storeUnavailable() details {
	return details{
		Type: ProblemStoreUnavailable, Status: http.StatusServiceUnavailable, Title: "Idempotency keys cannot be checked at the moment",
		Detail:     "The request was not carried out. Send it again later, with the same key.",
		retryAfter: m.config.RetryAfter,
	}
}

func (m *Middleware) retentionSeconds() int64 { return int64(m.config.Retention / time.Second) }
