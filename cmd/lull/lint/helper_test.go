package lint

import (
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/throttle"
)

// one is one of the choices.
func one[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// randomPolicy is a valid policy of the kind that people write, and worse.
func randomPolicy(r *rand.Rand) lull.Policy {
	const ms = time.Millisecond
	for {
		p := lull.Policy{
			Attempts:        one(r, 0, 1, 2, 3, 4, 6, 20, 1+r.IntN(1000)),
			AttemptTimeout:  one(r, 0, lull.NoTimeout, 50*ms, 150*ms, time.Second, 7*time.Second),
			Deadline:        one(r, 0, lull.NoTimeout, 100*ms, 650*ms, 2*time.Second, 3*time.Second, time.Minute, time.Hour),
			RateLimitedBase: one(r, 0, ms, time.Second),
			HintLimit:       one(r, 0, ms, time.Minute),
			Timeouts:        one(r, engine.TimeoutsWhenAnswered, lull.TimeoutsAlways, lull.TimeoutsNever),
			Nested:          one(r, engine.NestedNever, lull.NestedAlways),
			Backoff: backoff.Schedule{
				Kind:      one(r, backoff.Exponential, backoff.Linear, backoff.Constant, backoff.Immediate, backoff.Ethernet),
				Jitter:    one(r, backoff.Full, backoff.Equal, backoff.None, backoff.Decorrelated, backoff.Proportional),
				Base:      one(r, 0, ms, 100*ms, time.Second, time.Minute),
				Cap:       one(r, 0, 50*ms, 100*ms, 2*time.Second, 20*time.Second),
				Floor:     one(r, 0, 0, 95*ms),
				Factor:    one(r, 0, 0, 1, 1.5, 3),
				FastFirst: r.IntN(4) == 0,
			},
			Budget: one(r, budget.Config{}, budget.Config{Unlimited: true}, budget.Config{Ratio: 0.5}, budget.Config{Ratio: 0.2},
				budget.Config{Window: 10 * time.Second, Floor: 5, Ratio: one(r, 0, 0.1, 0.9)}),
			Breaker: breaker.Config{
				Off: r.IntN(8) == 0, MetricsOnly: r.IntN(8) == 0, Consecutive: one(r, 0, -1, 1, 5), ConsecutiveFor: one(r, 0, -1, time.Second),
				FailureRate: one(r, 0, 0, 0.05, 0.5, 1), MinCalls: one(r, 0, 1, 2, 100), Window: one(r, 0, time.Second),
			},
			Limit: one(r, bulkhead.Config{}, bulkhead.Config{}, bulkhead.Config{InFlight: 5, MaxWait: 30 * ms}),
		}
		if r.IntN(3) == 0 {
			p.Breaker.SlowRate, p.Breaker.SlowCall = one(r, 0.05, 0.5), one(r, ms, time.Second, time.Hour)
		}
		if r.IntN(4) == 0 {
			p.Attempts = one(r, 0, 1)
			p.Hedge = hedge.Config{Attempts: one(r, 2, 3), Share: one(r, 0, -1.0), Delay: one(r, 0, hedge.AtOnce, 10*ms, time.Minute)}
		}
		if r.IntN(8) == 0 {
			p.Throttle = throttle.Config{Mode: throttle.Cubic}
		}
		if p.Validate() == nil {
			return p
		}
	}
}

// randomFile has policies, and services that call them.
func randomFile(r *rand.Rand) *config.PolicyFile {
	const ms = time.Millisecond
	f := &config.PolicyFile{}
	for i := range 1 + r.IntN(6) {
		d := config.Dependency{
			Name: string(rune('a' + i)), Policy: randomPolicy(r), P99: one(r, 0, 0, 40*ms, 400*ms), Rate: one(r, 0.0, 0, 1, 1000),
		}
		if r.IntN(3) == 0 {
			d.Operations = []config.Operation{
				{Name: "x", Idempotent: config.No, P99: one(r, 0, 200*ms)},
				{Name: "y", Idempotent: config.No, Keyed: true},
				{Name: "z"},
			}
		}
		f.Dependencies = append(f.Dependencies, d)
	}
	for i := range r.IntN(6) {
		s := config.Service{
			Name: string(rune('a' + i)), SLO: one(r, 0, 500*ms, 2*time.Second, time.Minute), Handler: one(r, 0, 0, time.Minute),
			Visibility: one(r, 0, 0, 30*time.Second, 2*time.Minute), Deliveries: one(r, 0, 0, 5), Server: one(r, config.OtherServer, config.LullServer),
		}
		if r.IntN(4) == 0 {
			s.Provides = []string{f.Dependencies[r.IntN(len(f.Dependencies))].Name}
		}
		for range r.IntN(4) {
			s.Calls = append(s.Calls, config.Edge{
				Dependency: f.Dependencies[r.IntN(len(f.Dependencies))].Name, Times: one(r, 0, 0, 3), Parallel: one(r, "", "", "page"),
			})
		}
		f.Services = append(f.Services, s)
	}
	return f
}

// findings are those of a file that was made in code.
func findings(f *config.PolicyFile) []Finding {
	p := &pass{units: []*unit{{name: "code", policy: f, place: func(string) (int, int) { return 0, 0 }}}}
	p.run()
	return p.findings
}
