package lullhttp

import (
	"net/http"
	"strconv"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
)

// ClassifyStatus returns what a status alone means:
//
//   - below 400: success, also 101 and redirects;
//   - 408, 425, 500, 502, 503, 504: transient. So are numbers from 500 to 599 that are not listed
//     here, such as Cloudflare's 520 to 524: RFC 9110 (15) has a client treat them as 500;
//   - 429, and 529, which overloaded services send: rate-limited;
//   - other numbers from 400 to 499: permanent, as the fault is the request's;
//   - 501, 505, 506, 508, 510, 511: permanent, as the server (or the way to it) lacks something;
//     507, since RFC 4918 forbids repeating the request; 525 and 526, Cloudflare's for a failed
//     handshake and a bad certificate;
//   - anything else is not the status of a final response: permanent.
//
// No status means that a request was never sent, not even 521 and 523: an intermediary sends them
// about a server behind it.
//
// The code of a failure is the number. ClassifyStatus does not allocate.
func ClassifyStatus(status int) lull.Verdict {
	if status >= 200 && status < 400 || status == http.StatusSwitchingProtocols {
		return lull.Verdict{Kind: lull.KindSuccess}
	}
	return lull.Verdict{Kind: statusKind(status), Code: statusCode(status)}
}

func statusKind(status int) engine.VerdictKind {
	switch status {
	case 429, 529:
		return lull.KindRateLimited
	case 408, 425:
		return lull.KindTransient
	case 501, 505, 506, 507, 508, 510, 511, 525, 526:
		return lull.KindPermanent
	}
	return choice.Either(status >= 500 && status <= 599, lull.KindTransient, lull.KindPermanent)
}

// classifyResponse returns what status and hint mean together, by default.
//
//   - "Don't retry" turns what would have been repeated into an overload. A permanent failure with
//     this hint stays permanent: the dependency is well.
//   - "Do retry" makes a permanent failure transient.
//   - A 503 or 403 with a wait is rate-limited. GitHub sends 403 for a quota that is used up. So
//     are 409, 413 (RFC 9110, 15.5.14) and 423 with a wait, which pass. A 404 with a wait stays
//     permanent. A wait of zero changes nothing.
func classifyResponse(status int, h Hint, ok bool) lull.Verdict {
	v := ClassifyStatus(status)
	if !ok || v.Kind == lull.KindSuccess {
		return v
	}
	kind := v.Kind
	switch {
	case h.After > 0 && (status == http.StatusServiceUnavailable || status == http.StatusForbidden):
		kind = lull.KindRateLimited
	case h.Retry && kind == lull.KindPermanent && status >= 400:
		kind = lull.KindTransient
	case h.After > 0 && (status == http.StatusConflict || status == http.StatusRequestEntityTooLarge || status == http.StatusLocked):
		kind = lull.KindRateLimited
	}
	return withHint(kind, status, h)
}

// withHint returns what a status of a known kind means with a hint. The hint can end the call or
// name a wait. It does not make a permanent failure transient.
func withHint(kind engine.VerdictKind, status int, h Hint) lull.Verdict {
	v := lull.Verdict{Kind: kind, Code: statusCode(status)}
	if kind != lull.KindTransient && kind != lull.KindRateLimited {
		return v
	}
	if h.Stop {
		v.Kind = lull.KindOverloaded
		return v
	}
	v.After = h.After
	return v
}

// statusCode is strconv.Itoa without an allocation from 400 to 599.
func statusCode(status int) string {
	if status >= 400 && status <= 599 {
		return statusCodes[status-400]
	}
	return strconv.Itoa(status)
}

var statusCodes = func() (codes [200]string) {
	for i := range codes {
		codes[i] = strconv.Itoa(400 + i)
	}
	return codes
}()
