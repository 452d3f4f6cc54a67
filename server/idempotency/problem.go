package idempotency

import (
	"fmt"
	"net/http"
	"time"

	"github.com/lullgo/lull/internal/response"
)

// The problem types (RFC 9457) of the middleware's own answers. They are tag URIs
// (RFC 4151), which never change and lead nowhere. Config.Documentation is the address
// of a page.
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

	showsRetention bool          // it has Retention
	retryAfter     time.Duration // more than zero: Retry-After
	shouldRetry    string        // X-Should-Retry
}

// problems has what the answers of a type have in common.
var problems = map[string]details{
	ProblemKeyMissing: {
		Status: http.StatusBadRequest, Title: "Idempotency-Key is missing", showsRetention: true,
		Detail: "This operation needs an Idempotency-Key: a unique string in double quotes, the same for all attempts at one operation.",
	},
	ProblemKeyInvalid: {
		Status: http.StatusBadRequest, Title: "Idempotency-Key is not valid",
		Detail: "The key must be a string of printable ASCII characters in double quotes, and not empty.",
	},
	ProblemKeyTooLong: {
		Status: http.StatusBadRequest, Title: "Idempotency-Key is too long",
		Detail: "The key may have up to %d characters.",
	},
	ProblemNoCaller: {
		Status: http.StatusBadRequest, Title: "Idempotency-Key without a known caller",
		Detail: "Keys belong to callers, and this request does not say whose it is. Send it with your credentials.",
	},
	ProblemBodyUnreadable: {
		Status: http.StatusBadRequest, Title: "The request body could not be read",
		Detail: "The request was not carried out.",
	},
	ProblemBodyTooLarge: {
		Status: http.StatusRequestEntityTooLarge, Title: "The request body is too large",
		Detail: "With an Idempotency-Key the body may have up to %d bytes. The request was not carried out.",
	},
	ProblemInFlight: {
		Status: http.StatusConflict, Title: "A request is outstanding for this Idempotency-Key", shouldRetry: "true",
		Detail: "The first request with this key is still being processed. Send it again later, with the same key.",
	},
	ProblemKeyReused: {
		Status: http.StatusUnprocessableEntity, Title: "Idempotency-Key is already used", shouldRetry: "false", showsRetention: true,
		Detail: "This key was used for another request. A key must not be used again with another method, target or payload.",
	},
	ProblemOutcomeUnknown: {
		Status: http.StatusConflict, Title: "The outcome of the first request is unknown", shouldRetry: "false",
		Detail: "A request with this key began and was interrupted. It may or may not have been carried out, and is not carried out again. Find out before you send it with a new key.",
	},
	ProblemResponseNotKept: {
		Status: http.StatusConflict, Title: "The response to the first request was not kept", shouldRetry: "false",
		Detail: "The request with this key was carried out, and is not carried out again. Its response cannot be repeated.",
	},
	ProblemTooManyKeys: {
		Status: http.StatusTooManyRequests, Title: "Too many Idempotency-Keys of this caller", shouldRetry: "false", showsRetention: true,
		Detail: "The request was not carried out: this caller's share of the keys that can be remembered is used up. Each is forgotten %s after its request.",
	},
	ProblemStoreUnavailable: {
		Status: http.StatusServiceUnavailable, Title: "Idempotency keys cannot be checked at the moment",
		Detail: "The request was not carried out. Send it again later, with the same key.",
	},
}

// details returns an answer of a type. args are those of its Detail.
func (m *Middleware) details(kind string, args ...any) details {
	d := problems[kind]
	d.Type = kind
	if len(args) > 0 {
		d.Detail = fmt.Sprintf(d.Detail, args...)
	}
	if d.showsRetention {
		d.Retention = int64(m.config.Retention / time.Second)
	}
	return d
}

// tooLong returns the answer to a key or a body beyond limit.
func (m *Middleware) tooLong(kind string, limit int64) details {
	d := m.details(kind, limit)
	d.Limit = limit
	return d
}

func (m *Middleware) problem(w http.ResponseWriter, d details) {
	h := w.Header()
	h.Set("Content-Language", "en")
	if doc := m.config.Documentation; doc != "" {
		h.Add("Link", "<"+doc+`>; rel="describedby"; type="text/html"`)
	}
	if d.retryAfter > 0 {
		response.SetRetryAfter(h, d.retryAfter)
	}
	if d.shouldRetry != "" {
		h.Set("X-Should-Retry", d.shouldRetry)
	}
	response.Problem(w, d.Status, d)
}
