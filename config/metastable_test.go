package config

import (
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/sim"
)

// naive makes three retries with full jitter and no budget.
var naive = sim.Contender{Name: "naive", Policy: lull.Policy{
	Backoff:  backoff.Schedule{},
	Attempts: 4, Timeouts: lull.TimeoutsAlways, Deadline: lull.NoTimeout,
	Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
}}

// The three published cases of metastable failure (Huang et al., "Metastable Failures in the Wild",
// OSDI 2022), and the blip of 200 ms that becomes half an hour. Each has a trigger that is too small,
// a load that is too low, and something that ends it. docs/study.md has the figures.
func TestMetastableFailures(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: long flights on one goroutine, the same every time")
	}
	const (
		cut      = "fleets.0.arrivals.ramp=[{at: 100s, factor: 1}, {at: 100s, factor: %}, {at: $, factor: %}, {at: $, factor: 1}]"
		afterGC  = "fleets.0.arrivals.ramp=[{at: 60s, factor: 1}, {at: 60s, factor: 3}, {at: 70s, factor: 3}, {at: 70s, factor: 1}, {at: 150s, factor: 1}, {at: 150s, factor: %}, {at: 210s, factor: %}, {at: 210s, factor: 1}]"
		connects = "blip-half-hour"
	)
	lowered := func(ramp, factor, until string) string {
		return strings.NewReplacer("%", factor, "$", until).Replace(ramp)
	}
	for _, c := range []struct {
		scenario string
		policy   sim.Contender
		horizon  string
		set      []string
		back     bool
	}{
		// Retries: a stall, and more attempts than the service can do.
		{"metastable-stall", naive, "300s", nil, false},
		{"metastable-stall", sim.None(), "300s", nil, true},
		{"metastable-stall", naive, "300s", []string{"services.0.faults.0.for=500ms"}, true},
		{"metastable-stall", naive, "400s", []string{"fleets.0.arrivals.rate=220"}, true},
		{"metastable-stall", naive, "300s", []string{"fleets.0.arrivals.rate=280"}, false},
		{"metastable-stall", naive, "300s", []string{lowered(cut, "0.5", "160s")}, false},
		{"metastable-stall", naive, "300s", []string{lowered(cut, "0.1", "160s")}, true},

		// Garbage collection: a spike, and a queue that takes capacity away.
		{"metastable-gc", sim.None(), "360s", nil, false},
		{"metastable-gc", sim.None(), "360s", []string{"services.0.heap={}"}, true},
		{"metastable-gc", sim.None(), "360s", []string{"fleets.0.arrivals.ramp.2.at=63s", "fleets.0.arrivals.ramp.3.at=63s"}, true},
		{"metastable-gc", sim.None(), "360s", []string{"fleets.0.arrivals.rate=550"}, true},
		{"metastable-gc", sim.None(), "360s", []string{"fleets.0.arrivals.rate=700"}, false},
		{"metastable-gc", sim.None(), "360s", []string{lowered(afterGC, "0.5", "")}, true},
		{"metastable-gc", sim.None(), "360s", []string{lowered(afterGC, "0.8", "")}, false},
		{"metastable-gc", lulls, "360s", nil, true},

		// Look-aside cache: it is lost, and the database is too slow to fill it.
		{"metastable-cache", sim.None(), "360s", nil, false},
		{"metastable-cache", sim.None(), "360s", []string{"services.0.faults.0.share=20%"}, true},
		{"metastable-cache", sim.None(), "360s", []string{"services.0.faults.0.share=50%"}, false},
		{"metastable-cache", sim.None(), "360s", []string{"fleets.0.arrivals.rate=180"}, true},
		{"metastable-cache", sim.None(), "360s", []string{"fleets.0.arrivals.rate=280"}, false},
		{"metastable-cache", sim.None(), "360s", []string{"services.1.queue.limit=80"}, true},
		{"metastable-cache", lulls, "360s", nil, true},

		// Connections: a restart, and handshakes that cost more than calls.
		{connects, naive, "300s", nil, false},
		{connects, sim.None(), "300s", nil, true},
		{connects, lulls, "300s", nil, true},
		{connects, naive, "300s", []string{"fleets.0.network.pool={}"}, true},
		{connects, naive, "300s", []string{"services.0.faults.0.kind=errors"}, true},
		{connects, naive, "300s", []string{"services.0.faults.0.kind=errors", "services.0.faults.0.share=9%"}, true},
		{connects, naive, "300s", []string{"services.0.faults.0.kind=stall"}, true},
		{connects, naive, "300s", []string{"services.0.connections.handshake=3ms"}, true},
		{connects, naive, "300s", []string{"fleets.0.arrivals.rate=140"}, true},
		{connects, naive, "300s", []string{"fleets.0.processes=50"}, true},
		{connects, naive, "360s", []string{lowered(cut, "0", "220s")}, true}, // two minutes
		{connects, naive, "300s", []string{lowered(cut, "0", "101s")}, false},
	} {
		s := studied(t, c.scenario)
		for _, assignment := range append([]string{"horizon=" + c.horizon}, c.set...) {
			if err := Set(&s, assignment); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			r, err := sim.Run(t.Context(), s, c.policy, sim.Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if r.Recovery.Recovered != c.back {
				t.Errorf("%s, %q: back is %v, want %v (%+v)", c.policy.Name, c.set, r.Recovery.Recovered, c.back, r.Recovery)
			}
		})
	}
}

// lulls is the zero policy.
var lulls = sim.Contender{Name: "lull"}
