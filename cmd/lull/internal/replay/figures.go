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
	for k, values := range [figures][]float64{o.Calls, o.Attempts, o.Failed, o.P50, o.P99} {
		c[k] = slices.Repeat([]float64{math.NaN()}, steps)
		for i, v := range values[:min(len(values), steps)] {
			if v >= 0 {
				c[k][i] = v
			}
		}
	}
	return c, len(known(c[arrivals])) > 0
}

// known returns the values that are known.
func known(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

// average is the mean of the values that are known; NaN if none is.
func average(values []float64) float64 {
	sum := 0.0
	values = known(values)
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// A flight is what came of one run.
type flight struct {
	Seed     uint64
	Totals   sim.Totals
	Recovery sim.Recovery
	Held     float64 // calls in progress, on average
	course
}

// fly flies a scenario whose Step is that of the observations, and whose load is a share of the real one. Without ofCalls times
// and failures are of attempts.
func fly(ctx context.Context, s sim.Scenario, c sim.Contender, o sim.Options, ofCalls bool, share float64) (flight, error) {
	failures := make([]float64, steps(s))
	took := make([][]float64, steps(s)) // what succeeded
	if !ofCalls {
		o.Attempt = func(a sim.AttemptEnd) {
			switch i := min(int(a.Ended/s.Step), len(took)-1); a.Code {
			case "":
				took[i] = append(took[i], (a.Ended - a.Began).Seconds())
			case "canceled":
			default:
				failures[i]++
			}
		}
	}
	r, err := sim.Run(ctx, s, c, o)
	f := flight{Seed: r.Seed, Totals: r.Totals, Recovery: r.Recovery, Held: r.HeldRate()}
	x := &r.Series
	for i := range x.Calls {
		now := [figures]float64{x.Calls[i] / share, (x.First[i] + x.Retries[i]) / share, x.Failed[i] / (x.Failed[i] + x.Goodput[i]), x.P50[i].Seconds(), x.P99[i].Seconds()}
		if !ofCalls {
			now[failed], now[p50], now[p99] = failures[i]/(failures[i]+float64(len(took[i]))), quantile(took[i], 0.5), quantile(took[i], 0.99)
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

// quantile sorts values; of none it is NaN.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	if n := float64(len(values)); n > 0 {
		return values[max(int(math.Ceil(q*n))-1, 0)]
	}
	return math.NaN()
}

// median returns a figure of the flights in the middle, at each step.
func median(all []flight, figure int) (m []float64) {
	for i := range all[0].course[figure] {
		var values []float64
		for _, f := range all {
			values = append(values, f.course[figure][i])
		}
		m = append(m, quantile(known(values), 0.5))
	}
	return m
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
