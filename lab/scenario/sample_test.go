package scenario

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// histogramOf is a histogram of n times, in bars of 2 %.
func histogramOf(n int, draw func() time.Duration) sim.Distribution {
	counts, most := map[int]float64{}, 0
	for range n {
		k := max(int(math.Ceil(math.Log(float64(draw())/1e4)/math.Log(1.02))), 0)
		counts[k]++
		most = max(most, k)
	}
	d := sim.Distribution{Kind: sim.Histogram}
	for k := range most + 1 {
		d.Bars = append(d.Bars, sim.Bar{UpTo: time.Duration(1e4 * math.Pow(1.02, float64(k))), Weight: counts[k]})
	}
	return d
}

// The true quantile lies below the upper bound, and above the lower one, in 95 % of all samples each.
func TestBoundsOfQuantilesHold(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		n     int
		share float64
	}{{3000, 0.001}, {5000, 0.001}, {40_000, 0.001}, {150, 0.02}, {1000, 0.02}, {100, 0.5}, {2000, 0.5}} {
		truth := time.Duration(-math.Log(c.share) * 1e7)
		const times = 200
		below, above := 0, 0
		for range times {
			low, high, ok := SampleOf(histogramOf(c.n, func() time.Duration { return time.Duration(r.ExpFloat64() * 1e7) })).Above(c.share)
			if !ok {
				t.Fatalf("%d attempts are too few for %v", c.n, c.share)
			}
			if truth <= high {
				below++
			}
			if truth >= low {
				above++
			}
		}
		// 95 % of 200 are 190 ± 3.1.
		if below < 181 || above < 181 {
			t.Errorf("%d attempts, %v: the upper bound holds in %d of %d samples, the lower one in %d", c.n, c.share, below, times, above)
		}
	}
}

// Below 3/ε attempts there is no bound, and with as many it is the longest time.
func TestTooFewAttempts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	milliseconds := func() time.Duration { return time.Duration(r.ExpFloat64() * 1e6) }
	for _, share := range []float64{0.05, 0.02, 0.001, 0.0001} {
		n := int(math.Ceil(3 / share))
		if _, _, ok := SampleOf(histogramOf(n-1, milliseconds)).Above(share); ok {
			t.Errorf("%d attempts are enough for %v", n-1, share)
		}
		d := histogramOf(n, milliseconds)
		_, high, ok := SampleOf(d).Above(share)
		if !ok {
			t.Errorf("%d attempts are not enough for %v", n, share)
		}
		if bars := d.Bars; high != bars[len(bars)-1].UpTo {
			t.Errorf("the bound of %d attempts is %v, and not the longest, %v", n, high, bars[len(bars)-1].UpTo)
		}
	}
}
