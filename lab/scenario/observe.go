package scenario

import (
	"context"
	"math"
	"slices"

	"github.com/lullgo/lull/lab/sim"
)

// OfCalls reports whether failures and times are of calls, and not of attempts.
func (o *Observed) OfCalls() bool {
	return slices.ContainsFunc(o.Calls, func(v float64) bool { return v >= 0 })
}

// Simulate flies s and returns, beside the result, what is observed of it in the steps of o: of calls as o, or of attempts. What s
// has more of, after the last step of o, counts as well.
func (o *Observed) Simulate(ctx context.Context, s sim.Scenario, c sim.Contender, opts sim.Options) (sim.Result, Observed, error) {
	s.Step = o.Step
	steps := int((s.Horizon + s.Step - 1) / s.Step)
	failures := make([]float64, steps)
	took := make([][]float64, steps) // what succeeded
	if !o.OfCalls() {
		opts.Attempt = func(a sim.AttemptEnd) {
			switch i := min(int(a.Ended/s.Step), steps-1); a.Code {
			case "":
				took[i] = append(took[i], (a.Ended - a.Began).Seconds())
			case "canceled":
			default:
				failures[i]++
			}
		}
	}
	r, err := sim.Run(ctx, s, c, opts)
	x, got := &r.Series, Observed{Step: s.Step, Calls: r.Series.Calls}
	for i := range x.Calls {
		got.Attempts = append(got.Attempts, x.First[i]+x.Retries[i])
		lost, ended, p50, p99 := x.Failed[i], x.Failed[i]+x.Goodput[i], x.P50[i].Seconds(), x.P99[i].Seconds()
		if !o.OfCalls() {
			slices.Sort(took[i])
			lost, ended, p50, p99 = failures[i], failures[i]+float64(len(took[i])), quantile(took[i], 0.5), quantile(took[i], 0.99)
		}
		if ended == 0 {
			lost, ended = -1, 1
		}
		if lost == ended {
			p50, p99 = -1, -1
		}
		got.Failed, got.P50, got.P99 = append(got.Failed, lost/ended), append(got.P50, p50), append(got.P99, p99)
	}
	return r, got, err
}

// quantile is of ascending values; -1 of none.
func quantile(values []float64, q float64) float64 {
	if n := float64(len(values)); n > 0 {
		return values[max(int(math.Ceil(q*n))-1, 0)]
	}
	return -1
}
