package replay

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// The figures that are compared, in the order of the output.
const (
	arrivals = iota
	attempts
	failed
	p50
	p99
	figures
)

var names = [figures]string{"arrivals", "attempts", "failed", "p50", "p99"}

// A course is the figures through time, a value for each step. NaN: it is not known.
type course [figures][]float64

// observedCourse is what was measured, in that many steps. ofCalls: times and failures are of calls, not of attempts.
func observedCourse(o *scenario.Observed, steps int) (c course, ofCalls bool) {
	for i, values := range [figures][]float64{o.Calls, o.Attempts, o.Failed, o.P50, o.P99} {
		for step := range steps {
			v := math.NaN()
			if step < len(values) && values[step] >= 0 {
				v = values[step]
			}
			c[i] = append(c[i], v)
		}
	}
	return c, c.known(arrivals, 0, steps) > 0
}

// known returns how many values of a figure are known, of some steps.
func (c *course) known(figure, from, to int) (n int) {
	for _, v := range c[figure][from:to] {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}

// A flight is one run, with its figures.
type flight struct {
	sim.Result
	course
}

// fly flies a scenario whose Step is that of the observations, and whose load is a share of the real one.
func fly(ctx context.Context, s sim.Scenario, c sim.Contender, o sim.Options, ofCalls bool, share float64) (flight, error) {
	steps := int((s.Horizon + s.Step - 1) / s.Step)
	ends := make([]attemptEnds, steps)
	if !ofCalls {
		fleets := map[string]bool{}
		for _, f := range s.Fleets {
			fleets[f.Name] = true
			if f.Name == "" {
				fleets[f.Calls] = true
			}
		}
		o.Attempt = func(a sim.AttemptEnd) {
			if fleets[a.Caller] {
				ends[min(int(a.Ended/s.Step), steps-1)].add(a)
			}
		}
	}
	r, err := sim.Run(ctx, s, c, o)
	f := flight{Result: r}
	for i := range r.Series.Calls {
		x := &r.Series
		now := [figures]float64{x.Calls[i] / share, (x.First[i] + x.Retries[i]) / share, x.Failed[i] / (x.Failed[i] + x.Goodput[i]), x.P50[i].Seconds(), x.P99[i].Seconds()}
		if !ofCalls {
			now[failed], now[p50], now[p99] = ends[i].figures()
		}
		for k, v := range now {
			if k >= p50 && v == 0 { // nothing succeeded
				v = math.NaN()
			}
			f.course[k] = append(f.course[k], v)
		}
	}
	return f, err
}

// attemptEnds are the attempts that ended in a step.
type attemptEnds struct {
	failed float64
	took   []time.Duration // of those that succeeded
}

func (e *attemptEnds) add(a sim.AttemptEnd) {
	if a.Code == "" {
		e.took = append(e.took, a.Ended-a.Began)
	} else if a.Code != "canceled" {
		e.failed++
	}
}

func (e *attemptEnds) figures() (share, p50, p99 float64) {
	n := len(e.took)
	share = e.failed / (e.failed + float64(n))
	if n == 0 {
		return share, 0, 0
	}
	slices.Sort(e.took)
	at := func(q float64) float64 { return e.took[max(int(math.Ceil(q*float64(n)))-1, 0)].Seconds() }
	return share, at(0.5), at(0.99)
}

// median is the figures in the middle of some courses, at each step.
func median(all []course) (m course) {
	for k := range m {
		m[k] = make([]float64, len(all[0][k]))
		for i := range m[k] {
			m[k][i] = middle(all, func(c *course) float64 { return c[k][i] })
		}
	}
	return m
}

func middle[T any](all []T, of func(*T) float64) float64 {
	var values []float64
	for i := range all {
		if v := of(&all[i]); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
