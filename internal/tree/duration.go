package tree

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// maxDuration is the longest Duration of protobuf, in seconds.
const maxDuration = 315_576_000_000

// ParseSeconds reads a duration as in protobuf's JSON: seconds with up to nine decimals, and an s.
// A duration that is too long for time.Duration becomes its largest.
func ParseSeconds(text string) (time.Duration, bool) {
	digits, ok := strings.CutSuffix(text, "s")
	if !ok {
		return 0, false
	}
	digits, negative := strings.CutPrefix(digits, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole == "" && fraction == "" || len(fraction) > 9 {
		return 0, false
	}
	seconds, ok := decimal(whole)
	if !ok || seconds > maxDuration {
		return 0, false
	}
	nanos, ok := decimal(fraction + "000000000"[len(fraction):])
	if !ok {
		return 0, false
	}
	d := time.Duration(math.MaxInt64)
	if seconds < math.MaxInt64/int64(time.Second) || seconds == math.MaxInt64/int64(time.Second) && nanos <= math.MaxInt64%int64(time.Second) {
		d = time.Duration(seconds)*time.Second + time.Duration(nanos)
	}
	if negative {
		d = -d
	}
	return d, true
}

// decimal reads digits; without digits it is zero. A number that is too large becomes one above any
// limit.
func decimal(text string) (n int64, ok bool) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(text[i]-'0'), math.MaxInt64/100)
	}
	return n, true
}

// Seconds writes what ParseSeconds reads, with no more decimals than needed: "0.25s".
func Seconds(d time.Duration) string {
	sign := ""
	abs := uint64(d)
	if d < 0 {
		sign, abs = "-", -abs
	}
	text := []byte(sign)
	text = strconv.AppendUint(text, abs/uint64(time.Second), 10)
	if nanos := abs % uint64(time.Second); nanos > 0 {
		fraction := strconv.AppendUint(nil, nanos+uint64(time.Second), 10) // a 1 and nine digits
		text = append(text, '.')
		text = append(text, strings.TrimRight(string(fraction[1:]), "0")...)
	}
	return string(append(text, 's'))
}

// ParseGo reads a duration as Go writes it.
func ParseGo(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil
}
