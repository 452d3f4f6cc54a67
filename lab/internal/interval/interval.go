// Package interval computes how far the mean of a few runs can be trusted.
//
// Student's t gives the width: for n independent figures with the standard deviation s, about
// normally distributed, the true mean lies with a probability of 95 % within
//
//	mean ± t(n-1) * s / sqrt(n)
//
// where t(v) is the 0.975 quantile of Student's distribution with v degrees of
// freedom ("Student", "The probable error of a mean", Biometrika 6, 1908).
//
// The results are the same bit for bit on every machine: products are converted,
// float64(x*y), so that they are never fused with a sum.
package interval

import "math"

// Mean is the mean of xs and the half width of its 95 % confidence interval, in
// the unit of xs. The half width is 0 for fewer than two values, and exactly 0 if
// all are equal; so is the mean of none. Values that are infinite or not numbers
// are left out; the results are always finite. The last bits depend on the order
// of xs.
func Mean(xs []float64) (mean, half float64) {
	n, most := 0, 0.0
	for _, x := range xs {
		if finite(x) {
			n++
			most = max(most, math.Abs(x))
		}
	}
	if n == 0 {
		return 0, 0
	}

	// Values are scaled by a power of two, which is exact, so that squares neither
	// overflow nor vanish; and measured from the first of them, so that equal ones
	// deviate by nothing.
	_, exponent := math.Frexp(most)
	var first, sum, squares float64
	seen := false
	for _, x := range xs {
		if finite(x) {
			y := math.Ldexp(x, -exponent)
			if !seen {
				first, seen = y, true
			}
			sum += y - first
		}
	}
	offset := sum / float64(n)
	for _, x := range xs {
		if finite(x) {
			d := math.Ldexp(x, -exponent) - first - offset
			squares += float64(d * d)
		}
	}

	mean = bounded(math.Ldexp(first+offset, exponent))
	if n < 2 {
		return mean, 0
	}
	deviation := math.Sqrt(squares / float64(n-1))
	half = float64(T(n-1)*deviation) / math.Sqrt(float64(n))
	return mean, bounded(math.Ldexp(half, exponent))
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

func bounded(x float64) float64 {
	return max(-math.MaxFloat64, min(x, math.MaxFloat64))
}
