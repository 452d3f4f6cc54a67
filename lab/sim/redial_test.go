package sim

import (
	"strings"
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

// All clients are connected again, the last of them by 30 s, where 20 s is the least possible,
// with no more than 1.5 dials each.
func TestAHerdIsServed(t *testing.T) {
	r := play(t, herd(100_000), lull.Policy{})
	want(t, "calls", r.Totals.Calls, 100_000)
	want(t, "connected", r.Totals.Succeeded, 100_000)
	if r.Totals.Last > 30*time.Second || r.Totals.Amplification > 1.5 {
		t.Errorf("the last is connected at %v, with %.2f dials each", r.Totals.Last, r.Totals.Amplification)
	}
	if first := r.Totals.Attempts - r.Totals.Retries; first != 100_000 {
		t.Errorf("%d first attempts", first)
	}
}

// The herd may be five times as large, or hardly one. Nobody stays away.
func TestHerdsOfOtherSizes(t *testing.T) {
	sizes := map[int]time.Duration{1_000: 17 * time.Second, 20_000: 30 * time.Second}
	if long {
		sizes[300_000] = 2 * time.Minute
	}
	for clients, most := range sizes {
		r := play(t, herd(clients), lull.Policy{})
		if r.Totals.Succeeded != int64(clients) || r.Totals.Last > most {
			t.Errorf("%d of %d are connected, the last at %v", r.Totals.Succeeded, clients, r.Totals.Last)
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

func TestRedialIsOneConnection(t *testing.T) {
	s := herd(10)
	s.Fleets[0].Arrivals.Each = 2
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "Redial") {
		t.Error(err)
	}
	s = herd(10)
	s.Fleets[0].Arrivals = Arrivals{Kind: Closed, Each: 1}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "Redial") {
		t.Error(err)
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
