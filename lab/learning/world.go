package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
)

// A world is a system whose properties are known, and what it did.
type world struct {
	seed      uint64
	family    string // of its incident
	scenario  sim.Scenario
	contender sim.Contender
	processes int
	capacity  float64 // attempts a second
	saturates bool    // for some time more arrives than it can do, and it answers as much as it can
	calm      bool    // it never has much to do: nobody can learn its capacity
	waits     bool    // healthy answers include waits in line
	zero      time.Time
	attempts  []sim.AttemptEnd // in the order in which they ended
	timeouts  int              // attempts that ended so
	answers   []float64        // how long answers take without the incident, in seconds, ascending
}

// families are the incidents of worlds.
var families = []string{"none", "errors", "stall", "brown-out", "spike", "spike", "slow-down", "crash"}

// drawWorld draws the world of a seed. The same seed gives the same world.
func drawWorld(seed uint64) *world {
	d := rand.New(rand.NewPCG(seed, 50))
	between := func(a, b float64) float64 { return a + (b-a)*d.Float64() }
	log := func(a, b float64) float64 { return a * math.Pow(b/a, d.Float64()) }
	span := func(a, b time.Duration) time.Duration { return time.Duration(log(float64(a), float64(b))) }
	w := &world{seed: seed, family: families[d.IntN(len(families))]}
	rate := math.Round(log(20, 150))
	mean := span(5*time.Millisecond, 200*time.Millisecond).Round(100 * time.Microsecond)
	w.processes = 1 + d.IntN(20)
	s := sim.Service{Name: "api", Time: serviceTime(d, mean), ErrorTime: (mean / 4).Round(time.Millisecond), CancelWork: d.IntN(2) == 0}
	if d.IntN(4) > 0 {
		s.Errors = math.Round(1e4*log(0.001, 0.03)) / 1e4
	}
	timeout := time.Duration(float64(quantile(s.Time, 0.999)) * between(1.2, 3)).Round(time.Millisecond)
	f := sim.Fleet{Name: "callers", Calls: "api", Processes: w.processes, AttemptTimeout: timeout, Arrivals: sim.Arrivals{Rate: rate}}
	horizon := time.Duration(between(240, 480)) * time.Second
	load := between(0.15, 0.75)
	if w.family == "spike" {
		load = max(load, 0.4)
	}
	if bounded := d.IntN(5) > 0 || w.family == "spike"; bounded {
		s.Workers = max(int(math.Ceil(rate*mean.Seconds()/load)), 1)
		w.capacity = float64(s.Workers) / mean.Seconds()
		line := between(0.3, 1)
		if w.family == "spike" {
			line *= 0.6 // so that few are cut off, and it is seen how many it can answer
		}
		s.Queue.Limit = max(int(w.capacity*timeout.Seconds()*line), 5)
		load = rate / w.capacity
	} else {
		load = 0
	}
	at, long := time.Duration(between(0.4, 0.6)*float64(horizon)).Round(time.Second), span(10*time.Second, time.Minute).Round(time.Second)
	fault := sim.Fault{At: at, For: long}
	switch w.family {
	case "errors":
		fault.Kind, fault.Share = sim.Errors, between(0.2, 1)
	case "stall":
		fault.Kind = sim.Stall
	case "brown-out":
		fault.Kind, fault.Share = sim.BrownOut, between(0.1, 0.8)
	case "slow-down":
		fault.Kind, fault.Share = sim.SlowDown, between(0.1, 0.5)
	case "crash":
		fault.Kind = sim.Crash
	case "spike":
		factor := between(1.3, 2) / load
		f.Arrivals.Ramp = []sim.RampPoint{{Factor: 1}, {At: at, Factor: 1}, {At: at, Factor: factor}, {At: at + long, Factor: factor}, {At: at + long, Factor: 1}}
	}
	if w.family != "none" && w.family != "spike" {
		s.Faults = []sim.Fault{fault}
	}
	w.calm = load < 0.5 && (w.family == "none" || w.family == "errors")
	w.waits = s.Workers > 0 && erlangC(s.Workers, rate*mean.Seconds()) > 0.01
	w.scenario = sim.Scenario{Name: fmt.Sprint("world-", seed), Horizon: horizon, Services: []sim.Service{s}, Fleets: []sim.Fleet{f}}
	w.contender = []sim.Contender{{Name: "lull"}, must.Have(battery.Preset("none")), must.Have(battery.Preset("full-jitter"))}[d.IntN(3)]
	w.zero = time.Date(2026, 11, 29, 14, d.IntN(60), d.IntN(60), d.IntN(1e9), time.UTC)
	return w
}

