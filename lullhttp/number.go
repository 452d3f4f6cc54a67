package lullhttp

import (
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

const maxWait = time.Duration(math.MaxInt64)

// parseDigits reads 1*DIGIT units. What is too large for a Duration is its maximum.
func parseDigits(s string, unit time.Duration) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	limit := uint64(maxWait / unit)
	var n uint64
	for i := range len(s) {
		digit := s[i] - '0'
		if digit > 9 {
			return 0, false
		}
		if n <= limit {
			n = n*10 + uint64(digit) // limit is below 2^63/1000, so this cannot overflow
		}
	}
	if n > limit {
		return maxWait, true
	}
	return time.Duration(n) * unit, true
}

// parseDecimal reads 1*DIGIT [ "." 1*DIGIT ] units. It rounds up to the nanosecond, so that no wait
// becomes shorter.
func parseDecimal(s string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, hasFraction := strings.Cut(s, ".")
	d, ok := parseDigits(whole, unit)
	if !ok || !hasFraction {
		return d, ok
	}
	f, ok := parseFraction(fraction, unit)
	if !ok {
		return 0, false
	}
	return saturating.Add(d, f), true
}

// parseFraction reads the digits behind the point, as a part of unit. It keeps 18 of them, as many
// as a uint64 holds: of a day, the longest unit, the last is worth 0.0001 ns.
func parseFraction(s string, unit time.Duration) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	num, scale, more := uint64(0), uint64(1), false
	for i := range len(s) {
		digit := s[i] - '0'
		switch {
		case digit > 9:
			return 0, false
		case scale < 1e18:
			num, scale = num*10+uint64(digit), scale*10
		case digit > 0:
			more = true
		}
	}
	if more {
		num++
	}
	hi, lo := bits.Mul64(num, uint64(unit))
	lo, carry := bits.Add64(lo, scale-1, 0)
	q, _ := bits.Div64(hi+carry, lo, scale) // num <= scale, so q <= unit
	return time.Duration(q), true
}
