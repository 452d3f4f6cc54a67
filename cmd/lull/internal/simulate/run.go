package simulate

import (
	"cmp"
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

// run simulates every cell, some of them side by side. It calls show with the progress,
// one call at a time. When ctx ends it returns what was computed until then, marked as
// interrupted.
func (s simulation) run(ctx context.Context, show func(totalProgress)) (outcome, error) {
	// A run keeps what it allocates until it ends. So there is little to collect, and each
	// collection looks at everything.
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

// haveBegun returns the summaries without the runs that were stopped before they began.
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

// forgetSeries drops the series, so that a sweep of many cells needs little memory.
func forgetSeries(all []sim.Summary) {
	for _, m := range all {
		for i := range m.Results {
			m.Results[i].Series = sim.Series{}
		}
	}
}

// sideBySide returns how many runs there are at a time.
func (s simulation) sideBySide() int {
	if s.workers > 0 {
		return s.workers
	}
	return runtime.GOMAXPROCS(0)
}

// runs returns how many there are in all.
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
	show  func(totalProgress)
}

func (t *tally) set(i int, p sim.CompareProgress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cells[i] = p
	h := totalProgress{runs: t.runs}
	for _, c := range t.cells {
		h.done += c.Done
		h.share += c.Share / float64(len(t.cells))
		h.events += c.Events
	}
	t.show(h)
}
