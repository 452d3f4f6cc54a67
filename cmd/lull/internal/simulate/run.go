package simulate

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

type outcome struct {
	simulation
	interrupted bool
	results     [][]sim.Summary // of each cell, without the runs that had not begun when interrupted
}

func (o outcome) swept() bool { return len(o.axes) > 0 }

func (s simulation) flights() (all []cells.Cell) {
	wanted := cells.Run
	if len(s.axes) > 0 {
		wanted = cells.Totals // so that a sweep of many cells needs little memory
	}
	for _, w := range s.cells {
		for _, c := range w.contenders {
			for seed := range s.seeds {
				all = append(all, cells.Cell{Wanted: wanted, Scenario: w.scenario, Contender: c.data(), Named: s.named, Seed: s.seed + uint64(seed)})
			}
		}
	}
	return all
}

func (s simulation) runs() int { return len(s.flights()) }

// run simulates every cell, some of them side by side, and shows the progress. When ctx ends it returns what was computed
// until then, marked as interrupted.
func (s simulation) run(ctx context.Context, p *term.Progress) (outcome, error) {
	// A run keeps what it allocates until it ends. So there is little to collect, and each
	// collection looks at everything.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	o := outcome{simulation: s, results: make([][]sim.Summary, len(s.cells))}
	all := s.flights()
	fly, at := cells.OfPart(s.where, all)
	sum := tally{of: make([]sim.Progress, len(fly))}
	set := func(i int, now sim.Progress) {
		sum.set(i, now)
		p.Show(sum.line)
	}
	results := make([]sim.Result, len(all))
	err := s.where.Fly(ctx, fly, cells.Watcher{
		Done: func(i int, r cells.Result) {
			results[at[i]] = *r.Run
			sum.done++
			set(i, sim.Progress{Now: 1, Horizon: 1, Events: r.Run.Totals.Events})
		},
		Progress: set,
	})
	if err != nil && ctx.Err() == nil {
		return o, err
	}
	o.interrupted = err != nil
	for i, c := range s.cells {
		for _, of := range c.contenders {
			if m := sim.Summarize(of.Contender, haveBegun(results[:s.seeds])); len(m.Results) > 0 {
				o.results[i] = append(o.results[i], m)
			}
			results = results[s.seeds:]
		}
	}
	return o, nil
}

func haveBegun(all []sim.Result) []sim.Result {
	return slices.DeleteFunc(slices.Clone(all), func(r sim.Result) bool { return r.End == 0 })
}

type tally struct {
	of     []sim.Progress // each
	done   int            // runs
	share  float64        // of all the virtual time, 0 to 1
	events int64
}

func (t *tally) set(i int, p sim.Progress) {
	share := func(p sim.Progress) float64 { return float64(p.Now) / float64(max(p.Horizon, 1)) / float64(len(t.of)) }
	t.share += share(p) - share(t.of[i])
	t.events += p.Events - t.of[i].Events
	t.of[i] = p
}

func (t *tally) line(took time.Duration) string {
	text := fmt.Sprintf("simulating: %4.1f %%, %d of %d runs, %s events/s", 100*t.share, t.done, len(t.of),
		abbreviated(float64(t.events)/cmp.Or(took.Seconds(), 1)))
	if t.share > 0.01 && t.share < 1 {
		left := time.Duration((1 - t.share) / t.share * float64(took))
		text += fmt.Sprintf(", %s left", inWords(left.Round(time.Second)))
	}
	return text
}
