package lullhttp

import (
	"iter"
	"net/http"
	"strings"
	"time"
)

// A Hint is what a server asks for about the next attempt. At most one of Stop and
// a wait is set; Retry may stand beside a wait.
type Hint struct {
	// After is how long the server asked to wait, counted from the moment the
	// response arrived. Zero: now is as good as later. A value too large for a
	// Duration is its maximum, so that it is longer than any limit.
	After time.Duration
	// Stop: do not repeat this request.
	Stop bool
	// Retry: repeating is welcome, also where the status alone would not allow it.
	Retry bool
	// Source names the header field in its canonical form, or the member of the
	// problem details, that it comes from: "Retry-After", "problem retry_after".
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

// waitHeaders name a wait whatever the status, in order of precedence.
// Retry-After comes first: it is the one field with a standard, and the drafts of the
// RateLimit fields demand that it wins. The others exist to be finer than a
// second. A server that sends both rounds Retry-After up, and to wait a fraction of a
// second too long does no harm.
var waitHeaders = [...]struct {
	key  string
	form form
}{
	{"Retry-After", formRetryAfter},
	{"Retry-After-Ms", formMillis},      // OpenAI, Azure
	{"X-Ms-Retry-After-Ms", formMillis}, // Azure
	{"X-Amz-Retry-After", formMillis},   // AWS
}

// ParseHint reads the header of a response that failed. It returns false when there is no
// hint in it that can be read: a malformed field counts as missing. Header keys must be
// canonical, as net/http makes
// them. It takes about 150 ns with a Retry-After in seconds, 550 ns without any
// hint, and does not allocate.
//
// The most explicit statement wins:
//
//  1. "don't": X-Should-Retry or Stripe-Should-Retry "false", and
//     Grpc-Retry-Pushback-Ms that is negative, unparsable or repeated (gRFC A6
//     gives all of these the same meaning);
//  2. a pushback of zero or more milliseconds;
//  3. Retry-After, Retry-After-Ms, X-Ms-Retry-After-Ms, X-Amz-Retry-After;
//  4. RateLimit, as of draft-ietf-httpapi-ratelimit-headers-10, with r=0;
//  5. RateLimit-Reset, X-RateLimit-Reset and relatives, on 429, or on 503 and
//     403 that come with a "remaining" of 0.
//
// When a field is repeated, also in one line with commas between, or several quotas are used up at once, the longest
// wait counts: whoever waits less comes too early for one of them.
//
// A wait until a date is measured against the Date of the response when it has
// one that is less than a day away from now: the difference of two readings of
// the server's clock does not depend on ours being right. Beyond a day it is
// more likely that Date is made up than that the clocks differ, and now counts.
// Both Date and the target have whole seconds, so the error is under a second.
//
// The Date of a response that comes out of a cache is as old as the response, so its Age is
// added. How long its quotas (4, 5) then had to wait is out of date, and not a hint: only a
// point in time still counts.
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

// parsePushback reads gRPC's field: a signed 32-bit number of milliseconds
// without superfluous zeros. It is the one field where what cannot be parsed is
// not ignored, since gRFC A6 defines it to mean "do not retry".
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

// parseWait looks for the first field that names a wait.
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

// longest parses every value and returns the longest wait of those that parse.
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

// splitMembers are the values in a line that an intermediary has joined of several, with commas
// between (RFC 9110, 5.3); none if it has joined none. The comma after the name of a day
// belongs to a date. In a field of numbers with fractions one between digits may be a
// decimal comma.
func splitMembers(line string, f form) iter.Seq[string] {
	separator := ", "
	if f == formRetryAfter {
		separator = ","
	}
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

// preferHint combines the hint of the header with that of the problem details in
// the body. A "don't" counts wherever it stands, otherwise the header does.
func preferHint(header Hint, ok bool, p ProblemDetails) (Hint, bool) {
	inBody := p.Hint.Source != ""
	switch {
	case ok && header.Stop, !inBody:
		return header, ok
	case p.Hint.Stop, !ok:
		return p.Hint, true
	case header.Source == hdrShouldRetry || header.Source == hdrStripeShouldRetry:
		// "Yes, retry" without a time: the body may have one.
		return Hint{After: p.Hint.After, Retry: true, Source: p.Hint.Source}, true
	}
	return header, true
}
