package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull/sim"
)

// An outcome is what a simulation has found.
type outcome struct {
	simulation
	interrupted bool
	// results has the summaries of each cell, in the order of cells. An
	// interrupted run leaves out what had not begun.
	results [][]sim.Summary
}

func (o outcome) swept() bool { return len(o.axes) > 0 }

// howFar is how far all runs together have come.
type howFar struct {
	done, runs int
	share      float64 // of all the virtual time, 0 to 1
	events     int64
}

// line is how far it has come after some time.
func (h howFar) line(took time.Duration) string {
	text := fmt.Sprintf("simulating: %4.1f %%, %d of %d runs, %s events/s", 100*h.share, h.done, h.runs,
		abbreviated(ratio(float64(h.events), took.Seconds())))
	if h.share > 0.01 && h.share < 1 {
		left := time.Duration((1 - h.share) / h.share * float64(took))
		text += fmt.Sprintf(", %s left", inWords(left.Round(time.Second)))
	}
	return text
}

// run simulates every cell, some of them side by side. show is told how far it
// has come; its calls do not overlap. When ctx ends, what was computed until then
// is returned, marked as interrupted.
func (s simulation) run(ctx context.Context, show func(howFar)) (outcome, error) {
	// What a run allocates it keeps to its end, so there is little to collect, and
	// each collection looks at all of it.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	o := outcome{simulation: s, results: make([][]sim.Summary, len(s.cells))}
	whole, stop := context.WithCancel(ctx)
	defer stop()
	side := min(s.sideBySide(), len(s.cells))
	sum := tally{cells: make([]sim.CompareProgress, len(s.cells)), runs: s.runs(), show: show}
	errs := make([]error, len(s.cells))
	next := make(chan int)
	var pool sync.WaitGroup
	for range side {
		pool.Go(func() {
			for i := range next {
				c := s.cells[i]
				o.results[i], errs[i] = sim.Compare(whole, c.scenario, c.fleet(), sim.CompareOptions{
					Seed: s.seed, Seeds: s.seeds, Workers: max(1, s.sideBySide()/side), Named: s.named,
					Progress: func(p sim.CompareProgress) { sum.set(i, p) },
				})
				if errs[i] != nil {
					stop()
				}
				o.results[i] = haveBegun(o.results[i])
				if o.swept() {
					forgetSeries(o.results[i])
				}
			}
		})
	}
	begun := 0
	for i := range s.cells {
		if whole.Err() != nil {
			break
		}
		next <- i
		begun++
	}
	close(next)
	pool.Wait()
	for _, err := range errs {
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			return o, err
		}
		o.interrupted = o.interrupted || err != nil
	}
	o.interrupted = o.interrupted || begun < len(s.cells)
	return o, nil
}

// haveBegun leaves out runs that were stopped before they had begun.
func haveBegun(all []sim.Summary) []sim.Summary {
	var some []sim.Summary
	for _, m := range all {
		m.Results = slices.DeleteFunc(slices.Clone(m.Results), func(r sim.Result) bool { return r.End == 0 })
		if len(m.Results) > 0 {
			some = append(some, m)
		}
	}
	return some
}

// forgetSeries keeps a sweep of many cells small.
func forgetSeries(all []sim.Summary) {
	for _, m := range all {
		for i := range m.Results {
			m.Results[i].Series = sim.Series{}
		}
	}
}

// sideBySide is how many runs there are at a time.
func (s simulation) sideBySide() int {
	if s.workers > 0 {
		return s.workers
	}
	return runtime.GOMAXPROCS(0)
}

// runs is how many there are in all.
func (s simulation) runs() int {
	n := 0
	for _, c := range s.cells {
		n += len(c.contenders) * s.seeds
	}
	return n
}

// A tally adds up the progress of cells that are simulated side by side.
type tally struct {
	mu    sync.Mutex
	cells []sim.CompareProgress
	runs  int
	show  func(howFar)
}

func (t *tally) set(i int, p sim.CompareProgress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cells[i] = p
	h := howFar{runs: t.runs}
	for _, c := range t.cells {
		h.done += c.Done
		h.share += c.Share / float64(len(t.cells))
		h.events += c.Events
	}
	t.show(h)
}
