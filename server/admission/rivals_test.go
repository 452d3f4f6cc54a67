package admission

import (
	"flag"
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// Other adaptive limits, in place of the controller's own: the queue, the bounds and all
// else is the same. Written from their sources, with the defaults found there.

// vegas is VegasLimit of Netflix' concurrency-limits: initial limit 20, most 1000; the
// least time seen, probed anew every 30 × limit samples.
type vegas struct {
	limit, noLoad float64
	samples       int
}

func newVegas() *vegas { return &vegas{limit: 20} }

func (v *vegas) done(took time.Duration, inFlight int) int {
	rtt := float64(took)
	v.samples++
	switch {
	case v.noLoad == 0 || rtt < v.noLoad:
		v.noLoad = rtt
	case float64(v.samples) >= 30*v.limit:
		v.samples, v.noLoad = 0, rtt
	case 2*float64(inFlight) >= v.limit:
		log := math.Max(1, math.Log10(v.limit))
		queue := math.Ceil(v.limit * (1 - v.noLoad/rtt))
		switch {
		case queue <= log:
			v.limit += 6 * log
		case queue < 3*log:
			v.limit += log
		case queue > 6*log:
			v.limit -= log
		}
		v.limit = math.Min(math.Max(v.limit, 1), 1000)
	}
	return int(v.limit)
}

// gradient2 is Gradient2Limit of the same: initial and least limit 20, most 200, queue 4,
// smoothing 0.2, tolerance 1.5, long window of 600 samples.
type gradient2 struct {
	limit, long, least float64
	samples            int
}

func newGradient2() *gradient2 { return &gradient2{limit: 20, least: 20} }

func (g *gradient2) done(took time.Duration, inFlight int) int {
	rtt := float64(took)
	if g.samples++; g.samples <= 10 {
		g.long += (rtt - g.long) / float64(g.samples)
	} else {
		g.long += (rtt - g.long) * 2 / 601
	}
	if g.long/rtt > 2 {
		g.long *= 0.95
	}
	if float64(inFlight) >= g.limit/2 {
		gradient := math.Min(1, math.Max(0.5, 1.5*g.long/rtt))
		next := g.limit*gradient + 4
		g.limit = math.Min(200, math.Max(g.least, 0.8*g.limit+0.2*next))
	}
	return int(g.limit)
}

// windowed is WindowedLimit of the same, as its authors recommend: a limit gets the mean
// of a second, if that had ten samples.
type windowed struct {
	limiter
	now   func() time.Duration
	until time.Duration
	sum   time.Duration
	n     int
	most  int // in flight
	limit int
}

func (w *windowed) done(took time.Duration, inFlight int) int {
	w.sum, w.n, w.most = w.sum+took, w.n+1, max(w.most, inFlight)
	if w.now() >= w.until && w.n >= 10 {
		w.limit = w.limiter.done(w.sum/time.Duration(w.n), w.most)
		w.sum, w.n, w.most, w.until = 0, 0, 0, w.now()+time.Second
	}
	return w.limit
}

// The table of docs/servers.md: exponential times of 20 ms, three times the load with
// four attempts for each call and a patience of 200 ms; then times of 100 ms; then the old
// ones. All of the table takes 15 s of computing, so it is only made if -run names this test. -v alone is
// not enough: go test -json implies it.
func TestRivals(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	type outcome struct{ before, slow, after float64 }
	fly := func(name string, c *Controller, l limiter, workers int) (o outcome) {
		w := &world{c: c, limiter: l, workers: workers, service: exponential(20 * ms), attempts: 4, patience: 200 * ms,
			rate: always(150 * float64(workers))}
		if l != nil {
			c.fixed = true
			c.knee.limit, c.knee.current = 20, 20
			w.limiter = &windowed{limiter: l, limit: 20, now: func() time.Duration { return w.now }}
		}
		w.slow = func(now time.Duration) float64 {
			if now >= 30*time.Second && now < 60*time.Second {
				return 5
			}
			return 1
		}
		var good [4]int
		for i, at := range []time.Duration{10, 30, 60, 80} {
			w.at(at*time.Second, func() { good[i] = w.good })
		}
		w.run(3, 81*time.Second)
		can := 50 * float64(workers)
		o = outcome{float64(good[1]-good[0]) / 20 / can, float64(good[2]-good[1]) / 30 / (can / 5), float64(good[3]-good[2]) / 20 / can}
		t.Logf("%3d workers, %-28s before %4.2f, slow %4.2f, after %4.2f; p99 %v", workers, name, o.before, o.slow, o.after, percentile(w.took, 0.99).Round(ms))
		return o
	}
	all := testing.Verbose() && flag.Lookup("test.run").Value.String() != ""
	numbers := []int{4}
	if all {
		numbers = append(numbers, 40)
	}
	for _, workers := range numbers {
		ours := fly("this package", must.Have(New(Config{})), nil, workers)
		if ours.before < 0.85 || ours.slow < 0.6 || ours.after < 0.85 {
			t.Errorf("%d workers: %+v", workers, ours)
		}
		if !all {
			continue
		}
		fly("fixed, the workers' number", must.Have(New(Config{Limit: workers})), nil, workers)
		fly("fixed, five times as many", must.Have(New(Config{Limit: 5 * workers})), nil, workers)
		fly("Vegas", must.Have(New(Config{})), newVegas(), workers)
		if gradient := fly("Gradient2", must.Have(New(Config{})), newGradient2(), workers); ours.slow < gradient.slow+0.2 {
			t.Errorf("%d workers: while slow, goodput is %.2f of the capacity, and %.2f with Gradient2's defaults", workers, ours.slow, gradient.slow)
		}
		fly("Gradient2, least limit 1", must.Have(New(Config{})), &gradient2{limit: 20, least: 1}, workers)
	}
}
