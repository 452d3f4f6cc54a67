//go:build lab && !race

package hedge

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// naive is a percentile of the last latencies, without any bound on hedges. The test is
// about which times are kept as latencies.
type naive struct {
	keeps   func(attempt int, own bool) bool
	samples []time.Duration
	next    int
	delay   time.Duration
	learned time.Duration
}

func (n *naive) start(now time.Duration, _ *flown) (time.Duration, bool) {
	if now-n.learned > 250*ms && len(n.samples) > 100 {
		sorted := slices.Clone(n.samples)
		slices.Sort(sorted)
		n.delay, n.learned = sorted[len(sorted)*95/100], now
	}
	return n.delay, n.delay > 0
}

func (n *naive) fire(time.Duration, *flown) (bool, time.Duration, bool) { return true, 0, false }

func (n *naive) ended(now time.Duration, c *flown, attempt int, own, success bool) {
	if !n.keeps(attempt, own) {
		return
	}
	took := now - c.began[attempt]
	if len(n.samples) < 8000 {
		n.samples = append(n.samples, took)
		return
	}
	n.samples[n.next] = took
	n.next = (n.next + 1) % len(n.samples)
}

// What is done with the times of losers decides how many calls are hedged in the
// long run. To leave them out, as one does who records what calls return, doubles
// hedges: of the slow attempts only the fast are left. To take them for latencies
// (Finagle's BackupRequestFilter does) drags the percentile down by those of hedges.
func TestHedgesDoNotBreedHedges(t *testing.T) {
	t.Parallel()
	leftOut := func(_ int, own bool) bool { return own }
	asLatencies := func(int, bool) bool { return true }
	for name, latency := range latencyOf {
		for _, c := range []struct {
			way         string
			h           hedger
			least, most float64
		}{
			{"left out", &naive{keeps: leftOut}, 0.053, 0.15},
			{"as latencies", &naive{keeps: asLatencies}, 0.0505, 0.06},
			{"ours, no bounds", ours{must(t, lax(Config{}))}, 0.04, 0.051},
			{"ours", ours{must(t, Config{Attempts: 2})}, 0.04, 0.051},
		} {
			r := rand.New(rand.NewPCG(1, 2))
			w := &world{r: r, rate: steady(1000), latency: latency(r), hedger: c.h}
			w.run(30 * time.Second)
			calls, hedges := w.calls, w.hedges
			w.run(w.now + 40*time.Second)
			share := float64(w.hedges-hedges) / float64(w.calls-calls)
			t.Logf("%-18s %-16s hedged in 40 s: %.4f", name, c.way, share)
			if share < c.least || share > c.most {
				t.Errorf("%s, %s: %.4f of the calls are hedged, want %v to %v", name, c.way, share, c.least, c.most)
			}
		}
	}
}

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
				w := &world{r: r, rate: steady(1000), hedger: ours{h}, fails: ill}
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
