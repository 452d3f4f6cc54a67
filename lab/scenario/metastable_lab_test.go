//go:build lab

package scenario

import (
	"strings"
	"testing"

	"github.com/lullgo/lull/lab/sim"
)

// What triggers the failures of TestMetastableFailures, what sustains them and what ends them, each just below and just
// above the size that matters.
func TestMetastableFailuresInDetail(t *testing.T) {
	t.Parallel()
	const (
		cut      = "fleets.0.arrivals.ramp=[{at: 100s, factor: 1}, {at: 100s, factor: %}, {at: $, factor: %}, {at: $, factor: 1}]"
		afterGC  = "fleets.0.arrivals.ramp=[{at: 60s, factor: 1}, {at: 60s, factor: 3}, {at: 70s, factor: 3}, {at: 70s, factor: 1}, {at: 150s, factor: 1}, {at: 150s, factor: %}, {at: 210s, factor: %}, {at: 210s, factor: 1}]"
		connects = "blip-half-hour"
	)
	lowered := func(ramp, factor, until string) string {
		return strings.NewReplacer("%", factor, "$", until).Replace(ramp)
	}
	flyMetastable(t, []metastable{
		// Retries: a stall, and more attempts than the service can do.
		{"metastable-stall", naive, "300s", []string{"services.0.faults.0.for=500ms"}, true},
		{"metastable-stall", naive, "400s", []string{"fleets.0.arrivals.rate=220"}, true},
		{"metastable-stall", naive, "300s", []string{"fleets.0.arrivals.rate=280"}, false},
		{"metastable-stall", naive, "300s", []string{lowered(cut, "0.5", "160s")}, false},
		{"metastable-stall", naive, "300s", []string{lowered(cut, "0.1", "160s")}, true},

		// Garbage collection: a spike, and a queue that takes capacity away.
		{"metastable-gc", sim.None(), "360s", []string{"fleets.0.arrivals.ramp.2.at=63s", "fleets.0.arrivals.ramp.3.at=63s"}, true},
		{"metastable-gc", sim.None(), "360s", []string{"fleets.0.arrivals.rate=550"}, true},
		{"metastable-gc", sim.None(), "360s", []string{"fleets.0.arrivals.rate=700"}, false},
		{"metastable-gc", sim.None(), "360s", []string{lowered(afterGC, "0.5", "")}, true},
		{"metastable-gc", sim.None(), "360s", []string{lowered(afterGC, "0.8", "")}, false},
		{"metastable-gc", lulls, "360s", nil, true},

		// Look-aside cache: it is lost, and the database is too slow to fill it.
		{"metastable-cache", sim.None(), "360s", []string{"services.0.faults.0.share=50%"}, false},
		{"metastable-cache", sim.None(), "360s", []string{"fleets.0.arrivals.rate=180"}, true},
		{"metastable-cache", sim.None(), "360s", []string{"fleets.0.arrivals.rate=280"}, false},
		{"metastable-cache", sim.None(), "360s", []string{"services.1.queue.limit=80"}, true},
		{"metastable-cache", lulls, "360s", nil, true},

		// Connections: a restart, and handshakes that cost more than calls.
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
	})
}

// lulls is the zero policy.
var lulls = sim.Contender{Name: "lull"}
