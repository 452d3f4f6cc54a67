package tune

import (
	"math"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// A sample is how long n attempts took, as a histogram.
type sample struct {
	bars []sim.Bar
	n    int
	// assumed is how many bars at the end are of times that nobody saw.
	assumed int
}

// sampleOf returns the sample that a distribution is. It is empty if d is no histogram; the weights are numbers of attempts.
func sampleOf(d sim.Distribution) sample {
	if d.Kind != sim.Histogram {
		return sample{}
	}
	s := sample{bars: d.Bars}
	sum := 0.0
	for _, b := range d.Bars {
		sum += b.Weight
	}
	s.n = int(sum)
	return s
}

// confidence is that of each bound, one-sided.
const confidence = 0.95

// wanted is how many attempts it takes to bound the quantile that a share of them exceeds: (1-share)^n must be 5 % at most.
func wanted(share float64) int { return int(math.Ceil(3 / share)) }

// above returns the bounds of the time that a share of all attempts exceeds, by order statistics: of n attempts the number
// above the true value is binomial. It reports false if the sample is too small for an upper bound, or nobody saw it.
func (s sample) above(share float64) (low, high time.Duration, ok bool) {
	if s.n < wanted(share) {
		return 0, 0, false
	}
	few := binomial(s.n, share, 1-confidence) - 1 // so few are above the true value in 5 % of all samples, or fewer
	many := binomial(s.n, share, confidence)
	low, _ = s.exceededBy(many)
	_, high = s.exceededBy(max(few, 0))
	return low, high, s.assumed == 0 || len(s.bars) > s.assumed && high <= s.bars[len(s.bars)-1-s.assumed].UpTo
}

// exceededBy returns the ends of the bar with the longest time that so many attempts, or more, exceed.
func (s sample) exceededBy(count int) (from, to time.Duration) {
	left := float64(count) + 0.5 // weights of metrics are interpolated
	for i := len(s.bars) - 1; i >= 0; i-- {
		if left -= s.bars[i].Weight; left > 0 && i > 0 {
			continue
		}
		if i > 0 {
			from = s.bars[i-1].UpTo
		}
		return from, s.bars[i].UpTo
	}
	return 0, 0
}

// mean is that of the sample, with each attempt in the middle of its bar.
func (s sample) mean() time.Duration {
	sum, from := 0.0, time.Duration(0)
	for _, b := range s.bars {
		sum += b.Weight * float64(from+b.UpTo) / 2
		from = b.UpTo
	}
	return time.Duration(sum / float64(max(s.n, 1)))
}

// binomial returns the least m with P(X <= m) > p, where X is how many of n are of a kind that a share of all is.
func binomial(n int, share, p float64) int {
	mean := float64(n) * share
	if mean > 500 { // the normal distribution is near enough
		deviation := math.Sqrt(mean * (1 - share))
		return int(math.Floor(mean + deviation*math.Sqrt2*math.Erfinv(2*p-1)))
	}
	term := math.Exp(float64(n) * math.Log1p(-share))
	sum, m := term, 0
	for ; sum <= p && m < n; m++ {
		term *= float64(n-m) / float64(m+1) * share / (1 - share)
		sum += term
	}
	return m
}

// crowd returns the least m with P(X > m) <= 1e-6, where X is the number of attempts in progress: Poisson of that mean.
func crowd(mean float64) int {
	if mean > 500 {
		return int(math.Ceil(mean + 4.76*math.Sqrt(mean)))
	}
	term := math.Exp(-mean)
	sum, m := term, 0
	for ; sum < 1-1e-6 && m < 10_000; m++ {
		term *= mean / float64(m+1)
		sum += term
	}
	return m
}

// digits rounds a time up or down to two digits.
func digits(d time.Duration, up bool) time.Duration {
	if d <= 0 {
		return 0
	}
	unit := time.Duration(math.Pow(10, math.Floor(math.Log10(float64(d)))-1))
	unit = max(unit, 1)
	down := d / unit * unit
	if up && down < d {
		return down + unit
	}
	return down
}
