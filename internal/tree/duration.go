package tree

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxDuration is the longest Duration of protobuf, in seconds.
const maxDuration = 315_576_000_000

var inSeconds = regexp.MustCompile(`^(-?)([0-9]*)(?:\.([0-9]{0,9}))?s$`)

// ParseSeconds reads a duration as in protobuf's JSON: seconds with up to nine decimals, and an s.
// A duration that is too long for time.Duration becomes its largest.
func ParseSeconds(text string) (time.Duration, bool) {
	m := inSeconds.FindStringSubmatch(text)
	if m == nil || m[2] == "" && m[3] == "" {
		return 0, false
	}
	seconds, err := strconv.ParseInt("0"+m[2], 10, 64)
	if err != nil || seconds > maxDuration {
		return 0, false
	}
	nanos, _ := strconv.ParseInt(m[3]+"000000000"[len(m[3]):], 10, 64)
	d := time.Duration(math.MaxInt64)
	if seconds < math.MaxInt64/int64(time.Second) || seconds == math.MaxInt64/int64(time.Second) && nanos <= math.MaxInt64%int64(time.Second) {
		d = time.Duration(seconds)*time.Second + time.Duration(nanos)
	}
	if m[1] != "" {
		d = -d
	}
	return d, true
}

// Seconds writes what ParseSeconds reads, with no more decimals than needed: "0.25s".
func Seconds(d time.Duration) string {
	sign, abs := "", uint64(d)
	if d < 0 {
		sign, abs = "-", -abs
	}
	text := fmt.Sprintf("%s%d.%09d", sign, abs/uint64(time.Second), abs%uint64(time.Second))
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + "s"
}

// ParseGo reads a duration as Go writes it.
func ParseGo(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil
}
