package battery

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/sim"
)

// some are what go test flies: worlds that take little time, from every family.
var some = []string{
	"to200ms-p100-l0.8-stall10", "to10s-p1-l0.8-stall30",
	"w1-p1-stall10", "w10-p100-stall10", "w10-p100-brown10",
	"logn2-p100-brown20", "pareto-p1-stall10", "bimodal-p100-peace",
	"q100-p100-stall10", "q1000000-p1-stall10", "cancel-p100-stall10",
	"bh60-at1s-p100-cancel", "bh300-at10s-p1-r50-cancel", "bh300-at10s-p100-r50-cancel", "bh300-at10s-p100-r5-cancel",
	"gw30-p1-r50-504in5s", "gw300-p100-r50-504in5s",
	"crash60-p100", "errors60-p1", "stall60-p100",
	"brown60-30s-p100", "slow75-30s-p1",
	"cold20w60-p100",
	"flap-errors2of10-p1", "flap-stall5of20-p100",
	"sick1of3-p100-at500ms", "sickerr1of3-p1", "sick1of20-p100-at500ms",
	"peace-loss0.01-r50-p1", "peace-loss0.05-r50-p100", "seq-loss0.01", "tight-timeout-p100",
	"peace-err0.1-r50-p1", "peace-err0.1-r50-p100", "peace-err0.2-r50-p10", "peace-err0.3-r50-p1", "peace-err0.3-r50-p10", "seq-err0.2", "cli10calls-err0.2",
	"slowok5s-err0.3-bursts4sper60-p10", "slowok5s-err0.1-batch100-p1", "llm",
	"rl-const1.2x-hint2s-p100", "rl-spike3x60-hint0s-p1",
	"maintenance-r100-p100", "maintenance-r10-p1",
	"spike3x60-p100", "bursts2x3s-p1", "diurnal-p100-stall10", "cron60-p1000-stall10",
	"reload-p100-stall10",
	"layers2-one1-p1-w200",
	"peace-err0.01-r800-p1", "peace-err0.01-r800-p1000",
	"fleet-p1000-stall10", "low-r0.5-p1-errors60", "low-r5-p100-stall20", "minute-p600-errors60",
	"mixed-p100-stall10",
	"dear-p100-blip", "pool-http-p1-blip", "pool-sql-p100-brown20", "narrow-p100-stall10",
	"gc-l0.8-p1-spike3x10", "gc-p100-q500-stall10",
	"cache-r500-p100-flush100", "cache-p100-q80-flush100",
	"choose3-p100-stall1", "choose3-p1-stall10",
}

// raced is set when the race detector is on.
var raced bool

var update = flag.Bool("shortfalls", false, "print the shortfalls of the part, for known.go")

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

// The zero Policy meets every demand in a part of the battery, but for the shortfalls that are
// known. One that is known and not there any more is to be struck from the list.
func TestPart(t *testing.T) {
	if raced {
		t.Skip("hundreds of flights: too many under the race detector")
	}
	p := Plan{Worlds: append(worldsNamed(t, Quick, some...), gridPart(t)...), Ours: sim.Contender{Name: "lull", Policy: lull.Policy{}}, Seeds: 1}
	for _, name := range []string{"aws-standard-2.1", "breaker-5s"} {
		c, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		p.Rivals = append(p.Rivals, c)
	}
	flown, err := Fly(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	left := slices.Clone(KnownShortfalls)
	for i := range flown {
		for _, s := range flown[i].Shortfalls() {
			if *update {
				fmt.Printf("\t{%q, %s, \"\"}, // %s\n", s.World, strings.ToUpper(string(s.Demand[:1]))+string(s.Demand[1:]), s.Text)
			}
			k := slices.IndexFunc(left, func(k Known) bool { return k.World == s.World && k.Demand == s.Demand })
			if k < 0 {
				t.Errorf("%s: %s: %s", s.World, s.Demand, s.Text)
				continue
			}
			left = slices.Delete(left, k, k+1)
		}
	}
	for _, k := range left {
		t.Errorf("%s: %s: known as a shortfall (%s), and not there: strike it from known.go", k.World, k.Demand, k.Why)
	}
}
