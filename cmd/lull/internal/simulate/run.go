package simulate

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/lab/sim"
)

// An outcome is the result of a simulation.
type outcome struct {
	simulation
	interrupted bool
	results     [][]sim.Summary // of each cell, without the runs that had not begun when interrupted
}

func (o outcome) swept() bool { return len(o.axes) > 0 }

// totalProgress is the progress of all runs together.
type totalProgress struct {
	done, runs int
	share      float64 // of all the virtual time, 0 to 1
	events     int64
}

// line returns a line for people, after that time.
func (h totalProgress) line(took time.Duration) string {
	text := fmt.Sprintf("simulating: %4.1f %%, %d of %d runs, %s events/s", 100*h.share, h.done, h.runs,
		abbreviated(float64(h.events)/cmp.Or(took.Seconds(), 1)))
	if h.share > 0.01 && h.share < 1 {
		left := time.Duration((1 - h.share) / h.share * float64(took))
		text += fmt.Sprintf(", %s left", inWords(left.Round(time.Second)))
	}
	return text
}

// A unit is one run: of a cell, a contender and a seed.
type unit struct{ cell, contender, seed int }

// units returns all runs, in the order of the results.
func (s simulation) units() (all []unit) {
	for i, c := range s.cells {
		for k := range c.contenders {
			for seed := range s.seeds {
				all = append(all, unit{i, k, seed})
			}
		}
	}
	return all
}

// cellOf returns what package cells flies for a unit.
func (s simulation) cellOf(u unit) cells.Cell {
	w := s.cells[u.cell]
	c := cells.Cell{
		Wanted: cells.Run, Scenario: w.scenario, Contender: w.contenders[u.contender].data(), Named: s.named,
		Seed: s.seed + uint64(u.seed),
	}
	if len(s.axes) > 0 {
		c.Wanted = cells.Totals // so that a sweep of many cells needs little memory
	}
	return c
}

// run simulates every cell, some of them side by side. It calls show with the progress,
// one call at a time. When ctx ends it returns what was computed until then, marked as
// interrupted.
func (s simulation) run(ctx context.Context, show func(totalProgress)) (outcome, error) {
	// A run keeps what it allocates until it ends. So there is little to collect, and each
	// collection looks at everything.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	o := outcome{simulation: s, results: make([][]sim.Summary, len(s.cells))}
	units := s.units()
	var mine []int
	var fly []cells.Cell
	for i, u := range units {
		if s.where.Mine(i) {
			mine = append(mine, i)
			fly = append(fly, s.cellOf(u))
		}
	}
	results := make([]sim.Result, len(units))
	sum := tally{of: make([]sim.Progress, len(fly)), totals: totalProgress{runs: len(fly)}, show: show}
	err := s.where.Fly(ctx, fly, cells.Watcher{
		Done:     func(i int, r cells.Result) { results[mine[i]] = *r.Run; sum.done(i, r.Run) },
		Progress: sum.set,
	})
	if err != nil && ctx.Err() == nil {
		return o, err
	}
	o.interrupted = err != nil
	next := results
	for i, c := range s.cells {
		for _, of := range c.contenders {
			if m := sim.Summarize(of.Contender, haveBegun(next[:s.seeds])); len(m.Results) > 0 {
				o.results[i] = append(o.results[i], m)
			}
			next = next[s.seeds:]
		}
	}
	return o, nil
}

// haveBegun returns the results without those of runs that were stopped before they began.
func haveBegun(all []sim.Result) []sim.Result {
	return slices.DeleteFunc(slices.Clone(all), func(r sim.Result) bool { return r.End == 0 })
}

// runs returns how many there are in all.
func (s simulation) runs() int { return len(s.units()) }

// A tally adds up the progress of runs.
type tally struct {
	of     []sim.Progress // each
	totals totalProgress
	show   func(totalProgress)
}

func (t *tally) set(i int, p sim.Progress) {
	share := func(p sim.Progress) float64 { return float64(p.Now) / float64(max(p.Horizon, 1)) / float64(len(t.of)) }
	t.totals.share += share(p) - share(t.of[i])
	t.totals.events += p.Events - t.of[i].Events
	t.of[i] = p
	t.show(t.totals)
}

func (t *tally) done(i int, r *sim.Result) {
	t.totals.done++
	t.set(i, sim.Progress{Now: 1, Horizon: 1, Events: r.Totals.Events})
}
