package breaker

import (
	"math/bits"
	"strconv"
	"strings"
)

// A ratio is a share in units of 10⁻¹⁸, so that up to eighteen decimals are exact. Zero is
// never reached.
type ratio uint64

const (
	ratioDigits = 18
	ratioOne    = 1_000_000_000_000_000_000
)

// newRatio takes f as the shortest decimal that stands for it: the binary number nearest to
// 0.1 is a little above a tenth, and 10 of 100 would not reach it. Negative f is zero.
func newRatio(f float64) ratio {
	if !(f > 0) {
		return 0
	}
	if f >= 1 {
		return ratioOne
	}
	digits := strings.TrimPrefix(strconv.FormatFloat(f, 'f', -1, 64), "0.")
	if n := ratioDigits - len(digits); n > 0 {
		digits += strings.Repeat("0", n)
	}
	n, _ := strconv.ParseUint(digits[:ratioDigits], 10, 64)
	return ratio(max(n, 1))
}

// reached reports whether part/whole ≥ r, in 128-bit integers.
func (r ratio) reached(part, whole int64) bool {
	if r == 0 || part <= 0 || whole <= 0 {
		return false
	}
	hi, lo := bits.Mul64(uint64(part), ratioOne)
	hi2, lo2 := bits.Mul64(uint64(whole), uint64(r))
	return hi > hi2 || hi == hi2 && lo >= lo2
}
