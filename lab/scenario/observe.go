package scenario

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// Watched returns the part of s that Observed is about: its first fleet and service, if they have nothing to do with the others, as
// with worlds that lull learn makes.
func Watched(s sim.Scenario) sim.Scenario {
	if len(s.Fleets) > 1 && len(s.Services) > 1 && len(s.Services[0].Calls) == 0 && s.Fleets[0].Calls == s.Services[0].Name {
		s.Fleets, s.Services = s.Fleets[:1], s.Services[:1]
	}
	return s
}

// OfCalls reports whether failures and times are of calls, and not of attempts.
func (o *Observed) OfCalls() bool {
	return slices.ContainsFunc(o.Calls, func(v float64) bool { return v >= 0 })
}

// Simulate flies s and returns, beside the result, what is observed of it in the steps of o. If o is of calls, that is one. If it is
// of attempts, there are two: what their callers see, or a proxy that notices when a caller has gone, and what the service writes
// down, which does not notice.
func (o *Observed) Simulate(ctx context.Context, s sim.Scenario, c sim.Contender, opts sim.Options) (r sim.Result, seen []Observed, err error) {
	s.Step = o.Step
	callers, service := newEnds(s), newEnds(s)
	if !o.OfCalls() {
		opts.Attempt = func(a sim.AttemptEnd) {
			if a.Code != "canceled" {
				callers.add(a.Began, a.Ended, a.Code)
			}
		}
		opts.Served = func(e sim.ServedEnd) { service.add(e.Came, e.Ended, e.Code) }
	}
	r, err = sim.Run(ctx, s, c, opts)
	x, got := &r.Series, Observed{Step: s.Step, Calls: r.Series.Calls}
	for i := range x.Calls {
		got.Attempts = append(got.Attempts, x.First[i]+x.Retries[i])
		got.add(x.Failed[i], x.Failed[i]+x.Goodput[i], x.P50[i].Seconds(), x.P99[i].Seconds())
	}
	if o.OfCalls() {
		return r, []Observed{got}, err
	}
	for _, e := range []*ends{callers, service} {
		of := Observed{Step: s.Step, Calls: got.Calls, Attempts: got.Attempts}
		if e == service {
			of.Attempts = e.came
		}
		for i := range got.Calls {
			slices.Sort(e.took[i])
			of.add(e.failed[i], e.failed[i]+float64(len(e.took[i])), quantile(e.took[i], 0.5), quantile(e.took[i], 0.99))
		}
		seen = append(seen, of)
	}
	return r, seen, err
}

// add appends a step, of whose ends some failed.
func (o *Observed) add(failed, ended, p50, p99 float64) {
	if failed == ended {
		p50, p99 = -1, -1
	}
	if ended == 0 {
		failed, ended = -1, 1
	}
	o.Failed, o.P50, o.P99 = append(o.Failed, failed/ended), append(o.P50, p50), append(o.P99, p99)
}

// ends are the attempts of each step: how many came in a second, how many failed, and how long the others took.
type ends struct {
	step         time.Duration
	came, failed []float64
	took         [][]float64
}

func newEnds(s sim.Scenario) *ends {
	steps := int((s.Horizon + s.Step - 1) / s.Step)
	return &ends{s.Step, make([]float64, steps), make([]float64, steps), make([][]float64, steps)}
}

func (e *ends) add(came, ended time.Duration, code string) {
	e.came[min(int(came/e.step), len(e.came)-1)] += 1 / e.step.Seconds()
	if i := min(int(ended/e.step), len(e.took)-1); code == "" {
		e.took[i] = append(e.took[i], (ended - came).Seconds())
	} else {
		e.failed[i]++
	}
}

// quantile is of ascending values; -1 of none.
func quantile(values []float64, q float64) float64 {
	if n := float64(len(values)); n > 0 {
		return values[max(int(math.Ceil(q*n))-1, 0)]
	}
	return -1
}
