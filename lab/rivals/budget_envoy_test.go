package rivals

import (
	"testing"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
)

func TestEnvoyConcurrencyCases(t *testing.T) {
	var v struct {
		Cases []struct {
			Pct                               float64
			Min, Active, Pending, Outstanding int
			Allow                             bool
		}
	}
	vectors(t, "testdata/envoy_retry_budget.json", &v)
	check.Equal(t, len(v.Cases), 6, "cases")
	for i, c := range v.Cases {
		b := &envoyConcurrency{cfg: EnvoyConfig{Percent: c.Pct, MinConcurrency: c.Min}}
		for range c.Active + c.Pending {
			b.Start(0)
		}
		for n := range c.Outstanding {
			if !b.Withdraw(0, budget.Transient, never).OK {
				t.Errorf("case %d: refused with %d retries outstanding of %d", i, n, c.Outstanding)
			}
		}
		check.Equal(t, b.Withdraw(0, budget.Transient, never).OK, c.Allow, "case %d %+v", i, c)
	}
}

// The percentage is cut off, not rounded; and what ends makes room, or takes it.
func TestEnvoyCountsWhatIsUnderWay(t *testing.T) {
	b := &envoyConcurrency{cfg: EnvoyConfig{Percent: 25}}
	for range 7 { // 1.75
		b.Start(0)
	}
	g := b.Withdraw(0, budget.Transient, never)
	if !g.OK || b.Withdraw(0, budget.Transient, never).OK {
		t.Error("want exactly one retry at a limit of 1.75")
	}
	b.Start(0)
	if !b.Withdraw(0, budget.Transient, never).OK {
		t.Error("want a second retry at a limit of 2")
	}
	b.Done(0, true, 0, 0)
	b.Release(0, 0) // nothing was paid: nothing is over
	b.Release(0, g.Receipt)
	check.Equal(t, b.Balance(0), 0, "balance with one retry at a limit of 1.75")
	b.Release(0, g.Receipt)
	b.Release(0, g.Receipt) // once too often
	check.Equal(t, b.Balance(0), 1, "balance")
}
