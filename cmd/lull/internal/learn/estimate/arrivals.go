package estimate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/lab/sim"
)

// arrivals learns how many calls begin, over time. Callers know that. A server counts retries among them: then what arrives in an incident is
// taken for calls only if it grew before anything else was wrong.
func (e *estimator) arrivals() {
	s, what := e.main, "requests at the server, among them retries"
	for _, side := range []observed.Side{observed.Attempts, observed.Calls} {
		if e.sum[side] != nil {
			s, what = e.sum[side], [...]string{"calls", "attempts, among them retries"}[side]
		}
	}
	arrived := append([]float64(nil), s.arrived()...)
	pure := s.Side == observed.Calls
	if !pure {
		pure = true
		for i, r := range s.retries {
			if pure = pure && (!math.IsNaN(r) || s.Points[i].Missing); pure {
				arrived[i] -= r
			}
		}
		if pure {
			what = "first attempts"
		} else {
			arrived = append([]float64(nil), s.arrived()...)
		}
	}
	from, to := clampStep(s, e.zero), clampStep(s, e.zero.Add(e.w.Scenario.Horizon))
	counts := arrived[from:to]
	group := max(1, (len(counts)+mostShown-1)/mostShown)
	counts = summed(counts, group)
	step := float64(group) * s.length
	at := func(i int) int { return from + i*group } // in steps of s
	masked := make([]bool, len(counts))
	for i := range counts {
		masked[i] = e.disturbed(s.At(at(i)), s.At(at(i+1)))
	}
	e.hidden = false
	if !pure {
		for i := range counts {
			if masked[i] && !e.grown(s.At(at(i)), s.At(at(i+1))) {
				e.hidden = true
				counts[i] = math.NaN()
			}
		}
	}

	starts := segments(counts, 1)
	means := meansOf(counts, starts)
	single, spread := dispersionOf(counts, means, starts, masked)
	if spread > 1 {
		starts = segments(counts, spread)
		means = meansOf(counts, starts)
		single, spread = dispersionOf(counts, means, starts, masked)
	}
	// The rate is that of the longest stretch outside of incidents.
	best, bestSum, bestN := 0, 0.0, 0.0
	for k, a := range starts {
		sum, n := 0.0, 0.0
		for i := a; i < endOf(starts, k, len(counts)); i++ {
			if !math.IsNaN(counts[i]) && !masked[i] {
				sum, n = sum+counts[i], n+1
			}
		}
		if n > bestN {
			best, bestSum, bestN = k, sum, n
		}
	}
	a := &e.fleet().Arrivals
	rate := bestSum / bestN / step
	a.Rate = digits(rate, 4)
	around := counted(bestSum, spread)
	low, high := around.low/bestN/step, around.high/bestN/step
	if !pure {
		low *= 1 - e.calm.failing // each of those that failed may be one that was repeated
	}
	shape := ""
	switch {
	case single < 0.5 && bestSum/bestN >= 5:
		a.Kind = sim.Constant
		shape = ", as evenly as by a clock"
	case spread > 1:
		shape = fmt.Sprintf(", in counts that vary %s times as much as by chance alone", number(spread, 0))
		e.seen(e.of("dispersion of arrivals"), number(spread, -1), number(spread, 1), "variance of counts over their mean; 1 is a Poisson process")
	}
	e.value(e.inFleet("arrivals.rate"), number(low, -1), number(high, 1), "%s %s in %s%s", whole(bestSum), what, duration(bestN*step, 0), shape)
	e.told[e.i].rate = rate

	level := means[best]
	if len(starts) > 1 {
		e.ramp(counts, starts, means, level, (around.high/bestSum-around.low/bestSum)/2, step, spread)
	}
	if e.hidden {
		e.ask(e.inFleet("arrivals.ramp"), "", "How many calls began during the incident? The server saw attempts, and cannot tell retries from calls. Assumed: as many as around it.",
			"metrics of the callers, by call")
	}
}

func endOf(starts []int, k, n int) int {
	if k+1 < len(starts) {
		return starts[k+1]
	}
	return n
}

func summed(counts []float64, group int) []float64 {
	out := make([]float64, (len(counts)+group-1)/group)
	for i := range out {
		part := counts[i*group : min((i+1)*group, len(counts))]
		for _, c := range part {
			out[i] += c
		}
		out[i] *= float64(group) / float64(len(part))
	}
	return out
}

// meansOf returns the mean of the stretch in which each count lies; of a stretch without any, that of the one before.
func meansOf(counts []float64, starts []int) []float64 {
	means := make([]float64, len(starts))
	for k, a := range starts {
		sum, n := 0.0, 0.0
		for _, c := range counts[a:endOf(starts, k, len(counts))] {
			if !math.IsNaN(c) {
				sum, n = sum+c, n+1
			}
		}
		if means[k] = sum / n; n == 0 && k > 0 {
			means[k] = means[k-1]
		}
	}
	return means
}

func dispersionOf(counts, means []float64, starts []int, masked []bool) (single, batches float64) {
	var some, mu []float64
	for k, a := range starts {
		for i := a; i < endOf(starts, k, len(counts)); i++ {
			if !math.IsNaN(counts[i]) && !masked[i] {
				some, mu = append(some, counts[i]), append(mu, means[k])
			}
		}
	}
	return dispersion(some, mu)
}

// grown reports whether the time belongs to an incident in which more came than retries explain.
func (e *estimator) grown(from, to time.Time) bool {
	m := e.main
	return slices.ContainsFunc(e.calm.incident, func(r run) bool {
		return m.At(r.from-1).Before(to) && m.At(r.to+1).After(from) && e.grew(m, &e.calm, r)
	})
}

// ramp writes stretches of different rates as steps. own is half the interval of the level to which the factors are relative, as a share of it.
func (e *estimator) ramp(counts []float64, starts []int, means []float64, level, own, step, spread float64) {
	a := &e.fleet().Arrivals
	path := e.inFleet("arrivals.ramp")
	factor := func(k int) float64 { return digits(means[k]/level, 3) }
	point := func(at float64, k int) {
		a.Ramp = append(a.Ramp, sim.RampPoint{At: seconds(at, 6), Factor: factor(k)})
		n := 0.0
		for _, c := range counts[starts[k]:endOf(starts, k, len(counts))] {
			if !math.IsNaN(c) {
				n++
			}
		}
		around := counted(means[k]*n, spread)
		f := means[k] / level
		low, high := f-math.Hypot(around.low/n/level-f, f*own), f+math.Hypot(around.high/n/level-f, f*own)
		e.value(fmt.Sprintf("%s.%d.factor", path, len(a.Ramp)-1), number(max(low, 0), -1), number(high, 1), "%s in %s", whole(means[k]*n), duration(n*step, 0))
	}
	for k := range starts {
		if k > 0 {
			at := float64(starts[k]) * step
			a.Ramp = append(a.Ramp, sim.RampPoint{At: seconds(at, 6), Factor: factor(k - 1)})
			point(at, k)
		} else {
			point(0, 0)
		}
	}
}
