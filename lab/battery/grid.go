package battery

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// A cell is one outage that befalls one fleet of the grid: one service, flown at every load,
// with every fleet and every outage, when lull's first defaults were chosen.
type cell struct {
	load      float64 // share of what the service can do
	processes int
	outage    string
	long      time.Duration
}

const spiked = "spike" // 2,500 calls/s arrive

var (
	gridLoads   = []float64{0.2, 0.5, 0.8, 0.9, 0.95}
	gridFleets  = []int{1, 100, 1_000, 10_000, 100_000}
	gridOutages = []string{sim.Stall.String(), sim.BrownOut.String(), spiked, sim.Errors.String()}
	// Some lengths are about as long as an attempt may take. They fill the line just so far
	// that the answers come too late; half of the calls may go on failing for ever then,
	// with retries that keep it so.
	gridLengths = []time.Duration{
		200 * ms, 500 * ms, 800 * ms, 1 * s, 1200 * ms, 1500 * ms, 2 * s, 5 * s, 10 * s, 30 * s,
	}
)

// cells returns those of the grid: a part of them, or all thousand.
func cells(whole bool) []cell {
	var all []cell
	for _, n := range gridFleets {
		if !whole {
			for _, load := range []float64{0.2, 0.8, 0.95} {
				all = append(all, cell{load, n, "stall", 10 * s})
			}
			all = append(all, cell{0.95, n, "stall", 800 * ms}, cell{0.8, n, "stall", 1 * s}, cell{0.8, n, "brown-out", 5 * s},
				cell{0.95, n, spiked, 2 * s}, cell{0.9, n, "errors", 10 * s})
			continue
		}
		for _, load := range gridLoads {
			for _, o := range gridOutages {
				for _, d := range gridLengths {
					all = append(all, cell{load, n, o, d})
				}
			}
		}
	}
	return all
}

func (c cell) name() string {
	return fmt.Sprintf("grid-%s%v-l%v-p%d", c.outage, c.long, c.load, c.processes)
}

func (c cell) parts() []part {
	rate := 1000 * c.load
	parts := []part{api(rate, c.processes), within(c.within())}
	switch c.outage {
	case spiked:
		return append(parts, spike(2500/rate, c.long))
	case "brown-out":
		return append(parts, fault(sim.BrownOut, c.long)) // a tenth of the workers is left
	case "errors":
		return append(parts, fault(sim.Errors, c.long))
	}
	return append(parts, fault(sim.Stall, c.long))
}

// within is how soon the zero Policy is back. Larger fleets are held to what clients without
// retries take.
func (c cell) within() time.Duration {
	switch {
	case c.processes <= 100:
		return 15 * s
	case c.processes <= 1000:
		return 25 * s
	case c.processes <= 10_000:
		return 60 * s
	}
	return 0
}
