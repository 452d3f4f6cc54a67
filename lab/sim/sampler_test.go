package sim

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// Means and standard deviations are those of the textbooks, to within five
// standard errors; that of the standard deviation is estimated from the fourth
// moment.
func TestDistributions(t *testing.T) {
	const n = 200_000
	ms := float64(millisecond)
	for name, c := range map[string]struct {
		d         Distribution
		mean, dev float64
	}{
		"none":        {Distribution{}, 0, 0},
		"fixed":       {fixed(7 * millisecond), 7 * ms, 0},
		"exponential": {Distribution{Kind: Exponential, Mean: 100 * millisecond}, 100 * ms, 100 * ms},
		"lognormal":   {Distribution{Kind: LogNormal, Mean: 100 * millisecond, Sigma: 0.5}, 100 * ms, 100 * ms * math.Sqrt(math.Exp(0.25)-1)},
		"normal":      {Distribution{Kind: Normal, Mean: 100 * millisecond, Deviation: 10 * millisecond}, 100 * ms, 10 * ms},
		"half normal": {Distribution{Kind: Normal, Deviation: 10 * millisecond}, 10 * ms * math.Sqrt(2/math.Pi), 10 * ms * math.Sqrt(1-2/math.Pi)},
		"uniform":     {Distribution{Kind: Uniform, Min: 10 * millisecond, Max: 40 * millisecond}, 25 * ms, 30 * ms / math.Sqrt(12)},
		"one value":   {Distribution{Kind: Uniform, Min: 10, Max: 10}, 10, 0},
		// Mean .9*10 + .1*100; second moment 2*(.9*100 + .1*10000).
		"bimodal": {Distribution{Kind: Bimodal, Mean: 10 * millisecond, Slow: 0.1, SlowMean: 100 * millisecond}, 19 * ms, math.Sqrt(2*1090-19*19) * ms},
		// A quarter in 0-10, three in 20-40: .25*5 + .75*30; .25*100/3 + .75*(900+400/12).
		"histogram": {Distribution{Kind: Histogram, Bars: []Bar{{10 * millisecond, 1}, {20 * millisecond, 0}, {40 * millisecond, 3}}}, 23.75 * ms, math.Sqrt(25./3+700-23.75*23.75) * ms},
		"a bar":     {Distribution{Kind: Histogram, Bars: []Bar{{0, 2}}}, 0, 0},
	} {
		if err := c.d.validate(); err != nil {
			t.Fatal(name, err)
		}
		s := newSampler(c.d)
		src := draw.From(7)
		var sum, square, fourth float64
		for range n {
			x := float64(s.draw(&src))
			if x < 0 {
				t.Fatalf("%s: %v", name, x)
			}
			x -= c.mean
			sum += x
			square += x * x
			fourth += x * x * x * x
		}
		variance := square / n
		if off := math.Abs(sum/n) - 1; off > 5*c.dev/math.Sqrt(n) { // whole nanoseconds
			t.Errorf("%s: the mean is off by %v", name, time.Duration(sum/n))
		}
		if off := math.Abs(variance - c.dev*c.dev); off > 5*math.Sqrt(fourth/n-variance*variance)/math.Sqrt(n)+c.dev+1 {
			t.Errorf("%s: standard deviation %v, want %v", name, time.Duration(math.Sqrt(variance)), time.Duration(c.dev))
		}
		if c.d.Kind == Normal {
			continue // Cost takes the absolute value for rare
		}
		if m := c.d.mean(); math.Abs(float64(m)-c.mean) > 1 {
			t.Errorf("%s: expects %v, want %v", name, m, time.Duration(c.mean))
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	s := newSampler(Distribution{Kind: Histogram, Bars: []Bar{{10, 0}, {20, 1}, {30, 1}, {40, 0}}})
	for _, c := range []struct {
		u, within float64
		want      time.Duration
	}{{0.01, 0, 10}, {0.01, 0.5, 15}, {0.5, 0.999, 19}, {0.51, 0, 20}, {0.999, 0.5, 25}} {
		check.Equal(t, s.bar(c.u, c.within), c.want, "bar(%v, %v)", c.u, c.within)
	}
}

func TestDurationsAreNeverAbsurd(t *testing.T) {
	for _, x := range []float64{0, 1.9, 1e300, math.Inf(1), math.NaN()} {
		if d := duration(x); d < 0 || d > century {
			t.Errorf("duration(%v) = %v", x, d)
		}
	}
	s := newSampler(Distribution{Kind: LogNormal, Mean: century, Sigma: 10})
	src := draw.From(1)
	for range 10000 {
		if d := s.draw(&src); d < 0 || d > century {
			t.Fatal(d)
		}
	}
}