// fly has the world happen.
func (w *world) fly(ctx context.Context) {
	must.Have(sim.Run(ctx, w.scenario, w.contender, sim.Options{Seed: w.seed, Attempt: func(a sim.AttemptEnd) {
		w.attempts = append(w.attempts, a)
		if a.Code == engine.CodeTimeout {
			w.timeouts++
		}
	}}))
	ramp := w.scenario.Fleets[0].Arrivals.Ramp
	if ramp == nil {
		return
	}
	from, to := ramp[1].At+2*time.Second, ramp[3].At // after the queue is full
	answered := 0.0
	for _, a := range w.attempts {
		if a.Code == "" && a.Ended >= from && a.Ended < to {
			answered++
		}
	}
	w.saturates = to-from >= 15*time.Second && answered/(to-from).Seconds() > 0.9*w.capacity
}

// answer is the time that the share p of the answers does not exceed while all is well, waits in line included.
func (w *world) answer(ctx context.Context, p float64) float64 {
	if !w.waits {
		return quantile(w.scenario.Services[0].Time, p).Seconds()
	}
	if w.answers == nil {
		s := w.scenario
		s.Services, s.Fleets = slices.Clone(s.Services), slices.Clone(s.Fleets)
		s.Services[0].Faults, s.Fleets[0].Arrivals.Ramp = nil, nil
		s.Horizon = time.Duration(200_000 / s.Fleets[0].Arrivals.Rate * float64(time.Second))
		must.Have(sim.Run(ctx, s, w.contender, sim.Options{Seed: w.seed + 1<<32, Attempt: func(a sim.AttemptEnd) {
			if a.Code == "" {
				w.answers = append(w.answers, (a.Ended - a.Began).Seconds())
			}
		}}))
		slices.Sort(w.answers)
	}
	return w.answers[int(p*float64(len(w.answers)))]
}

// serviceTime draws how long the work takes.
func serviceTime(d *rand.Rand, mean time.Duration) sim.Distribution {
	switch d.IntN(4) {
	case 0:
		return sim.Distribution{Kind: sim.LogNormal, Mean: mean, Sigma: 0.3 + 0.7*d.Float64()}
	case 1:
		return sim.Distribution{Kind: sim.Exponential, Mean: mean}
	case 2:
		slow := 0.02 + 0.18*d.Float64()
		times := 5 + 15*d.Float64() // how much longer the slow ones take
		quick := float64(mean) / (1 - slow + slow*times)
		return sim.Distribution{Kind: sim.Bimodal, Mean: time.Duration(quick), Slow: slow, SlowMean: time.Duration(quick * times)}
	}
	return gamma(2+d.IntN(5), mean)
}

// gamma is a gamma distribution with a whole shape, as a histogram.
func gamma(shape int, mean time.Duration) sim.Distribution {
	above := func(x float64) float64 { // of the sum of exponential times with mean 1
		sum, term := 0.0, 1.0
		for i := range shape {
			sum += term
			term *= x / float64(i+1)
		}
		return sum * math.Exp(-x)
	}
	d := sim.Distribution{Kind: sim.Histogram}
	last := 0.0
	const bars = 500
	for i := 1; i <= bars; i++ {
		p := float64(i) / bars
		if i == bars {
			p = 1 - 1e-6
		}
		x := invert(func(x float64) float64 { return 1 - above(x) }, p)
		d.Bars = append(d.Bars, sim.Bar{UpTo: time.Duration(x / float64(shape) * float64(mean)), Weight: p - last})
		last = p
	}
	return d
}

// quantile is the time that the share p of d does not exceed.
func quantile(d sim.Distribution, p float64) time.Duration {
	m := float64(d.Mean)
	switch d.Kind {
	case sim.Exponential:
		return time.Duration(-m * math.Log1p(-p))
	case sim.LogNormal:
		return time.Duration(m * math.Exp(-d.Sigma*d.Sigma/2+d.Sigma*math.Sqrt2*math.Erfinv(2*p-1)))
	case sim.Bimodal:
		return time.Duration(m * invert(func(x float64) float64 {
			return 1 - (1-d.Slow)*math.Exp(-x) - d.Slow*math.Exp(-x*m/float64(d.SlowMean))
		}, p))
	case sim.Histogram:
		var all, sum float64
		for _, b := range d.Bars {
			all += b.Weight
		}
		var from time.Duration
		for _, b := range d.Bars {
			if sum += b.Weight; sum >= p*all {
				return b.UpTo - time.Duration(float64(b.UpTo-from)*(sum-p*all)/b.Weight)
			}
			from = b.UpTo
		}
		return from
	}
	return d.Mean
}

// invert returns where the rising function f has the value p, from 0 on.
func invert(f func(float64) float64, p float64) float64 {
	low, high := 0.0, 1.0
	for f(high) < p {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; f(middle) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// erlangC is the share of calls that wait, with c workers of which a are busy on average.
func erlangC(c int, a float64) float64 {
	if a >= float64(c) {
		return 1
	}
	b := 1.0 // Erlang's formula B, by its recursion
	for n := 1; n <= c; n++ {
		b = a * b / (float64(n) + a*b)
	}
	return b / (1 - a/float64(c)*(1-b))
}
