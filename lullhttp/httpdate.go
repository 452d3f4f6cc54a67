package lullhttp

import (
	"strings"
	"time"
)

// parseHTTPDate reads the three forms of RFC 9110, 5.6.7:
//
//	Sun, 06 Nov 1994 08:49:37 GMT    IMF-fixdate
//	Sunday, 06-Nov-94 08:49:37 GMT   rfc850-date
//	Sun Nov  6 08:49:37 1994         asctime-date
//
// http.ParseTime is more lenient (letter case, zones, two-digit years by a fixed pivot) and does
// not take the leap second, which is legal. The name of the day is not checked against the date.
func parseHTTPDate(s string, now time.Time) (time.Time, bool) {
	day := strings.IndexAny(s, ", ")
	if day < 0 || !isDayName(s[:day]) {
		return time.Time{}, false
	}
	s = s[day:]
	layout, twoDigits := ", 02 Jan 2006 15:04:05 GMT", day > len("Sun")
	switch {
	case twoDigits:
		layout = ", 02-Jan-06 15:04:05 GMT"
	case strings.HasPrefix(s, " "):
		layout = " Jan _2 15:04:05 2006"
		if len(s) == len(layout) && s[5] == '0' {
			layout = " Jan 02 15:04:05 2006"
		}
	}
	if len(s) != len(layout) {
		return time.Time{}, false
	}
	var leap time.Duration
	if i := strings.LastIndexByte(s, ':'); i >= 0 && strings.HasPrefix(s[i:], ":60") {
		s, leap = s[:i]+":59"+s[i+3:], time.Second
	}
	t, err := time.Parse(layout, s)
	var strict [len(", 02 Jan 2006 15:04:05 GMT")]byte
	if err != nil || string(t.AppendFormat(strict[:0], layout)) != s {
		return time.Time{}, false
	}
	if twoDigits {
		t = latestCentury(t, now.UTC().AddDate(50, 0, 0))
	}
	return t.Add(leap), true
}

// latestCentury finds the century of t. A year that appears to be more than 50 years ahead is in
// the past. So it is the latest year with these digits that is not beyond the horizon and has such
// a day.
func latestCentury(t, horizon time.Time) time.Time {
	for year := horizon.Year()/100*100 + t.Year()%100; ; year -= 100 {
		if u := t.AddDate(year-t.Year(), 0, 0); u.Day() == t.Day() && !u.After(horizon) {
			return u
		}
	}
}

func isDayName(s string) bool {
	for day := range time.Weekday(7) {
		if name := day.String(); s == name || s == name[:3] {
			return true
		}
	}
	return false
}
