package rivals

import (
	"testing"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
)

func never() uint64 { panic("no draw was due") }

// Whatever pays, the first refusal after a grant is the one worth an event.
func TestBudgetsMarkTheEdge(t *testing.T) {
	for name, b := range map[string]budget.Budget{
		"aws":     Budget{AWS: AWSConfig{Capacity: 10, RetryCost: 10, TimeoutCost: 10, RateLimitedCost: 10}}.New(),
		"envoy":   Budget{Envoy: EnvoyConfig{MinConcurrency: 1}}.New(),
		"finagle": Budget{Finagle: FinagleConfig{TTL: 1e9, MinPerSecond: 1}}.New(),
	} {
		fill := func() {
			for range 2 {
				b.Start(2e9)
				b.Release(2e9, 1)
				b.Done(2e9, true, 10, 10)
			}
		}
		drain := func() {
			for n := 0; ; n++ {
				b.Failed(2e9)
				g := b.Withdraw(2e9, budget.Transient, never)
				if n > 9 || !g.OK {
					if n == 0 || n > 9 || !g.Exhausted {
						t.Errorf("%s: after %d grants: %+v, want a few grants and then Exhausted", name, n, g)
					}
					break
				}
			}
			for range 3 {
				check.Equal(t, b.Withdraw(2e9, budget.Transient, never), (budget.Grant{}), "%s: a further refusal", name)
			}
		}
		drain()
		if fill(); name != "finagle" { // earns by time alone here
			drain()
		}
		check.Equal(t, b.Balance(2e9), 0, "%s: balance when it refuses", name)
	}
}
