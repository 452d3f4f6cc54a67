package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// As many calls are in time as succeed within it; without a time none is counted.
func TestInTime(t *testing.T) {
	s := Scenario{
		Horizon:  20 * time.Second,
		Services: []Service{{Name: "api", Time: Distribution{Kind: Uniform, Min: 10 * time.Millisecond, Max: 30 * time.Millisecond}}},
		Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Rate: 500}}},
	}
	last := int64(0)
	for _, in := range []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond} {
		got := must.Have(Run(t.Context(), s, None(), Options{Seed: 1, InTime: in})).Totals
		share := float64(got.InTime) / float64(got.Succeeded)
		if want := max(in-10*time.Millisecond, 0).Seconds() / 0.02; share < want-0.03 || share > want+0.03 || got.InTime < last {
			t.Errorf("%v: %d of %d", in, got.InTime, got.Succeeded)
		}
		last = got.InTime
	}
}
