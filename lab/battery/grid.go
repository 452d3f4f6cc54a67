package battery

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

var (
	gridLoads   = []float64{0.2, 0.5, 0.8, 0.9, 0.95} // shares of what the service can do
	gridFleets  = []int{1, 100, 1_000, 10_000, 100_000}
	gridOutages = []string{"stall", "brown-out", "spike", "errors"}
	// Some lengths are about as long as an attempt may take. They fill the line just so far
	// that the answers come too late; half of the calls may go on failing for ever then,
	// with retries that keep it so.
	gridLengths = []time.Duration{
		200 * ms, 500 * ms, 800 * ms, 1 * s, 1200 * ms, 1500 * ms, 2 * s, 5 * s, 10 * s, 30 * s,
	}
	// gridWithin is how soon the zero Policy is back. The largest fleet is held to what clients without retries take.
	gridWithin = map[int]time.Duration{1: 15 * s, 100: 15 * s, 1_000: 25 * s, 10_000: 60 * s}
)

// grid is one service, flown at every load, with every fleet and every outage, when lull's first defaults were chosen: a
// part of these worlds, or all thousand.
func grid(z Size, add func(string, ...part)) {
	for _, n := range gridFleets {
		cell := func(outage string, long time.Duration, load float64) {
			rate := 1000 * load
			trouble := map[string]part{
				"stall": fault(sim.Stall, long), "errors": fault(sim.Errors, long),
				"brown-out": fault(sim.BrownOut, long), // a tenth of the workers is left
				"spike":     spike(2500/rate, long),    // 2,500 calls/s arrive
			}[outage]
			add(fmt.Sprintf("grid-%s%v-l%v-p%d", outage, long, load, n), api(rate, n), within(gridWithin[n]), trouble)
		}
		if !z.Whole {
			for _, load := range []float64{0.2, 0.8, 0.95} {
				cell("stall", 10*s, load)
			}
			cell("stall", 800*ms, 0.95)
			cell("stall", 1*s, 0.8)
			cell("brown-out", 5*s, 0.8)
			cell("spike", 2*s, 0.95)
			cell("errors", 10*s, 0.9)
			continue
		}
		for _, load := range gridLoads {
			for _, outage := range gridOutages {
				for _, long := range gridLengths {
					cell(outage, long, load)
				}
			}
		}
	}
}
