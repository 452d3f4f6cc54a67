package lullhttp

import (
	"net/http"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// resetHeaders are the fields in which services send when a quota is full again, apart from the
// standard. Fields with the same rank belong together, such as the quotas of requests and of
// tokens. A lower rank wins. Waits come before points in time, which depend on clocks.
var resetHeaders = [...]struct {
	rank             int
	reset, remaining string
	form             form
}{
	// Drafts 00 to 06 of the standard. GitLab and Twitch send an epoch in it.
	{1, "Ratelimit-Reset", "Ratelimit-Remaining", formReset},
	// Discord.
	{2, "X-Ratelimit-Reset-After", "X-Ratelimit-Remaining", formReset},
	// A wait or an epoch, both are in use.
	{3, "X-Ratelimit-Reset-Ms", "X-Ratelimit-Remaining", formResetMillis},
	// GitHub (epoch), Reddit (wait), Atlassian (RFC 3339), many others.
	{4, "X-Ratelimit-Reset", "X-Ratelimit-Remaining", formReset},
	// Okta, X.
	{5, "X-Rate-Limit-Reset", "X-Rate-Limit-Remaining", formReset},
	// OpenAI.
	{6, "X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests", formReset},
	{6, "X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens", formReset},
	// Anthropic.
	{7, "Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Requests-Remaining", formReset},
	{7, "Anthropic-Ratelimit-Tokens-Reset", "Anthropic-Ratelimit-Tokens-Remaining", formReset},
	{7, "Anthropic-Ratelimit-Input-Tokens-Reset", "Anthropic-Ratelimit-Input-Tokens-Remaining", formReset},
	{7, "Anthropic-Ratelimit-Output-Tokens-Reset", "Anthropic-Ratelimit-Output-Tokens-Remaining", formReset},
}

// parseResets reads resetHeaders. Services send them with every response, so they are a hint only
// if the request failed because of a quota: with 429, and with a 403 (as at GitHub) or 503 that has
// a "remaining" of 0.
func parseResets(h http.Header, status int, c clock) (Hint, bool) {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusForbidden:
	default:
		return Hint{}, false
	}
	var hint Hint
	found := 0 // rank of the hint
	for i := range resetHeaders {
		r := &resetHeaders[i]
		if found != 0 && r.rank != found {
			break
		}
		values := h[r.reset]
		if len(values) == 0 || !exhausted(h[r.remaining], status) {
			continue
		}
		if d, ok := longest(values, r.form, c); ok && (found == 0 || d > hint.After) {
			hint = Hint{After: d, Source: r.reset}
			found = r.rank
		}
	}
	return hint, found != 0
}

// exhausted reports whether nothing is left of a quota. Some services count on below zero. A 429
// shows it where the field is missing or unreadable.
func exhausted(remaining []string, status int) bool {
	known := false
	for _, line := range remaining {
		none, ok := isNone(line)
		for v := range splitMembers(line, formReset) {
			n, k := isNone(v)
			none, ok = none || n, ok || k
		}
		if none {
			return true
		}
		known = known || ok
	}
	return !known && status == http.StatusTooManyRequests
}

// isNone reports whether v means that nothing remains, and whether it is a number.
func isNone(v string) (none, ok bool) {
	v, negative := strings.CutPrefix(v, "-")
	n, ok := parseDecimal(v, time.Second)
	return ok && (n == 0 || negative), ok
}

// A bare number may be a wait or a point in time. Its size decides: nobody asks for a wait of 30
// years, and no API ran before 2001.
const (
	minEpochSeconds = 1e9  // 2001-09-09
	minEpochMillis  = 1e11 // as seconds that is the year 5138, as milliseconds 1973
	endEpochMillis  = 1e14 // the year 5138 in milliseconds; what is beyond is neither
)

// parseReset reads the forms that are in use, with unit for bare numbers:
//
//	30, 0.25                     a wait
//	1712345678, 1712345678.123   seconds since 1970
//	1712345678123                milliseconds since 1970
//	6m0s, 1s, 120ms              a wait as Go writes it
//	2024-04-05T19:34:38Z         RFC 3339, also without seconds (Atlassian)
//	Fri, 05 Apr 2024 19:34:38 GMT
func (c clock) parseReset(s string, unit time.Duration) (time.Duration, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		t, ok := parseHTTPDate(s, c.now)
		if !ok {
			return 0, false
		}
		return c.until(t), true
	}
	if len(s) > 10 && s[4] == '-' && s[10] == 'T' {
		return c.parseRFC3339(s)
	}
	if last := s[len(s)-1]; last >= '0' && last <= '9' {
		return c.parseNumber(s, unit)
	}
	d, ok := parseDuration(s)
	return c.ifFresh(d, ok)
}

// ifFresh returns the wait, or false if the response comes from a cache: the wait is out of date
// (draft-ietf-httpapi-ratelimit-headers, on caching).
func (c clock) ifFresh(d time.Duration, ok bool) (time.Duration, bool) {
	if !ok || c.age() > 0 {
		return 0, false
	}
	return d, true
}

func (c clock) parseNumber(s string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, hasFraction := strings.Cut(s, ".")
	n, ok := parseDigits(whole, 1) // of any unit: below endEpochMillis it is exact
	if !ok || n >= endEpochMillis {
		return 0, false
	}
	switch {
	case n >= minEpochMillis:
		unit = time.Millisecond
	case unit == time.Second && n >= minEpochSeconds:
	default:
		d, ok := parseDecimal(s, unit)
		return c.ifFresh(d, ok)
	}
	var part time.Duration
	if hasFraction {
		if part, ok = parseFraction(fraction, unit); !ok {
			return 0, false
		}
	}
	if unit == time.Millisecond {
		return c.until(time.UnixMilli(int64(n)).Add(part)), true
	}
	return c.until(time.Unix(int64(n), int64(part))), true
}

func (c clock) parseRFC3339(s string) (time.Duration, bool) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		if t, err = time.Parse("2006-01-02T15:04Z07:00", s); err != nil {
			return 0, false
		}
	}
	return c.until(t), true
}

// durationUnits are sorted from the largest down. A unit may not follow a smaller one.
var durationUnits = [...]struct {
	name string
	unit time.Duration
}{
	{"d", 24 * time.Hour},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
	{"ms", time.Millisecond},
	{"us", time.Microsecond},
	{"µs", time.Microsecond},
	{"ns", time.Nanosecond},
}

// parseDuration reads what time.Duration.String writes, and days. Unlike time.ParseDuration it
// saturates, takes no sign and does not allocate.
func parseDuration(s string) (time.Duration, bool) {
	var sum time.Duration
	next := 0 // the first unit that is still allowed
	for s != "" {
		n := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if n <= 0 {
			return 0, false
		}
		value := s[:n]
		s = s[n:]
		n = strings.IndexFunc(s, func(r rune) bool { return r >= '0' && r <= '9' })
		if n < 0 {
			n = len(s)
		}
		for next < len(durationUnits) && durationUnits[next].name != s[:n] {
			next++
		}
		if next == len(durationUnits) {
			return 0, false
		}
		d, ok := parseDecimal(value, durationUnits[next].unit)
		if !ok {
			return 0, false
		}
		sum = saturating.Add(sum, d)
		s = s[n:]
		next++
	}
	return sum, true
}
