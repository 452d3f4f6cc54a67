package estimate

import (
	"math"
	"slices"

	"github.com/lullgo/lull/internal/choice"
)

// z95 is for intervals of 95 %, in standard deviations: more than the 1.96 of the normal distribution, because what is measured is never as regular as the
// formulas assume. Of the worlds in the tests 95 % or more lie in these intervals.
const z95 = 2.2

// A span is an interval of 95 %.
type span struct{ low, high float64 }

// over returns the interval of a share or a mean.
func (s span) over(n float64) span { return span{s.low / n, s.high / n} }

// wilson is the interval of a share, k of n: E. B. Wilson, 1927. spread widens it for counts that vary more than by chance. Fewer than four (bursts) may be
// something else.
func wilson(k, n, spread float64) span {
	if n <= 0 {
		return span{0, 1}
	}
	n /= max(spread, 1)
	p, z := k/max(spread, 1)/n, z95
	centre := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	at := span{max(centre-half, 0), min(centre+half, 1)}
	if k < 4*spread {
		at.low = 0
	}
	return at
}

// counted is the interval of the mean of a Poisson count (Byar's approximation of the exact one), widened for a dispersion above 1.
func counted(k, spread float64) span {
	k /= max(spread, 1)
	byar := func(k, z float64) float64 {
		if k == 0 {
			return 0
		}
		return max(k*math.Pow(1-1/(9*k)+z/(3*math.Sqrt(k)), 3), 0) * max(spread, 1)
	}
	return span{byar(k, -z95), byar(k+1, z95)}
}

// dispersion is how much counts vary, as a multiple of what chance would make of such a share of n (a binomial distribution; of all of n, 1, a Poisson process):
// by single steps (index of dispersion), and the most by single steps and blocks of them (batch means). The latter is 1 if chance can explain what is above 1.
// NaNs are left out.
func dispersion(counts, n []float64, share float64) (single, batches float64) {
	part := choice.Either(share < 1, 1-share, 1)
	single, batches = 1, 1
	for size := 1; len(counts)/size >= 10; size *= 4 {
		d, free := 0.0, -1.0
		for b := range len(counts) / size {
			var k, mu float64
			for i := b * size; i < (b+1)*size; i++ {
				if !math.IsNaN(counts[i]) && !math.IsNaN(n[i]) {
					k, mu = k+counts[i], mu+share*n[i]
				}
			}
			if mu > 0 {
				d, free = d+(k-mu)*(k-mu)/(mu*part), free+1
			}
		}
		if free < 9 {
			break
		}
		if d /= free; size == 1 {
			single = d
		}
		f := 2 / (9 * free) // the 99.9 % quantile of chi-square over its degrees of freedom (Wilson and Hilferty)
		if d > math.Pow(1-f+3.09*math.Sqrt(f), 3) {
			batches = max(batches, d)
		}
	}
	return single, batches
}

// surprise is how many standard deviations k lies above (or below, negative) a Poisson mean: the root of the deviance.
func surprise(k, mu float64) float64 {
	mu = max(mu, 1e-9)
	d := mu
	if k > 0 {
		d = k*math.Log(k/mu) - (k - mu)
	}
	return math.Copysign(math.Sqrt(max(2*d, 0)), k-mu)
}

// segments cuts counts into stretches of constant rate: those of the greatest likelihood (Poisson, its deviance divided by spread), less a price of six times the
// logarithm of the length for each cut (optimal partitioning: Jackson and others, 2005). NaNs are unknown. It returns the stretches, and for each count the mean of its own.
func segments(counts []float64, spread float64) (stretches []run, means []float64) {
	n := len(counts)
	sums, known := make([]float64, n+1), make([]float64, n+1)
	for i, c := range counts {
		sums[i+1], known[i+1] = sums[i], known[i]
		if !math.IsNaN(c) {
			sums[i+1], known[i+1] = sums[i]+c, known[i]+1
		}
	}
	best, from := make([]float64, n+1), make([]int, n+1)
	for k := 1; k <= n; k++ {
		best[k] = math.Inf(1)
		for i := range k {
			sum, m := sums[k]-sums[i], known[k]-known[i]
			cost := best[i] + 6*math.Log(float64(n))
			if sum > 0 {
				cost -= 2 * sum * math.Log(sum/m) / spread
			}
			if cost < best[k] && m >= 2 {
				best[k], from[k] = cost, i
			}
		}
	}
	means = make([]float64, n)
	for k := n; k > 0; k = from[k] {
		stretches = append(stretches, run{from[k], k})
		for i := from[k]; i < k; i++ {
			means[i] = (sums[k] - sums[from[k]]) / (known[k] - known[from[k]])
		}
	}
	slices.Reverse(stretches)
	return stretches, means
}

// edge returns where k[i] of n[i] changed from the share p to q, of the steps from low to high: the most likely step and, by the profile of the likelihood
// (within 1.92 of the greatest: 95 %), the first and the last possible one. Steps before it are of p.
func edge(k, n []float64, p, q float64, low, high int) (best, first, last int) {
	gain := make([]float64, max(high-low, 0)+1) // if it changed at low+i
	for i := high - 1; i >= low; i-- {
		gain[i-low] = gain[i-low+1] + or(k[i]*math.Log(q/p)-n[i]*(q-p), 0)
	}
	most := slices.Max(gain)
	first = len(gain)
	for i, g := range gain {
		if g > most-1.92 {
			first, last = min(first, i), i
		}
	}
	return low + slices.Index(gain, most), low + first, low + last
}

// quantileOf returns the value with a share q below it, of those that are known; NaN if there are none.
func quantileOf(values []float64, q float64) float64 {
	values = slices.DeleteFunc(slices.Sorted(slices.Values(values)), math.IsNaN)
	if len(values) == 0 {
		return math.NaN()
	}
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// sum adds up a part of values, as far as they are known.
func sum(values []float64, r run) (sum float64) {
	for i := max(r.from, 0); i < min(r.to, len(values)); i++ {
		sum += or(values[i], 0)
	}
	return sum
}

// or returns v, or another value if that is not known.
func or(v, otherwise float64) float64 {
	if math.IsNaN(v) {
		return otherwise
	}
	return v
}
