package lullhttp

import (
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// A Hint is what a server asks for about the next attempt. At most one of Stop and a wait is set.
// Retry may stand beside a wait.
type Hint struct {
	// After is how long the server asked to wait, from the arrival of the response. Zero asks for
	// no wait. A value too large for a Duration is its maximum, and so exceeds any limit.
	After time.Duration
	// Stop: do not repeat this request.
	Stop bool
	// Retry: the request may be repeated even where the status alone would not allow it.
	Retry bool
	// Source names the header field in its canonical form, or the member of the problem details:
	// "Retry-After", "problem retry_after".
	Source string
}

// Header fields in canonical form, so that a look-up is one access to the map.
const (
	hdrShouldRetry       = "X-Should-Retry"
	hdrStripeShouldRetry = "Stripe-Should-Retry"
	hdrPushback          = "Grpc-Retry-Pushback-Ms"
	hdrRateLimit         = "Ratelimit"
	hdrDate              = "Date"
	hdrAge               = "Age"
)

// waitHeaders name a wait whatever the status, in order of precedence. Retry-After is the only
// standard, and the drafts of RateLimit demand that it wins. The others have finer units. A server
// that sends both rounds Retry-After up, which does no harm.
var waitHeaders = [...]struct {
	key  string
	form form
}{
	{"Retry-After", formRetryAfter},
	{"Retry-After-Ms", formMillis},      // OpenAI, Azure
	{"X-Ms-Retry-After-Ms", formMillis}, // Azure
	{"X-Amz-Retry-After", formMillis},   // AWS
}

// ParseHint reads the header of a response that failed. It returns false if it finds no readable
// hint: a malformed field counts as missing. Header keys must be canonical, as net/http makes them.
// It takes about 150 ns with a Retry-After in seconds, 550 ns without any hint, and does not
// allocate.
//
// The most explicit statement wins:
//
//  1. "don't": X-Should-Retry or Stripe-Should-Retry "false", and a Grpc-Retry-Pushback-Ms that is
//     negative, unparsable or repeated (gRFC A6);
//  2. a pushback of zero or more milliseconds;
//  3. Retry-After, Retry-After-Ms, X-Ms-Retry-After-Ms, X-Amz-Retry-After;
//  4. RateLimit, as of draft-ietf-httpapi-ratelimit-headers-10, with r=0;
//  5. RateLimit-Reset, X-RateLimit-Reset and relatives, on 429, and on 503 and 403 with a
//     "remaining" of 0.
//
// If a field is repeated, also in one line with commas, or several quotas are used up at once, the
// longest wait counts.
//
// A wait until a date is measured against the Date of the response, so that our clock does not
// matter. A Date that is missing, or a day or more from now, is not used: now counts. The error is
// under a second, as dates have whole seconds.
//
// The Age of a response from a cache is added to its Date. The waits of its quotas (4, 5) are out
// of date and no hint. Only a point in time still counts.
func ParseHint(h http.Header, status int, now time.Time) (Hint, bool) {
	if len(h) == 0 {
		return Hint{}, false
	}
	hint, ok := parseShouldRetry(h)
	if hint.Stop {
		return hint, ok
	}
	pushback, pushed := parsePushback(h[hdrPushback])
	if pushback.Stop {
		return pushback, pushed
	}
	if !pushed {
		pushback, pushed = parseWait(h, status, now)
	}
	if pushed {
		pushback.Retry = hint.Retry
		return pushback, true
	}
	return hint, ok
}

// parseShouldRetry reads the yes-or-no fields. One "false" outweighs any "true".
func parseShouldRetry(h http.Header) (Hint, bool) {
	var hint Hint
	for _, key := range [...]string{hdrShouldRetry, hdrStripeShouldRetry} {
		for _, v := range h[key] {
			switch {
			case strings.EqualFold(v, "false"):
				return Hint{Stop: true, Source: key}, true
			case strings.EqualFold(v, "true") && !hint.Retry:
				hint = Hint{Retry: true, Source: key}
			}
		}
	}
	return hint, hint.Retry
}

// parsePushback reads gRPC's field, a signed 32-bit number of milliseconds without leading zeros.
// gRFC A6 defines that an unreadable one means "do not retry".
func parsePushback(values []string) (Hint, bool) {
	if len(values) == 0 {
		return Hint{}, false
	}
	v := values[0]
	if len(values) > 1 || v == "" || len(v) > 10 || v[0] == '0' && len(v) > 1 {
		return Hint{Stop: true, Source: hdrPushback}, true
	}
	d, ok := parseDigits(v, time.Millisecond)
	if !ok || d > (1<<31-1)*time.Millisecond {
		return Hint{Stop: true, Source: hdrPushback}, true
	}
	return Hint{After: d, Source: hdrPushback}, true
}

func parseWait(h http.Header, status int, now time.Time) (Hint, bool) {
	c := clock{header: h, now: now}
	for i := range waitHeaders {
		w := &waitHeaders[i]
		if d, ok := longest(h[w.key], w.form, c); ok {
			return Hint{After: d, Source: w.key}, true
		}
	}
	if d, ok := parseRateLimit(h[hdrRateLimit]); ok && c.age() == 0 {
		return Hint{After: d, Source: hdrRateLimit}, true
	}
	return parseResets(h, status, c)
}

// longest returns the longest wait among the values that can be parsed.
func longest(lines []string, f form, c clock) (wait time.Duration, ok bool) {
	for _, line := range lines {
		if d, valid := c.parse(line, f); valid {
			wait, ok = max(wait, d), true
			continue
		}
		for v := range splitMembers(line, f) {
			if d, valid := c.parse(v, f); valid {
				wait, ok = max(wait, d), true
			}
		}
	}
	return wait, ok
}

// splitMembers returns the values that an intermediary has joined in one line with commas (RFC
// 9110, 5.3), or none if there is one value. The comma after the name of a day belongs to a date.
// In a field of numbers with fractions, a comma between digits may be a decimal comma.
func splitMembers(line string, f form) iter.Seq[string] {
	separator := choice.Either(f == formRetryAfter, ",", ", ")
	return func(yield func(string) bool) {
		for more := strings.Contains(line, separator); more; {
			var day, rest string
			if day, rest, more = strings.Cut(line, separator); more && isDayName(strings.TrimSpace(day)) {
				_, rest, more = strings.Cut(rest, separator)
			}
			member := line[:len(line)-len(rest)]
			if more {
				member = strings.TrimSuffix(member, separator)
			}
			if !yield(strings.TrimSpace(member)) {
				return
			}
			line = rest
		}
	}
}

// preferHint combines the hint of the header with that of the problem details. A "don't" counts
// wherever it stands. Otherwise the header's hint counts.
func preferHint(header Hint, ok bool, p ProblemDetails) (Hint, bool) {
	inBody := p.Hint.Source != ""
	switch {
	case ok && header.Stop, !inBody:
		return header, ok
	case p.Hint.Stop, !ok:
		return p.Hint, true
	case header.Source == hdrShouldRetry || header.Source == hdrStripeShouldRetry:
		// The body may have a time for this "yes".
		return Hint{After: p.Hint.After, Retry: true, Source: p.Hint.Source}, true
	}
	return header, true
}

// ParseRetryAfter reads the value of a Retry-After field (RFC 9110, 10.2.3): a whole number of
// seconds, or a date in one of the three forms of HTTP. It returns false for anything else, such as
// "-1", "1.5", or a date that is not in GMT. A date in the past means 0. A number too large for a
// Duration means its maximum. A date is measured against now. ParseHint measures it against the
// clock of the server.
func ParseRetryAfter(s string, now time.Time) (time.Duration, bool) {
	return clock{now: now}.parseRetryAfter(s)
}

func (c clock) parseRetryAfter(s string) (time.Duration, bool) {
	if d, ok := parseDigits(s, time.Second); ok {
		return d, true
	}
	t, ok := parseHTTPDate(s, c.now)
	if !ok {
		return 0, false
	}
	return c.until(t), true
}
