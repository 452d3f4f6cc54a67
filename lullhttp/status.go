package lullhttp

import (
	"net/http"
	"strconv"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// ClassifyStatus returns what a status alone means:
//
//   - below 400: success. 101 is one, a redirect is the client's business;
//   - 408, 425, 500, 502, 503, 504: transient. So is a number from 500 to 599
//     that is not listed here, since RFC 9110 (15) has a client treat it as 500;
//     among them Cloudflare's 520 to 524;
//   - 429, and 529, which overloaded services send: rate-limited;
//   - other numbers from 400 to 499: permanent, as the fault is the request's;
//   - 501, 505, 506, 508, 510, 511: permanent, as the server (or the way to it)
//     lacks something; 507, since RFC 4918 forbids to repeat the request; 525
//     and 526, which are Cloudflare's for a failed handshake and a bad certificate;
//   - anything else is no status of a final response: permanent.
//
// It never claims that a request was not sent, not even for 521 and 523: an intermediary
// sends them about a server behind it, which proves nothing.
//
// The code of a failure is the number. It does not allocate.
func ClassifyStatus(status int) lull.Verdict {
	if status >= 200 && status < 400 || status == http.StatusSwitchingProtocols {
		return lull.Verdict{Kind: lull.KindSuccess}
	}
	return lull.Verdict{Kind: statusKind(status), Code: statusCode(status)}
}

// statusKind is the kind of a status that is no success.
func statusKind(status int) engine.VerdictKind {
	switch status {
	case 429, 529:
		return lull.KindRateLimited
	case 408, 425:
		return lull.KindTransient
	case 501, 505, 506, 507, 508, 510, 511, 525, 526:
		return lull.KindPermanent
	}
	if status >= 500 && status <= 599 {
		return lull.KindTransient
	}
	return lull.KindPermanent
}

// classifyResponse returns what status and hint mean together, by default.
//
//   - "Don't retry" makes an overload of what would have been repeated. A 402 that
//     comes with Stripe-Should-Retry: false stays what it is: the dependency is
//     well, the request was at fault.
//   - "Do retry" makes a permanent failure transient: the server knows better.
//   - A 503 that names a wait asks for fewer requests. So does a 403: GitHub
//     answers so when a quota is used up, with a wait or a reset of the quota. So do a
//     conflict (409), a content that is too large for now (413: RFC 9110, 15.5.14) and a lock
//     (423), which pass. A 404 that names a wait is the answer. A wait of zero asks for
//     nothing.
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

// withHint returns what a status means whose kind is known, by default or from the user. The
// hint can end the call or name a wait, but it does not make a permanent failure transient.
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

// statusCode is the number as a string, without an allocation from 400 to 599.
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
