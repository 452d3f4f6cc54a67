//go:build !race

package hedge

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The percentile follows when the service becomes slower, and faster again, though
// hedges cut most of the slow attempts short meanwhile.
func TestPercentileFollows(t *testing.T) {
	t.Parallel()
	for _, factor := range []float64{2, 50} {
		for _, c := range []struct {
			way string
			h   *Hedger
		}{
			{"ours", must(t, Config{Attempts: 2})},
			{"no bounds", must(t, lax(Config{}))},
		} {
			r := rand.New(rand.NewPCG(1, 2))
			w := &world{r: r, rate: steady(500), hedger: c.h}
			w.latency = func(*flown, int) time.Duration {
				d := r.ExpFloat64() * 10e6
				if w.now >= 60*time.Second && w.now < 90*time.Second {
					d *= factor
				}
				return time.Duration(d)
			}
			p95 := func(at time.Duration) float64 {
				w.run(at)
				f := c.h.Start(at)
				d, _ := f.Delay()
				return d.Seconds() / 30e-3 // the p95 is 30ms before
			}
			before, four, eight, after := p95(60*time.Second), p95(64*time.Second), p95(68*time.Second), p95(102*time.Second)
			t.Logf("%vx slower, %-16s %.2f before, %.2f after 4s, %.2f after 8s, %.2f 12s after it has passed", factor, c.way, before, four, eight, after)
			if eight/factor < 0.85 || eight/factor > 1.15 || before < 0.9 || before > 1.1 || after < 0.9 || after > 1.1 {
				t.Errorf("%vx slower, %s: %.2f before, %.2f after 8s, %.2f 12s after it has passed", factor, c.way, before, eight, after)
			}
		}
	}
}
