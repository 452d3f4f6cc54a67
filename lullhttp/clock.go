package lullhttp

import (
	"net/http"
	"time"
)

// form is how the value of a field is written.
type form uint8

const (
	formRetryAfter  form = iota // whole seconds or an HTTP-date
	formMillis                  // milliseconds, perhaps with a fraction
	formReset                   // seconds, or a time, or a duration: see parseReset
	formResetMillis             // the same, with bare numbers in milliseconds
)

// plausibleSkew is how far a Date may be from our clock and still be believed
// to be the reading of a clock. It leaves room for a server that takes its
// local time for GMT.
const plausibleSkew = 24 * time.Hour

// clock turns points in time into waits.
type clock struct {
	header http.Header // of the response, for its Date; may be nil
	now    time.Time
}

func (c clock) parse(s string, f form) (time.Duration, bool) {
	switch f {
	case formRetryAfter:
		return c.parseRetryAfter(s)
	case formMillis:
		return parseDecimal(s, time.Millisecond)
	case formResetMillis:
		return c.parseReset(s, time.Millisecond)
	default:
		return c.parseReset(s, time.Second)
	}
}

// until is the wait until t, zero if t has passed. Sub saturates.
func (c clock) until(t time.Time) time.Duration {
	return max(0, t.Sub(c.base()))
}

// base is the time to measure dates against: the server's own, if it sent a Date.
func (c clock) base() time.Time {
	v := c.header[hdrDate]
	if len(v) != 1 {
		return c.now
	}
	date, ok := parseHTTPDate(v[0], c.now)
	if !ok || date.Sub(c.now).Abs() > plausibleSkew {
		return c.now
	}
	return date
}
