package estimate

import (
	"math"
	"slices"
)

// z95 is for intervals of 95 %, in standard deviations: more than the 1.96 of the normal distribution, because what is measured is never as regular as the
// formulas assume. Of the worlds in the tests 95 % or more lie in these intervals.
const z95 = 2.2

// A span is an interval of 95 %.
type span struct{ low, high float64 }

// wilson is the interval of a share, k of n: E. B. Wilson, 1927. spread widens it for counts that vary more than by chance.
func wilson(k, n, spread float64) span {
	if n <= 0 {
		return span{0, 1}
	}
	n /= max(spread, 1)
	k /= max(spread, 1)
	p, z := k/n, z95
	centre := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	at := span{max(centre-half, 0), min(centre+half, 1)}
	if k == 0 {
		at.low = 0
	}
	return at
}

// counted is the interval of the mean of a Poisson count k (Byar's approximation of the exact one), widened for a dispersion above 1.
func counted(k, spread float64) span {
	spread = max(spread, 1)
	k /= spread
	low := 0.0
	if k > 0 {
		low = k * math.Pow(1-1/(9*k)-z95/(3*math.Sqrt(k)), 3)
	}
	up := k + 1
	return span{max(low, 0) * spread, up * math.Pow(1-1/(9*up)+z95/(3*math.Sqrt(up)), 3) * spread}
}

// dispersion is how much counts vary, as a multiple of what a Poisson process with these means would: by single steps (index of
// dispersion), and by blocks of them (batch means). It is 1 if chance can explain what is above 1. n is how many counts there are.
func dispersion(counts, means []float64) (single, batches float64) {
	index := func(size int) (float64, bool) {
		blocks := len(counts) / size
		if blocks < 10 {
			return 1, false
		}
		sum, used := 0.0, 0
		for b := range blocks {
			var k, mu float64
			for i := b * size; i < (b+1)*size; i++ {
				k, mu = k+counts[i], mu+means[i]
			}
			if mu > 0 {
				sum += (k - mu) * (k - mu) / mu
				used++
			}
		}
		if used < 10 {
			return 1, false
		}
		d := sum / float64(used-1)
		// The 99.9 % quantile of chi-square over its degrees of freedom (Wilson and Hilferty).
		f := 2 / (9 * float64(used-1))
		return d, d > math.Pow(1-f+3.09*math.Sqrt(f), 3)
	}
	single, above := index(1)
	batches = 1
	if above {
		batches = single
	}
	for size := 4; len(counts)/size >= 10; size *= 4 {
		if d, above := index(size); above {
			batches = max(batches, d)
		}
	}
	return single, batches
}

// surprise is how many standard deviations k lies above (or below, negative) a Poisson mean: the root of the deviance.
func surprise(k, mu float64) float64 {
	if mu <= 0 {
		mu = 1e-9
	}
	d := mu
	if k > 0 {
		d = k*math.Log(k/mu) - (k - mu)
	}
	return math.Copysign(math.Sqrt(max(2*d, 0)), k-mu)
}

// segments cuts counts into stretches of constant rate: those of the greatest likelihood (Poisson, its deviance divided by spread), less a price of
// three times the logarithm of the length for each cut (optimal partitioning: Jackson and others, 2005). A NaN is unknown. It returns where each begins.
func segments(counts []float64, spread float64) []int {
	n := len(counts)
	price := 3 * 2 * math.Log(float64(max(n, 3)))
	sum, known := make([]float64, n+1), make([]float64, n+1)
	for i, c := range counts {
		sum[i+1], known[i+1] = sum[i], known[i]
		if !math.IsNaN(c) {
			sum[i+1], known[i+1] = sum[i]+c, known[i]+1
		}
	}
	cost := func(i, k int) float64 { // of one rate from i to k
		s, m := sum[k]-sum[i], known[k]-known[i]
		if s == 0 {
			return 0
		}
		return -2 * s * math.Log(s/m) / max(spread, 1)
	}
	best, from := make([]float64, n+1), make([]int, n+1)
	for k := 1; k <= n; k++ {
		best[k] = math.Inf(1)
		for i := range k {
			if c := best[i] + cost(i, k) + price; c < best[k] && (known[k]-known[i] >= 2 || i == 0) {
				best[k], from[k] = c, i
			}
		}
	}
	var starts []int
	for k := n; k > 0; k = from[k] {
		starts = append(starts, from[k])
	}
	slices.Reverse(starts)
	return starts
}

// median returns the middle of values; NaN if there are none.
func median(values []float64) float64 { return quantileOf(values, 0.5) }

// quantileOf returns the value with a share q below it.
func quantileOf(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	values = slices.Sorted(slices.Values(values))
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// edge returns where k[i] of n[i] changed from the share p to q, of the steps from low to high: the most likely step and, by the profile of the
// likelihood (within 1.92 of the greatest: 95 %), the first and the last possible one. Steps before it are of p.
func edge(k, n []float64, p, q float64, low, high int) (best, first, last int) {
	gain := make([]float64, high-low+1) // if it changed at low+i
	for i := high - 1; i >= low; i-- {
		gain[i-low] = gain[i-low+1] + or(k[i]*math.Log(q/p)-n[i]*(q-p), 0)
	}
	for i, g := range gain {
		if g > gain[best] {
			best = i
		}
	}
	first, last = len(gain), 0
	for i, g := range gain {
		if g > gain[best]-1.92 {
			first, last = min(first, i), i
		}
	}
	return low + best, low + first, low + last
}
