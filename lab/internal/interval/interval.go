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
// are left out; squares of the others must be finite. The last bits depend on the order of xs.
func Mean(xs []float64) (mean, half float64) {
	// Values are measured from the first of them, so that equal ones deviate by nothing.
	var first, sum, squares float64
	n := 0
	for _, x := range xs {
		if finite(x) {
			if n == 0 {
				first = x
			}
			n++
			sum += x - first
		}
	}
	if n == 0 {
		return 0, 0
	}
	offset := sum / float64(n)
	for _, x := range xs {
		if finite(x) {
			d := x - first - offset
			squares += float64(d * d)
		}
	}
	mean = first + offset
	if n < 2 {
		return mean, 0
	}
	deviation := math.Sqrt(squares / float64(n-1))
	return mean, float64(T(n-1)*deviation) / math.Sqrt(float64(n))
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
