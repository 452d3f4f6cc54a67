package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A clock reads the times of a source.
type clock struct {
	zone   *time.Location
	layout int       // of the time before
	time   time.Time // the time before
}

const wantTime = "such as 2026-11-29T18:05:19.123Z, 29/Nov/2026:18:05:19 +0000 or seconds since 1970, from 2000 to 2099"

var (
	errTime  = errors.New(wantTime)
	errZone  = errors.New("the times have no zone: want that of the server, such as --zone UTC or --zone Europe/Berlin")
	errTwice = errors.New("the hour comes twice")
	// Those without a zone end with the seconds.
	layouts = []string{"02/Jan/2006:15:04:05 -0700", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700",
		"2006-01-02 15:04:05 MST", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006/01/02 15:04:05", "02/Jan/2006:15:04:05"}
	epochUnits = map[int]time.Duration{9: time.Second, 10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: 1} // by the number of digits
)

// parse returns a time, and how exactly it is written. With errTwice the time is the one that is nearer to the time before. Other
// errors but errZone say what is wanted.
func (c *clock) parse(b []byte) (t time.Time, resolution time.Duration, err error) {
	b = bytes.Trim(b, `[]"`)
	resolution = digitsOf(b, time.Second)
	if whole, _, _ := bytes.Cut(b, []byte{'.'}); len(whole) > 8 && isDigits(whole) {
		var n int64
		if n, resolution, _ = parseDecimal(b, epochUnits[len(whole)]); n == 0 {
			err = errTime
		}
		t = time.Unix(0, n)
	} else {
		t, err = c.parseText(string(b))
	}
	if err == nil && (t.Year() < 2000 || t.Year() > 2099) {
		err = errTime
	}
	if err == nil || errors.Is(err, errTwice) {
		c.time = t
	}
	return t, resolution, err
}

func (c *clock) parseText(s string) (t time.Time, err error) {
	zone := cmp.Or(c.zone, time.UTC)
	for range layouts {
		if t, err = time.ParseInLocation(layouts[c.layout], s, zone); err == nil {
			break
		}
		c.layout = (c.layout + 1) % len(layouts)
	}
	switch layout := layouts[c.layout]; {
	case err != nil:
		return t, errTime
	case !strings.HasSuffix(layout, "5"): // it has a zone
		return t, nil
	case c.zone == nil:
		return t, errZone
	case !strings.Contains(s, t.Format("15:04:05")):
		return t, fmt.Errorf("a time that there was in %v", zone)
	default:
		for _, d := range []time.Duration{time.Hour, -time.Hour, time.Hour / 2, -time.Hour / 2} {
			if other := t.Add(d); other.Format(layout) == t.Format(layout) {
				if other.Sub(c.time).Abs() < t.Sub(c.time).Abs() {
					t = other
				}
				return t, errTwice
			}
		}
		return t, nil
	}
}

// parseDecimal reads a number of units, or one with a unit of its own, such as 12ms, and how exactly it is written.
func parseDecimal(b []byte, unit time.Duration) (n int64, precision time.Duration, ok bool) {
	if len(b) > 1 && !isDigits(b[len(b)-1:]) {
		d, err := time.ParseDuration(string(b))
		return int64(d), 1, err == nil && d >= 0
	}
	f, err := strconv.ParseFloat(string(b), 64)
	f *= float64(unit)
	if precision = digitsOf(b, unit); bytes.IndexByte(b, 'e') >= 0 {
		precision = 1
	}
	if err != nil || unit == 0 || !(f >= 0 && f < 9e18) {
		return 0, 0, false
	}
	return int64(math.Round(f/float64(precision))) * int64(precision), precision, true
}

// digitsOf returns what the last digit behind the point counts.
func digitsOf(b []byte, unit time.Duration) time.Duration {
	for i := bytes.IndexAny(b, ".,") + 1; i > 0 && i < len(b) && isDigits(b[i:i+1]); i++ {
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
