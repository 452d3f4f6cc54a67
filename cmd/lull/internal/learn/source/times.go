package source

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// A clock reads the times of a source.
type clock struct {
	zone   *time.Location
	layout string // of the time before
	text   []byte // of the time before: lines of the same second have the same
	time   time.Time
	latest time.Time // the time before, for hours that come twice
}

const wantTime = "such as 2026-11-29T18:05:19.123Z, 29/Nov/2026:18:05:19 +0000 or seconds since 1970, from 2000 to 2099"

var (
	errTime    = errors.New("no time")
	errZone    = errors.New("the times have no zone: give that of the server, such as UTC or Europe/Berlin")
	errTwice   = errors.New("the hour comes twice")
	errSkipped = errors.New("the hour does not exist")
	layouts    = []string{"02/Jan/2006:15:04:05 -0700", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700",
		"2006-01-02 15:04:05 MST", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006/01/02 15:04:05", "02/Jan/2006:15:04:05"}
)

// parse returns a time, and how exactly it is written. With errTwice the time is the nearer one to the time before.
func (c *clock) parse(b []byte) (t time.Time, resolution time.Duration, err error) {
	resolution = digitsOf(b, time.Second)
	switch b = bytes.Trim(b, `[]"`); {
	case len(b) > 8 && isDigits(b[:9]): // seconds since 1970, or parts of them: which, is told by the number of digits
		whole, _, _ := bytes.Cut(b, []byte{'.'})
		unit := map[int]time.Duration{9: time.Second, 10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: 1}[len(whole)]
		n, precision, ok := parseDecimal(b, unit)
		if resolution, t = precision, time.Unix(0, n); !ok {
			return t, 0, errTime
		}
	case bytes.Equal(b, c.text) && len(b) > 0:
		t = c.time
	default:
		if t, err = c.parseText(string(b)); err != nil {
			return t, resolution, err
		}
		c.text, c.time = append(c.text[:0], b...), t
	}
	if t.Before(time.Unix(946684800, 0)) || !t.Before(time.Unix(4102444800, 0)) {
		return t, 0, errTime
	}
	c.latest = t
	return t, resolution, nil
}

func (c *clock) parseText(s string) (time.Time, error) {
	zone := c.zone
	if zone == nil {
		zone = time.UTC
	}
	t, err := time.ParseInLocation(c.layout, s, zone)
	for i := 0; err != nil && i < len(layouts); i++ {
		c.layout = layouts[i]
		t, err = time.ParseInLocation(c.layout, s, zone)
	}
	switch last := c.layout[len(c.layout)-1]; {
	case err != nil:
		return t, errTime
	case last != '5':
		return t, nil
	case c.zone == nil:
		return t, errZone
	}
	clockTime := c.layout[strings.Index(c.layout, "15"):]
	if !strings.Contains(s, t.Format(clockTime)) {
		return t, errSkipped
	}
	for _, d := range []time.Duration{time.Hour, -time.Hour, 30 * time.Minute, -30 * time.Minute} {
		if other := t.Add(d); other.Format(c.layout) == t.Format(c.layout) {
			if other.Sub(c.latest).Abs() < t.Sub(c.latest).Abs() {
				t = other
			}
			c.latest = t
			return t, errTwice
		}
	}
	return t, nil
}

// parseDecimal reads a number of units, or one with a unit of its own, such as 12ms, and how exactly it is written.
func parseDecimal(b []byte, unit time.Duration) (n int64, precision time.Duration, ok bool) {
	if len(b) > 1 && !isDigits(b[len(b)-1:]) {
		d, err := time.ParseDuration(string(b))
		return int64(d), 1, err == nil && d >= 0
	}
	f, err := strconv.ParseFloat(string(b), 64)
	f *= float64(unit)
	if precision = digitsOf(b, unit); err != nil || unit == 0 || !(f >= 0 && f < 9e18) {
		return 0, 0, false
	}
	return int64(math.Round(f/float64(precision))) * int64(precision), precision, true
}

// digitsOf returns what the last digit behind the point counts.
func digitsOf(b []byte, unit time.Duration) time.Duration {
	point := bytes.IndexAny(b, ".,")
	if bytes.IndexByte(b, 'e') >= 0 {
		return 1
	}
	for i := point + 1; point >= 0 && i < len(b) && isDigits(b[i:i+1]); i++ {
		unit = max(1, unit/10)
	}
	return unit
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
