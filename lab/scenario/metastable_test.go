package scenario

import (
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// naive makes three retries with full jitter and no budget.
var naive = sim.Contender{Name: "naive", Policy: lull.Policy{
	Backoff:  backoff.Schedule{},
	Attempts: 4, Timeouts: lull.TimeoutsAlways, Deadline: lull.NoTimeout,
	Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
}}

// A metastable is a scenario with a policy, and whether calls succeed again afterwards.
type metastable struct {
	scenario string
	policy   sim.Contender
	horizon  string
	set      []string
	back     bool
}

// The three published cases of metastable failure (Huang et al., "Metastable Failures in the Wild",
// OSDI 2022), and the blip of 200 ms that becomes half an hour. Each has a trigger that is too small,
// a load that is too low, and something that ends it. lab/study/README.md has the figures.
func TestMetastableFailures(t *testing.T) {
	t.Parallel()
	flyMetastable(t, []metastable{
		// Retries: a stall, and more attempts than the service can do.
		{"metastable-stall", naive, "300s", nil, false},
		{"metastable-stall", sim.None(), "300s", nil, true},

		// Garbage collection: a spike, and a queue that takes capacity away.
		{"metastable-gc", sim.None(), "360s", nil, false},
		{"metastable-gc", sim.None(), "360s", []string{"services.0.heap={}"}, true},

		// Look-aside cache: it is lost, and the database is too slow to fill it.
		{"metastable-cache", sim.None(), "360s", nil, false},
		{"metastable-cache", sim.None(), "360s", []string{"services.0.faults.0.share=20%"}, true},

		// Connections: a restart, and handshakes that cost more than calls.
		{"blip-half-hour", naive, "300s", nil, false},
		{"blip-half-hour", sim.None(), "300s", nil, true},
	})
}

// flyMetastable flies scenarios, and compares whether they recover.
func flyMetastable(t *testing.T, cases []metastable) {
	for _, c := range cases {
		s := studied(t, c.scenario)
		for _, assignment := range append([]string{"horizon=" + c.horizon}, c.set...) {
			must.Succeed(Set(&s, assignment))
		}
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			r := must.Have(sim.Run(t.Context(), s, c.policy, sim.Options{Seed: 1}))
			check.Equal(t, r.Recovery.Recovered, c.back, "%s, %q: back (%+v)", c.policy.Name, c.set, r.Recovery)
		})
	}
}
