//go:build lab

package battery

import (
	"slices"
	"testing"
)

// slow are the worlds that the lab flies beside some: with them there is one of every family.
var slow = []string{
	"to200ms-p100-l0.8-stall10", "to10s-p1-l0.8-stall30", "logn2-p100-brown20", "pareto-p1-stall10",
	"q100-p100-stall10", "q1000000-p1-stall10", "cancel-p100-stall10", "bh60-at1s-p100-cancel", "crash60-p100",
	"errors60-p1", "stall60-p100", "brown60-30s-p100", "slow75-30s-p1", "cold20w60-p100", "flap-errors2of10-p1",
	"flap-stall5of20-p100", "sick1of20-p100-at500ms", "rl-const1.2x-hint2s-p100", "rl-spike3x60-hint0s-p1",
	"spike3x60-p100", "bursts2x3s-p1", "diurnal-p100-stall10", "reload-p100-stall10", "layers2-one1-p1-w200",
	"fleet-p1000-stall10", "mixed-p100-stall10", "dear-p100-blip", "pool-http-p1-blip", "pool-sql-p100-brown20",
	"narrow-p100-stall10", "gc-l0.8-p1-spike3x10", "gc-p100-q500-stall10", "cache-r500-p100-flush100",
	"choose3-p100-stall1", "choose3-p1-stall10",
}

func init() {
	more = func(t *testing.T) []World { return slices.Concat(worldsNamed(t, Quick, slow...), gridPart(t)) }
}

// gridPart returns cells of the grid, with fleets of up to 100,000, watched for as long as clients
// without retries need. Each outage befalls a small and a large fleet, and each fleet meets an outage.
func gridPart(t *testing.T) []World {
	z := Full
	z.After, z.Peace = 200*s, Quick.Peace
	return worldsNamed(t, z,
		"grid-stall800ms-l0.95-p100", "grid-stall800ms-l0.95-p1000",
		"grid-stall10s-l0.95-p1", "grid-stall10s-l0.95-p10000",
		"grid-errors10s-l0.9-p100", "grid-errors10s-l0.9-p100000")
}
