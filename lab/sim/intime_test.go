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

// After a stall the line is long: all calls succeed, and for a while none of them in time.
func TestRecoveryInTime(t *testing.T) {
	s := Scenario{
		Horizon: 2 * time.Minute,
		Services: []Service{{Name: "api", Workers: 1, Queue: Queue{Limit: 10_000}, Time: Distribution{Mean: 10 * time.Millisecond},
			Faults: []Fault{{Kind: Stall, At: 30 * time.Second, For: 10 * time.Second}}}},
		Fleets: []Fleet{{Name: "users", Calls: "api", AttemptTimeout: time.Minute, Arrivals: Arrivals{Rate: 50}}},
	}
	of := func(in time.Duration) Recovery {
		return must.Have(Run(t.Context(), s, None(), Options{Seed: 1, InTime: in})).Recovery
	}
	if whole := of(0); !whole.Recovered || whole.Time > time.Second {
		t.Errorf("of all successes: %+v", whole)
	}
	if soon := of(time.Second); !soon.Recovered || soon.Time < 5*time.Second {
		t.Errorf("within a second: %+v", soon)
	}
}
