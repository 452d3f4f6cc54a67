package scenario

import (
	"math"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// A Sample is how long N attempts took, as a histogram.
type Sample struct {
	Bars []sim.Bar
	N    int
	// Assumed is how many bars at the end are of times that nobody saw.
	Assumed int
}

// SampleOf returns the sample that a distribution is. It is empty if d is no histogram; the weights are numbers of attempts.
func SampleOf(d sim.Distribution) Sample {
	if d.Kind != sim.Histogram {
		return Sample{}
	}
	s := Sample{Bars: d.Bars}
	sum := 0.0
	for _, b := range d.Bars {
		sum += b.Weight
	}
	s.N = int(sum)
	return s
}

// confidence is that of each bound, one-sided.
const confidence = 0.95

// Wanted is how many attempts it takes to bound the quantile that a share of them exceeds: (1-share)^n must be 5 % at most.
func Wanted(share float64) int { return int(math.Ceil(3 / share)) }

// Above returns the bounds of the time that a share of all attempts exceeds, by order statistics: of n attempts the number
// above the true value is binomial. It reports false if the sample is too small for an upper bound, or nobody saw it.
func (s Sample) Above(share float64) (low, high time.Duration, ok bool) {
	if s.N < Wanted(share) {
		return 0, 0, false
	}
	few := binomial(s.N, share, 1-confidence) - 1 // so few are above the true value in 5 % of all samples, or fewer
	many := binomial(s.N, share, confidence)
	low, _ = s.ExceededBy(many)
	_, high = s.ExceededBy(max(few, 0))
	return low, high, s.Assumed == 0 || len(s.Bars) > s.Assumed && high <= s.Bars[len(s.Bars)-1-s.Assumed].UpTo
}

// ExceededBy returns the ends of the bar with the longest time that so many attempts, or more, exceed.
func (s Sample) ExceededBy(count int) (from, to time.Duration) {
	left := float64(count) + 0.5 // weights of metrics are interpolated
	for i := len(s.Bars) - 1; i >= 0; i-- {
		if left -= s.Bars[i].Weight; left > 0 && i > 0 {
			continue
		}
		if i > 0 {
			from = s.Bars[i-1].UpTo
		}
		return from, s.Bars[i].UpTo
	}
	return 0, 0
}

// Mean is that of the sample, with each attempt in the middle of its bar.
func (s Sample) Mean() time.Duration {
	sum, from := 0.0, time.Duration(0)
	for _, b := range s.Bars {
		sum += b.Weight * float64(from+b.UpTo) / 2
		from = b.UpTo
	}
	return time.Duration(sum / float64(max(s.N, 1)))
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
