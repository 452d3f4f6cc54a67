package battery

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// some are the worlds of the battery that take no more than a tenth of a second.
var some = []string{
	"w1-p1-stall10", "w10-p100-stall10", "w10-p100-brown10", "bimodal-p100-peace", "bh300-at10s-p1-r50-cancel",
	"bh300-at10s-p100-r50-cancel", "bh300-at10s-p100-r5-cancel", "gw30-p1-r50-504in5s", "gw300-p100-r50-504in5s",
	"sick1of3-p100-at500ms", "sickerr1of3-p1", "peace-loss0.01-r50-p1", "peace-loss0.05-r50-p100", "seq-loss0.01",
	"tight-timeout-p100", "peace-err0.1-r50-p1", "peace-err0.1-r50-p100", "peace-err0.2-r50-p10",
	"peace-err0.3-r50-p1", "peace-err0.3-r50-p10", "seq-err0.2", "cli10calls-err0.2",
	"slowok5s-err0.3-bursts4sper60-p10", "slowok5s-err0.1-batch100-p1", "llm", "maintenance-r100-p100",
	"maintenance-r10-p1", "cron60-p1000-stall10", "peace-err0.01-r800-p1", "peace-err0.01-r800-p1000",
	"low-r0.5-p1-errors60", "low-r5-p100-stall20", "minute-p600-errors60", "cache-p100-q80-flush100",
	"drift10-p100", "turn-quick-slow-p100", "ramp90-p100", "jobs-p200-err0.2", "hole1of2-p100", "alone-r10-to1s-hang30",
	"blips-stall2s-p1", "rare-p1000-stall1of20", "callers1x60-stall10",
}

// lab reports whether this is the lab, which flies slow and large as well.
var lab bool

// slow are worlds of every other family.
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

// large are cells of the grid, with fleets of up to 100,000. Each outage befalls a small and a large fleet, and each fleet
// meets an outage.
var large = []string{
	"grid-stall800ms-l0.95-p100", "grid-stall800ms-l0.95-p1000", "grid-stall10s-l0.95-p1", "grid-stall10s-l0.95-p10000",
	"grid-errors10s-l0.9-p100", "grid-errors10s-l0.9-p100000",
}

var printed = flag.Bool("shortfalls", false, "print the shortfalls of the part, for known_test.go")

// The zero Policy meets every demand in a part of the battery, but for the shortfalls that are
// known. One that is known and not there any more is to be struck from the list.
func TestPart(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: hundreds of simulations, each on one goroutine")
	}
	p := Plan{Worlds: worldsNamed(t, Quick, some...), Judged: sim.Contender{Name: "lull", Policy: lull.Policy{}}, Seeds: 1}
	if lab {
		long := Full // watched for as long as clients without retries need
		long.After, long.Peace = 200*s, Quick.Peace
		p.Worlds = slices.Concat(p.Worlds, worldsNamed(t, Quick, slow...), worldsNamed(t, long, large...))
	}
	for _, name := range Rivals[1:6] {
		c := must.Have(Preset(name))
		p.Rivals = append(p.Rivals, c)
	}
	flown := must.Have(Fly(context.Background(), p))
	found := make([]bool, len(knownShortfalls))
	for i := range flown {
		for _, s := range flown[i].Shortfalls() {
			if *printed {
				fmt.Printf("\t{%q, %s, \"\"}, // %s\n", s.World, strings.ToUpper(string(s.Demand[:1]))+string(s.Demand[1:]), s.Text)
			}
			k := slices.IndexFunc(knownShortfalls, func(k known) bool { return k.world == s.World && k.demand == s.Demand })
			if k < 0 {
				t.Errorf("%s: %s: %s", s.World, s.Demand, s.Text)
				continue
			}
			found[k] = true
		}
	}
	for i, k := range knownShortfalls {
		here := slices.ContainsFunc(p.Worlds, func(w World) bool { return w.Name == k.world })
		if here && !found[i] {
			t.Errorf("%s: %s: known as a shortfall (%s), and not there: strike it from known_test.go", k.world, k.demand, k.why)
		}
	}
}
