package sim

import (
	"slices"
	"time"

	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// A Distribution is how long something takes. The zero Distribution is no time
// at all.
type Distribution struct {
	Kind      DistributionKind
	Mean      time.Duration
	Deviation time.Duration // Normal
	Sigma     float64       // LogNormal
	Min, Max  time.Duration // Uniform
	Slow      float64       // Bimodal: share of slow ones
	SlowMean  time.Duration // Bimodal
	Bars      []Bar         // Histogram
}

// A Bar of a histogram: Weight cases lie between the bar before (or zero) and
// UpTo.
type Bar struct {
	UpTo   time.Duration
	Weight float64
}

// A sampler is a Distribution made ready to draw from.
type sampler struct {
	Distribution
	mu    float64   // LogNormal
	upTo  []float64 // Histogram: the share of cases up to the end of each bar
	never bool      // always zero
}

func newSampler(d Distribution) sampler {
	s := sampler{Distribution: d}
	switch d.Kind {
	case Fixed:
		s.never = d.Mean == 0
	case LogNormal:
		s.mu = draw.Log(float64(d.Mean)) - float64(d.Sigma*d.Sigma)/2
	case Histogram:
		var sum float64
		for _, b := range d.Bars {
			sum += b.Weight
			s.upTo = append(s.upTo, sum)
		}
		for i := range s.upTo {
			s.upTo[i] /= sum
		}
	}
	return s
}

// draw is one value of the distribution, never negative.
func (s *sampler) draw(from *draw.Source) time.Duration {
	if s.never {
		return 0
	}
	switch s.Kind {
	case Exponential:
		return duration(float64(s.Mean) * draw.Exponential(from.Uint64()))
	case LogNormal:
		return duration(draw.Exp(s.mu + float64(s.Sigma*draw.Normal(from.Uint64()))))
	case Normal:
		x := float64(s.Mean) + float64(float64(s.Deviation)*draw.Normal(from.Uint64()))
		return duration(max(x, -x))
	case Uniform:
		return s.Min + time.Duration(from.Below(uint64(s.Max-s.Min)+1))
	case Bimodal:
		mean := s.Mean
		if draw.Unit(from.Uint64()) < s.Slow {
			mean = s.SlowMean
		}
		return duration(float64(mean) * draw.Exponential(from.Uint64()))
	case Histogram:
		return s.bar(draw.Unit(from.Uint64()), draw.Unit(from.Uint64()))
	}
	return s.Mean
}

// bar picks the bar in which the share u of the cases ends, and a point in it.
func (s *sampler) bar(u, within float64) time.Duration {
	i, _ := slices.BinarySearch(s.upTo, u)
	i = min(i, len(s.upTo)-1)
	var from time.Duration
	if i > 0 {
		from = s.Bars[i-1].UpTo
	}
	return from + duration(float64(s.Bars[i].UpTo-from)*within)
}

// duration cuts a fraction of a nanosecond off, and an absurd length.
func duration(ns float64) time.Duration {
	const century = 100 * 365 * 24 * float64(time.Hour)
	if !(ns < century) {
		return time.Duration(century)
	}
	return time.Duration(ns)
}

func (d Distribution) mean() time.Duration {
	switch d.Kind {
	case Uniform:
		return d.Min + (d.Max-d.Min)/2
	case Bimodal:
		return duration(float64(d.Mean)*(1-d.Slow) + float64(float64(d.SlowMean)*d.Slow))
	case Histogram:
		var sum, weight float64
		var from time.Duration
		for _, b := range d.Bars {
			sum += float64(b.Weight * float64(from+(b.UpTo-from)/2))
			weight += b.Weight
			from = b.UpTo
		}
		return duration(sum / weight)
	}
	return d.Mean
}
