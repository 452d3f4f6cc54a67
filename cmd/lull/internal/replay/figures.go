package replay

import (
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

// newCourse returns what was observed in so many steps, with rates so many times as large.
func newCourse(o *scenario.Observed, steps int, times float64) (c course) {
	for k, values := range [figures][]float64{o.Calls, o.Attempts, o.Failed, o.P50, o.P99} {
		c[k] = slices.Repeat([]float64{math.NaN()}, steps)
		for i, v := range values[:min(len(values), steps)] {
			if k < failed {
				v *= times
			}
			if v >= 0 {
				c[k][i] = v
			}
		}
	}
	return c
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
	Back     float64 // seconds from the beginning of the incident, as the file has it, to recovery; infinite: never; NaN: it cannot be said
	Held     float64 // calls in progress, on average
	course
}

// median returns a figure of the flights in the middle, at each step.
func median(all []flight, figure int) (m []float64) {
	for i := range all[0].course[figure] {
		var values []float64
		for _, f := range all {
			values = append(values, f.course[figure][i])
		}
		if values = known(values); len(values) == 0 {
			values = []float64{math.NaN()}
		}
		slices.Sort(values)
		m = append(m, values[(len(values)-1)/2])
	}
	return m
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
