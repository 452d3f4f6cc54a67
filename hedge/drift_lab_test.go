//go:build lab && !race

package hedge

import (
	"math/rand/v2"
	"testing"
	"time"
)

// What is learned does not depend on whether calls were hedged: the same latencies
// of first attempts give the same delay, whether their slow ones run to their own end
// or are cut short. So do attempts that hang, or fail late: whether they are cut
// short by a hedge or end by themselves.
func TestHedgingDoesNotChangeWhatIsLearned(t *testing.T) {
	t.Parallel()
	for name, latency := range latencyOf {
		for _, sick := range []struct {
			name  string
			share float64
			takes time.Duration
			of    float64 // the calls, 1-p is late
		}{{"all succeed", 0, 0, 1}, {"2 % hang", 0.02, 10 * time.Second, 1}, {"2 % fail late", 0.02, 300 * ms, 1}, {"20 % fail fast", 0.2, ms, 0.8}} {
			var learned, late [2]float64
			for i, inFlight := range []int{-1, 1} { // one alone is next to none
				r := rand.New(rand.NewPCG(3, 4))
				first, other := latency(rand.New(rand.NewPCG(5, 6))), latency(rand.New(rand.NewPCG(7, 8)))
				ill := func(c *flown, attempt int) bool {
					return attempt == 0 && rand.New(rand.NewPCG(c.hardness, 9)).Float64() < sick.share
				}
				h := must(t, Config{Attempts: 2, Share: -1, InFlight: inFlight})
				if inFlight == 1 { // and it never ends
					h.out.Store(1)
				}
				w := &world{r: r, rate: steady(1000), hedger: h, fails: ill}
				w.latency = func(c *flown, attempt int) time.Duration {
					if attempt > 0 {
						return other(c, attempt)
					}
					d := first(c, attempt)
					if ill(c, attempt) {
						return sick.takes
					}
					return d
				}
				n := 0
				w.run(30 * time.Second)
				calls, asked := w.calls, w.asked
				for w.now < 60*time.Second {
					w.run(w.now + 500*ms)
					d, _ := h.Delay(w.now)
					learned[i] += d.Seconds()
					n++
				}
				learned[i] /= float64(n)
				late[i] = float64(w.asked-asked) / float64(w.calls-calls)
			}
			t.Logf("%-18s %-14s hedged: %.2fms, late %.4f; not: %.2fms, late %.4f", name, sick.name, 1e3*learned[0], late[0], 1e3*learned[1], late[1])
			if ratio := learned[0] / learned[1]; ratio < 0.95 || ratio > 1.05 {
				t.Errorf("%s, %s: learned %.2fms with hedges, %.2fms without", name, sick.name, 1e3*learned[0], 1e3*learned[1])
			}
			// Less than 5 % where the percentile is at the end of all but the slowest, in
			// a bucket with many.
			if late[0] < 0.038*sick.of || late[0] > 0.052*sick.of {
				t.Errorf("%s, %s: %.4f of the calls are hedged", name, sick.name, late[0])
			}
		}
	}
}
