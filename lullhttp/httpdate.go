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
// http.ParseTime is more lenient (letter case, zones, two-digit years by a
// fixed pivot) and does not take the leap second, which is legal. The name of
// the day must be one, but is not checked against the date.
func parseHTTPDate(s string, now time.Time) (time.Time, bool) {
	switch {
	case len(s) == len("Sun Nov  6 08:49:37 1994"):
		return parseASCTime(s)
	case len(s) == len("Sun, 06 Nov 1994 08:49:37 GMT") && s[3] == ',':
		return parseIMF(s)
	default:
		return parseRFC850(s, now)
	}
}

func parseIMF(s string) (time.Time, bool) {
	if !isDay(s[:3]) || s[3:5] != ", " || s[7] != ' ' || s[11] != ' ' || s[16] != ' ' || s[25:] != " GMT" {
		return time.Time{}, false
	}
	return makeTime(digits(s[12:16]), monthNumber(s[8:11]), digits(s[5:7]), s[17:25])
}

func parseASCTime(s string) (time.Time, bool) {
	if !isDay(s[:3]) || s[3] != ' ' || s[7] != ' ' || s[10] != ' ' || s[19] != ' ' {
		return time.Time{}, false
	}
	day := digits(s[8:10])
	if s[8] == ' ' {
		day = digits(s[9:10])
	}
	return makeTime(digits(s[20:24]), monthNumber(s[4:7]), day, s[11:19])
}

// parseRFC850 also finds the century. A year that appears to be more than 50
// years ahead is in the past; read the other way round, so that it holds at the
// turn of a century too: it is the latest year with these digits that is not.
func parseRFC850(s string, now time.Time) (time.Time, bool) {
	name, rest, ok := strings.Cut(s, ", ")
	if !ok || !isLongDay(name) || len(rest) != len("06-Nov-94 08:49:37 GMT") ||
		rest[2] != '-' || rest[6] != '-' || rest[9] != ' ' || rest[18:] != " GMT" {
		return time.Time{}, false
	}
	day, mon, year := digits(rest[:2]), monthNumber(rest[3:6]), digits(rest[7:9])
	if year < 0 {
		return time.Time{}, false
	}
	now = now.UTC()
	horizon := now.AddDate(50, 0, 0)
	year += (now.Year()/100 + 1) * 100
	for range 2 {
		t, ok := makeTime(year, mon, day, rest[10:18])
		if ok && !t.After(horizon) {
			return t, true
		}
		year -= 100
	}
	return makeTime(year, mon, day, rest[10:18])
}

// makeTime checks the ranges and the length of the month. Its clock is
// hour:minute:second, where second 60 is a leap second.
func makeTime(year, month, day int, clock string) (time.Time, bool) {
	if clock[2] != ':' || clock[5] != ':' {
		return time.Time{}, false
	}
	hour, minute, second := digits(clock[:2]), digits(clock[3:5]), digits(clock[6:])
	if year < 0 || month < 1 || day < 1 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return time.Time{}, false
	}
	midnight := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if midnight.Day() != day { // 30 Feb has become 1 or 2 Mar
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC), true
}

// digits reads digits only; -1 if there is anything else.
func digits(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

const (
	monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"
	dayNames   = "MonTueWedThuFriSatSun"
)

// monthNumber is 1 to 12, or 0.
func monthNumber(s string) int {
	return nameIndex(monthNames, s) + 1
}

func isDay(s string) bool { return nameIndex(dayNames, s) >= 0 }

// nameIndex finds a name of three letters in a row of such names.
func nameIndex(names, s string) int {
	for i := 0; i < len(names); i += 3 {
		if names[i:i+3] == s {
			return i / 3
		}
	}
	return -1
}

func isLongDay(s string) bool {
	switch s {
	case "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday":
		return true
	}
	return false
}
