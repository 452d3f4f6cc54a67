package source

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"time"
)

// NoZone is the error for times without a zone.
var NoZone = errors.New("the times have no zone: give the zone of the server, such as UTC or Europe/Berlin")

// A clock reads the times of a source. All are nanoseconds since 1970.
type clock struct {
	zone *time.Location
	last int64 // the time before, for hours that come twice
}

const wantTime = "such as 2026-11-29T18:05:19.123Z, 29/Nov/2026:18:05:19 +0000 or seconds since 1970, from 2000 to 2099"

var (
	errTime    = errors.New("not a time")
	errTwice   = errors.New("twice")
	errSkipped = errors.New("skipped")
)

// parse returns a time and how exactly it is written. With errTwice and errSkipped the time is a guess.
func (c *clock) parse(b []byte) (ns int64, resolution time.Duration, err error) {
	b = bytes.Trim(b, `[]"`)
	if len(b) < 9 {
		return 0, 0, errTime
	}
	if isDigits(b[:9]) {
		return parseEpoch(b)
	}
	year, month, day, rest, ok := parseDate(b)
	if !ok || len(rest) < 9 || rest[3] != ':' || rest[6] != ':' || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, 0, errTime
	}
	hour, minute, second := number(rest[1:3]), number(rest[4:6]), number(rest[7:9])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 || year < 2000 || year > 2099 {
		return 0, 0, errTime
	}
	if day > 28 && day > int(daysSince1970(year, month+1, 1)-daysSince1970(year, month, 1)) {
		return 0, 0, errTime
	}
	rest, resolution = rest[9:], time.Second
	var fraction int64
	if len(rest) > 0 && (rest[0] == '.' || rest[0] == ',') {
		end := 1
		for end < len(rest) && isDigits(rest[end:end+1]) {
			end++
		}
		for i := 1; i < end && i < 10; i++ {
			resolution /= 10
			fraction += int64(rest[i]-'0') * int64(resolution)
		}
		rest = rest[end:]
	}
	offset, ok := parseOffset(rest)
	if !ok && len(rest) > 0 {
		return 0, 0, errTime
	}
	if ok {
		t := daysSince1970(year, month, day)*86400 + int64(hour)*3600 + int64(minute)*60 + int64(second) - int64(offset)
		return t*1e9 + fraction, resolution, nil
	}
	if c.zone == nil {
		return 0, 0, NoZone
	}
	ns, err = c.local(year, month, day, hour, minute, second)
	return ns + fraction, resolution, err
}

// local returns a time of the zone. Of two it takes the one that is nearer to the line before.
func (c *clock) local(year, month, day, hour, minute, second int) (int64, error) {
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, c.zone)
	if t.Hour() != hour || t.Minute() != minute {
		return t.UnixNano(), errSkipped
	}
	for _, d := range []time.Duration{time.Hour, -time.Hour, 30 * time.Minute, -30 * time.Minute} {
		if other := t.Add(d); other.Hour() == hour && other.Minute() == minute && other.Day() == day {
			if abs(other.UnixNano()-c.last) < abs(t.UnixNano()-c.last) {
				t = other
			}
			return t.UnixNano(), errTwice
		}
	}
	return t.UnixNano(), nil
}

func abs(n int64) int64 { return max(n, -n) }

// parseDate reads 2026-11-29, 2026/11/29 or 29/Nov/2026.
func parseDate(b []byte) (year, month, day int, rest []byte, ok bool) {
	if len(b) >= 11 && (b[2] == '/' && b[6] == '/') {
		return number(b[7:11]), monthOf(b[3:6]), number(b[:2]), b[11:], true
	}
	if len(b) >= 10 && (b[4] == '-' && b[7] == '-' || b[4] == '/' && b[7] == '/') {
		return number(b[:4]), number(b[5:7]), number(b[8:10]), b[10:], true
	}
	return 0, 0, 0, nil, false
}

func monthOf(b []byte) int {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for i := 0; i < len(names); i += 3 {
		if string(b) == names[i:i+3] {
			return i/3 + 1
		}
	}
	return 0
}

// parseOffset reads Z, UTC, +0100, +01:00 or +01, in seconds.
func parseOffset(b []byte) (int, bool) {
	b = bytes.TrimLeft(b, " ")
	if s := string(b); s == "Z" || s == "z" || s == "UTC" || s == "GMT" {
		return 0, true
	}
	if len(b) < 3 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	hours, minutes := number(b[1:3]), 0
	switch rest := b[3:]; {
	case len(rest) == 3 && rest[0] == ':':
		minutes = number(rest[1:])
	case len(rest) == 2:
		minutes = number(rest)
	case len(rest) != 0:
		return 0, false
	}
	if hours < 0 || hours > 14 || minutes < 0 || minutes > 59 {
		return 0, false
	}
	if b[0] == '-' {
		return -hours*3600 - minutes*60, true
	}
	return hours*3600 + minutes*60, true
}

// parseEpoch reads seconds, milliseconds, microseconds or nanoseconds since 1970: which, is told by the number of digits.
func parseEpoch(b []byte) (int64, time.Duration, error) {
	digits := 0
	for digits < len(b) && isDigits(b[digits:digits+1]) {
		digits++
	}
	unit, ok := map[int]time.Duration{9: time.Second, 10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: 1}[digits]
	ns, resolution, good := parseDecimal(b, unit)
	if !ok || !good || ns < 946684800e9 || ns >= 4102444800e9 {
		return 0, 0, errTime
	}
	return ns, resolution, nil
}

// parseDecimal reads a number of units, and how exactly it is written. What has an exponent or a unit of its own takes longer.
func parseDecimal(b []byte, unit time.Duration) (ns int64, resolution time.Duration, ok bool) {
	var n int64
	i := 0
	for ; i < len(b) && isDigits(b[i:i+1]) && n < 1e17; i++ {
		n = n*10 + int64(b[i]-'0')
	}
	if i == 0 || unit == 0 || n > math.MaxInt64/int64(unit)-1 {
		return parseSlowly(b, unit)
	}
	n, resolution = n*int64(unit), unit
	if i == len(b) {
		return n, resolution, true
	}
	if b[i] != '.' {
		return parseSlowly(b, unit)
	}
	for i++; i < len(b) && isDigits(b[i:i+1]); i++ {
		if resolution >= 10 {
			resolution /= 10
			n += int64(b[i]-'0') * int64(resolution)
		}
	}
	if i < len(b) {
		return parseSlowly(b, unit)
	}
	return n, resolution, true
}

func parseSlowly(b []byte, unit time.Duration) (int64, time.Duration, bool) {
	if d, err := time.ParseDuration(string(b)); err == nil && d >= 0 && len(b) > 0 && !isDigits(b[len(b)-1:]) {
		return int64(d), 1, true
	}
	f, err := strconv.ParseFloat(string(b), 64)
	f *= float64(unit)
	if err != nil || unit == 0 || !(f >= 0 && f < 9e18) {
		return 0, 0, false
	}
	return int64(f), 1, true
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// number returns a number without sign, -1 if it is none.
func number(b []byte) (n int) {
	if !isDigits(b) || len(b) > 9 {
		return -1
	}
	for _, c := range b {
		n = n*10 + int(c-'0')
	}
	return n
}

// daysSince1970 counts days of the Gregorian calendar. A day beyond the month's last is one of the next month.
func daysSince1970(year, month, day int) int64 {
	if month < 3 {
		year, month = year-1, month+12
	}
	return int64(365*year + year/4 - year/100 + year/400 + (153*month-457)/5 + day - 719469)
}
