package battery

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull"
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

// more returns worlds of every other family, and cells of the grid. It is nil but in the lab.
var more func(*testing.T) []World

var update = flag.Bool("shortfalls", false, "print the shortfalls of the part, for known.go")

// The zero Policy meets every demand in a part of the battery, but for the shortfalls that are
// known. One that is known and not there any more is to be struck from the list.
func TestPart(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: hundreds of simulations, each on one goroutine")
	}
	p := Plan{Worlds: worldsNamed(t, Quick, some...), Judged: sim.Contender{Name: "lull", Policy: lull.Policy{}}, Seeds: 1}
	if more != nil {
		p.Worlds = append(p.Worlds, more(t)...)
	}
	for _, name := range Rivals[1:6] {
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
	found := make([]bool, len(KnownShortfalls))
	for i := range flown {
		for _, s := range flown[i].Shortfalls() {
			if *update {
				fmt.Printf("\t{%q, %s, \"\"}, // %s\n", s.World, strings.ToUpper(string(s.Demand[:1]))+string(s.Demand[1:]), s.Text)
			}
			k := slices.IndexFunc(KnownShortfalls, func(k Known) bool { return k.World == s.World && k.Demand == s.Demand })
			if k < 0 {
				t.Errorf("%s: %s: %s", s.World, s.Demand, s.Text)
				continue
			}
			found[k] = true
		}
	}
	for i, k := range KnownShortfalls {
		here := slices.ContainsFunc(p.Worlds, func(w World) bool { return w.Name == k.World })
		if here && !found[i] {
			t.Errorf("%s: %s: known as a shortfall (%s), and not there: strike it from known.go", k.World, k.Demand, k.Why)
		}
	}
}
