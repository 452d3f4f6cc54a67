package lullhttp

import (
	"net/http"
	"strings"
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

// plausibleSkew is how far a Date may be from our clock before it is ignored. It leaves room for a
// server that takes its local time for GMT.
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

// until returns the wait until t, or zero if t has passed. Sub saturates.
func (c clock) until(t time.Time) time.Duration {
	return max(0, t.Sub(c.base()))
}

// base returns the time against which dates are measured: the server's own, if it sent a Date. The
// Date of a response from a cache is as old as the response. But some caches replace it with their
// own time, so of the two the one nearer to our clock counts.
func (c clock) base() time.Time {
	v := c.header[hdrDate]
	if len(v) != 1 {
		return c.now
	}
	date, ok := parseHTTPDate(v[0], c.now)
	if !ok {
		return c.now
	}
	if sent := date.Add(c.age()); sent.Sub(c.now).Abs() < date.Sub(c.now).Abs() {
		date = sent
	}
	if date.Sub(c.now).Abs() > plausibleSkew {
		return c.now
	}
	return date
}

// age returns how long a response was in a cache, in whole seconds. Of a list the first member
// counts, and what is no number does not (RFC 9111, 5.1).
func (c clock) age() time.Duration {
	v := c.header[hdrAge]
	if len(v) == 0 {
		return 0
	}
	first, _, _ := strings.Cut(v[0], ",")
	d, _ := parseDigits(strings.Trim(first, " \t"), time.Second)
	return d
}
