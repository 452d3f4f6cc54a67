package replay

import (
	"context"
	"io"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// now is a policy as many have: another attempt soon, without a budget.
var now = lull.Policy{Attempts: 2, Backoff: backoff.Schedule{Base: 50 * time.Millisecond, Cap: 200 * time.Millisecond}, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true}}

// stalled is a service that stands still for fifteen seconds of three minutes.
func stalled() sim.Scenario {
	return sim.Scenario{
		Name: "stalled", Horizon: 3 * time.Minute,
		Services: []sim.Service{{
			Name: "service", Workers: 20, Queue: sim.Queue{Limit: 400}, Time: sim.Distribution{Kind: sim.LogNormal, Mean: 100 * time.Millisecond, Sigma: 0.5}, Errors: 0.002,
			Faults: []sim.Fault{{Kind: sim.Stall, At: time.Minute, For: 15 * time.Second}},
		}},
		Fleets: []sim.Fleet{{Name: "callers", Calls: "service", Processes: 10, AttemptTimeout: time.Second, Arrivals: sim.Arrivals{Kind: sim.Poisson, Rate: 160}}},
	}
}

// observe flies a world under a policy, and returns what a caller measures. Of attempts: calls are not known.
func observe(s sim.Scenario, p lull.Policy, seed uint64, step time.Duration, ofAttempts bool, view ...int) scenario.Observed {
	o := scenario.Observed{Step: step}
	if !ofAttempts {
		o.Calls = []float64{0}
	}
	_, seen, err := o.Simulate(context.Background(), s, sim.Contender{Name: "now", Policy: p}, sim.Options{Seed: seed})
	must.Succeed(err)
	o = seen[append(view, 0)[0]]
	if ofAttempts {
		for i := range o.Calls {
			o.Calls[i] = -1
		}
	}
	return o
}

func quiet() *term.Progress {
	return term.NewProgress(io.Discard, func(string) string { return "" }, true)
}
