package preset_test

import (
	"testing"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/preset"
)

// A key whose calls all fail has a retry at least every 34 s, and never two within 30 s, whenever it is asked for.
func TestPerKeyRetriesOnceInHalfAMinute(t *testing.T) {
	b := must.Have(budget.New(preset.PerKey().Budget))
	var granted []time.Duration
	for now := time.Duration(0); now < 24*time.Hour; now += 70 * time.Millisecond {
		if b.Withdraw(now, budget.Transient, func() uint64 { return 0 }).OK {
			granted = append(granted, now)
		}
	}
	for i, at := range granted[1:] {
		if apart := at - granted[i]; apart < 30*time.Second || apart > 34*time.Second {
			t.Fatalf("two retries %v apart", apart)
		}
	}
}
