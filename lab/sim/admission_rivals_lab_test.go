//go:build lab

package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/admission"
)

// Other adaptive limits, written from their sources with the defaults found there. They move the bound of
// a controller whose own limit is fixed, and nobody waits.
type rivalLimit interface {
	// done returns the limit after a request that took so long, with so many in flight.
	done(now, took time.Duration, inFlight int) int
}

// vegas is VegasLimit of Netflix' concurrency-limits, without its jitter of the probes.
type vegas struct {
	limit, noLoad float64
	samples       int
}

func (v *vegas) done(_, took time.Duration, inFlight int) int {
	rtt := float64(took)
	v.samples++
	log := math.Max(1, math.Floor(math.Log10(v.limit)))
	switch {
	case float64(v.samples) >= 30*v.limit:
		v.samples, v.noLoad = 0, rtt
	case v.noLoad == 0 || rtt < v.noLoad:
		v.noLoad = rtt
	case 2*float64(inFlight) >= v.limit:
		switch queue := math.Ceil(v.limit * (1 - v.noLoad/rtt)); {
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

// gradient2 is Gradient2Limit of the same: limits from least (20) to 200, queue 4, smoothing 0.2, tolerance 1.5, a long
// window of 600 samples.
type gradient2 struct {
	limit, least, long float64
	samples            int
}

func (g *gradient2) done(_, took time.Duration, inFlight int) int {
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
		g.limit = math.Min(200, math.Max(g.least, 0.8*g.limit+0.2*(g.limit*gradient+4)))
	}
	return int(g.limit)
}

// windowed is WindowedLimit of the same: a limit gets the mean of a second, if that had ten samples.
type windowed struct {
	rivalLimit
	until, sum time.Duration
	n, most    int
	limit      int
}

func (w *windowed) done(now, took time.Duration, inFlight int) int {
	w.sum, w.n, w.most = w.sum+took, w.n+1, max(w.most, inFlight)
	if now >= w.until && w.n >= 10 {
		w.limit = w.rivalLimit.done(now, w.sum/time.Duration(w.n), w.most)
		w.sum, w.n, w.most, w.until = 0, 0, 0, now+time.Second
	}
	return w.limit
}

// envoy is the gradient controller of Envoy's adaptive concurrency filter: windows of 100 ms; the minimum
// round-trip time is the median of 50 requests at a limit of 3, at the start and every 60 s (both intervals are those of
// its documentation); buffer 25 %, limits from 3 to 1000.
type envoy struct {
	limit, deferred  int
	measuring        bool
	epoch, next, end time.Duration
	least            time.Duration
	times            []time.Duration
}

func newEnvoy() *envoy { return &envoy{limit: 3, deferred: 3, measuring: true} }

func (e *envoy) done(now, took time.Duration, _ int) int {
	if now-took < e.epoch {
		return e.limit
	}
	e.times = append(e.times, took)
	median := func() time.Duration {
		slices.Sort(e.times)
		m := e.times[len(e.times)/2]
		e.times = e.times[:0]
		return max(m, 1)
	}
	switch {
	case e.measuring && len(e.times) >= 50:
		e.least, e.measuring = median(), false
		e.limit, e.next, e.end = e.deferred, now+60*time.Second, now+100*time.Millisecond
	case !e.measuring && now >= e.next:
		e.deferred, e.limit, e.measuring, e.epoch, e.times = e.limit, 3, true, now, e.times[:0]
	case !e.measuring && now >= e.end:
		e.end = now + 100*time.Millisecond
		gradient := min(2, max(0.5, 1.25*float64(e.least)/float64(median())))
		limit := float64(e.limit) * gradient
		e.limit = min(1000, max(3, int(limit+math.Sqrt(limit))))
	}
	return e.limit
}

func rivalGate(l rivalLimit, first int) *admission.Controller {
	var g *admission.Controller
	g = must.Have(admission.New(admission.Config{Limit: admission.MaxLimit, MaxWait: -1}, admission.WithObserver(func(e admission.Event) {
		if e.Kind == admission.Departure {
			_ = g.SetMax(e.At, max(1, l.done(e.At, e.Took, g.Snapshot(e.At).InFlight+1)))
		}
	})))
	must.Succeed(g.SetMax(0, first))
	return g
}

// A gate is one that stands before the service instead of its own; make is nil for lull's.
type gate struct {
	name string
	make func() *admission.Controller
}

func newVegas() *admission.Controller {
	return rivalGate(&windowed{rivalLimit: &vegas{limit: 20}, limit: 20}, 20)
}

func newGradient2(least float64) func() *admission.Controller {
	return func() *admission.Controller {
		return rivalGate(&windowed{rivalLimit: &gradient2{limit: 20, least: least}, limit: 20}, 20)
	}
}

func fixedGate(n int) func() *admission.Controller {
	return func() *admission.Controller { return must.Have(admission.New(admission.Config{Limit: n})) }
}

func runBehind(t *testing.T, g gate, s Scenario, c Contender) Result {
	w := build(t, s, c, Options{Seed: 1})
	if g.make != nil {
		w.services[0].hosts[0].gate = g.make()
	}
	must.Succeed(w.run(t.Context(), Options{Seed: 1}))
	return w.rec.result(w.now)
}

// At a limit that measures queueing where there is none, the published formulas behave as published.
func TestRivalLimits(t *testing.T) {
	g, v, e := &gradient2{limit: 20, least: 20}, &vegas{limit: 20}, newEnvoy()
	for i := range 1000 {
		now := time.Duration(i) * 10 * millisecond
		g.done(now, 100*millisecond, 1000)
		v.done(now, 100*millisecond, 1000)
		e.done(now, 100*millisecond, 1000)
	}
	want(t, "gradient2 grows to its largest limit while times are even", int(g.limit), 200)
	want(t, "Envoy grows to its largest while times are even", e.limit, 1000)
	if v.limit < 500 {
		t.Errorf("Vegas grows to %v while times are even", v.limit)
	}
	for i := range 1000 {
		e.done(10*time.Second+time.Duration(i)*10*millisecond, time.Second, 1000)
	}
	if e.limit > 10 {
		t.Errorf("Envoy falls to %d when times are ten times as long", e.limit)
	}
}

// docs/servers.md has figures of it: go test -tags lab -v -run TestAdmissionBesideRivals ./lab/sim
func TestAdmissionBesideRivals(t *testing.T) {
	idle := func(mean time.Duration, rate float64) Scenario {
		return Scenario{
			Horizon:  40 * time.Second,
			Services: []Service{{Name: "api", Admission: Admission{On: true, NoDeadlines: true}, Time: Distribution{Kind: Exponential, Mean: mean}}},
			Fleets:   []Fleet{{Calls: "api", Processes: 100, Arrivals: Arrivals{Rate: rate}, AttemptTimeout: 20*mean + time.Second}},
		}
	}
	busy := func(rate float64) Scenario {
		s := idle(100*millisecond, rate)
		s.Services[0].Workers, s.Services[0].Queue = 100, Queue{Limit: 100_000}
		s.Fleets[0].AttemptTimeout = time.Second
		return s
	}
	slow := func(s Scenario) Scenario {
		s.Services[0].Faults = []Fault{{Kind: SlowDown, At: 15 * time.Second, For: 15 * time.Second, Share: 0.2}}
		return s
	}
	worlds := []struct {
		name string
		s    Scenario
		idle bool
	}{
		{"idle, 1 ms", idle(millisecond, 300), true},
		{"idle, 300 ms", idle(300*millisecond, 300), true},
		{"idle, 1 s", idle(time.Second, 60), true},
		{"idle, 10 s", idle(10*time.Second, 60), true},
		{"idle, then five times as slow", slow(idle(100*millisecond, 300)), true},
		{"cold start at three times the load", busy(3000), false},
		{"cold start at 1.2 times the load", busy(1200), false},
		{"deployment: start at 0.8 of the load", busy(800), false},
		{"overload, then five times as slow", slow(busy(3000)), false},
	}
	gates := []gate{
		{"lull", nil}, {"Vegas", newVegas}, {"Gradient2", newGradient2(20)}, {"Envoy", func() *admission.Controller { return rivalGate(newEnvoy(), 3) }},
	}
	for _, x := range worlds {
		for _, gate := range gates {
			r := runBehind(t, gate, x.s, naive(1, 0))
			n, all := r.Totals, float64(r.Totals.Calls)
			t.Logf("%-36s %-10s succeeded %5.1f %%, refused %5.1f %%, p99 of those that succeeded %v", x.name, gate.name,
				100*float64(n.Succeeded)/all, 100*float64(n.Shed)/all, r.Latency.P99.Round(millisecond))
			if x.idle && gate.make == nil && n.Shed > 0 {
				t.Errorf("%s: %d refused", x.name, n.Shed)
			}
		}
	}
}

// docs/servers.md has figures of the goodput: go test -tags lab -v -run TestLimitBesideRivals ./lab/sim
func TestLimitBesideRivals(t *testing.T) {
	for _, workers := range []int{4, 40} {
		s := Scenario{
			Horizon: 81 * time.Second,
			Services: []Service{{
				Name: "api", Workers: workers, Queue: Queue{Limit: 100_000}, Admission: Admission{On: true, NoDeadlines: true},
				Time:   Distribution{Kind: Exponential, Mean: 20 * millisecond},
				Faults: []Fault{{Kind: SlowDown, At: 30 * time.Second, For: 30 * time.Second, Share: 0.2}},
			}},
			Fleets: []Fleet{{Calls: "api", Processes: 100, Arrivals: Arrivals{Rate: 150 * float64(workers)}, AttemptTimeout: 200 * millisecond}},
		}
		slow := map[string]float64{}
		for _, gate := range []gate{
			{"lull", nil}, {"fixed, number of workers", fixedGate(workers)}, {"fixed, five times that", fixedGate(5 * workers)},
			{"Vegas", newVegas}, {"Gradient2", newGradient2(20)}, {"Gradient2, least limit 1", newGradient2(1)},
		} {
			r := runBehind(t, gate, s, naive(4, 100*millisecond))
			goodput := func(from, to int, speed float64) (sum float64) {
				for _, g := range r.Series.Goodput[from:to] {
					sum += g
				}
				return sum / float64(to-from) / (50 * float64(workers) * speed)
			}
			slow[gate.name] = goodput(30, 60, 0.2)
			t.Logf("%2d workers, %-26s before %.2f, slow %.2f, after %.2f", workers, gate.name, goodput(10, 30, 1), slow[gate.name], goodput(60, 80, 1))
		}
		if slow["lull"] < slow["Gradient2"]+0.2 {
			t.Errorf("%d workers: while slow, goodput is %.2f of the capacity, and %.2f with Gradient2's defaults", workers, slow["lull"], slow["Gradient2"])
		}
	}
}
