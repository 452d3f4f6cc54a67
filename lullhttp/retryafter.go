package lullhttp

import "time"

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
