package engine_test

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/seed"
)

const ms = time.Millisecond

// plenty pays for every retry.
var plenty = budget.Config{Ratio: 4, Stock: 100}

var transient = engine.Verdict{Kind: engine.KindTransient, Code: "503"}

func newDependency(t testing.TB, p engine.Policy, opts ...lull.Option) *lull.Dependency {
	t.Helper()
	d, err := lull.NewDependency("payments", p, append([]lull.Option{lull.WithRand(seed.Source(t))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// begun is a call whose first attempt has begun.
func begun(t *testing.T, d *lull.Dependency, now time.Duration) engine.Call {
	t.Helper()
	c, step := d.State().Start(now, engine.Spec{})
	if step.Done || c.Attempt(now, nil).Done {
		t.Fatal("refused")
	}
	return c
}

// hedging makes up to n attempts, and nothing but its own rules bounds hedges.
func hedging(n int) engine.Policy {
	return engine.Policy{
		Hedge:   hedge.Config{Attempts: n, Delay: 10 * ms, Share: -1},
		Budget:  budget.Config{Unlimited: true},
		Breaker: breaker.Config{Off: true},
	}
}
