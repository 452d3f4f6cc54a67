//go:build !race

package hedge

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// A service of 100 servers, two fifths of them busy. A request takes 7 to 13 ms, but one
// in fifty takes 50 times as long.
func tailed(h *Hedger) *world {
	r := rand.New(rand.NewPCG(1, 2))
	return &world{r: r, rate: 2000, servers: 100, hedger: h, latency: func() time.Duration {
		d := (0.7 + 0.6*r.Float64()) * 10e6
		if r.IntN(50) == 0 {
			d *= 50
		}
		return time.Duration(d)
	}}
}

type figures struct {
	p50, p99, p999 time.Duration
	extra          float64 // attempts over calls
	busy           float64 // servers
}

func measure(w *world) figures {
	w.run(20 * time.Second)
	var took []time.Duration
	w.done = func(c *flown) { took = append(took, c.end-c.start) }
	calls, hedges, work := w.calls, w.hedges, w.work
	w.run(50 * time.Second)
	slices.Sort(took)
	at := func(p float64) time.Duration { return took[int(p*float64(len(took)))].Round(100 * time.Microsecond) }
	return figures{at(0.5), at(0.99), at(0.999), float64(w.hedges-hedges) / float64(w.calls-calls), (w.work - work).Seconds() / 30}
}

// Hedging is worth its cost: the p99 falls to a fifth at least, for 6 % more attempts
// at most, whether the servers notice that a loser is cancelled or not.
func TestTailIsCut(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		plain := tailed(nil)
		plain.deaf = deaf
		hedged := tailed(must.Have(New(Config{Attempts: 2})))
		hedged.deaf = deaf
		without, with := measure(plain), measure(hedged)
		t.Logf("deaf %v: without %+v, with %+v", deaf, without, with)
		if with.p99*5 > without.p99 || with.p50 > without.p50+ms {
			t.Errorf("deaf %v: without %+v, with %+v", deaf, without, with)
		}
		if with.extra > 0.06 || with.busy > 1.06*without.busy {
			t.Errorf("deaf %v: %.3f attempts more, servers %.1f busy instead of %.1f", deaf, with.extra, with.busy, without.busy)
		}
	}
}

// The whole service hangs for ten seconds: nobody is answered, and nobody learns. The
// hedges end with the first second.
func TestNoHedgesWhenAllHangs(t *testing.T) {
	h := must.Have(New(Config{Attempts: 2, InFlight: -1}))
	w := tailed(h)
	w.servers = 0
	usual := w.latency
	w.latency = func() time.Duration {
		d := usual()
		if w.now >= 30*time.Second && w.now < 40*time.Second {
			d = 40*time.Second - w.now + d
		}
		return d
	}
	w.run(30 * time.Second)
	calls, hedges := w.calls, w.hedges
	w.run(40 * time.Second)
	n := w.hedges - hedges
	t.Logf("%d hedges among %d calls that hang", n, w.calls-calls)
	if n > 2000/10 {
		t.Errorf("%d hedges among %d calls that hang", n, w.calls-calls)
	}
}
