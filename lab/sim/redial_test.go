package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
)

// herd is the scenario reconnect-herd, with a tenth of its clients: a gateway that admits a
// twentieth of them a second.
func herd(clients int) Scenario {
	return Scenario{
		Horizon:  4 * time.Minute,
		Services: []Service{{Name: "gateway", Time: fixed(20 * millisecond), Rate: Rate{PerSecond: 5_000, Burst: 5_000, RetryAfter: 10 * time.Second}}},
		Fleets:   []Fleet{{Calls: "gateway", Processes: clients, Arrivals: Arrivals{Kind: AtOnce, At: time.Second, Within: 500 * millisecond}, Redial: true}},
	}
}

// All clients are connected again: of 100,000 the last by 30 s, where 20 s is the least possible, with no
// more than 1.5 dials each. The herd may be three times as large, or hardly one. Nobody stays away.
func TestAHerdIsServed(t *testing.T) {
	sizes := map[int64]time.Duration{1_000: 17 * time.Second, 100_000: 30 * time.Second}
	if long {
		sizes[300_000] = 2 * time.Minute
	}
	for clients, most := range sizes {
		r := play(t, herd(int(clients)), lull.Policy{}).Totals
		if r.Calls != clients || r.Succeeded != clients || r.Attempts-r.Retries != clients || r.Last > most {
			t.Errorf("%d of %d are connected, with %d first attempts, the last at %v", r.Succeeded, clients, r.Attempts-r.Retries, r.Last)
		}
		if clients == 100_000 && r.Amplification > 1.5 {
			t.Errorf("%.2f dials each", r.Amplification)
		}
	}
}

// A connection that is lost again every ten seconds has not lasted: the waits grow.
func TestConnectionsThatDieYoung(t *testing.T) {
	s := herd(100)
	s.Fleets[0].Arrivals = Arrivals{Kind: Periodic, Every: 10 * time.Second}
	s.Fleets[0].Redial = true
	r := play(t, s, lull.Policy{})
	if r.Totals.Succeeded == 0 || r.Latency.P50 < time.Second {
		t.Errorf("%d are connected again, half of them within %v", r.Totals.Succeeded, r.Latency.P50)
	}
}

// While the circuit is open nobody dials, and nobody asks again before it may let a probe pass, as
// with package redial.
func TestRedialWaitsForAnOpenCircuit(t *testing.T) {
	s := herd(1)
	s.Horizon = 10 * time.Hour
	s.Services[0].Faults = []Fault{{Kind: Errors, For: s.Horizon}}
	r := play(t, s, lull.Policy{Breaker: breaker.Config{Consecutive: 1, OpenFor: time.Hour, OpenMax: time.Hour}})
	if r.Totals.Attempts < 5 || r.Totals.Events > 10*r.Totals.Attempts {
		t.Errorf("%d dials, %d events in ten hours", r.Totals.Attempts, r.Totals.Events)
	}
}
