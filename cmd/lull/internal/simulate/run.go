package simulate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/sim"
)

type outcome struct {
	simulation
	interrupted bool
	results     [][]sim.Summary // of each cell, without the runs that had not begun when interrupted
}

func (o outcome) swept() bool { return len(o.axes) > 0 }

func (s simulation) flights() (all []cells.Cell) {
	wanted := choice.Either(len(s.axes) > 0, cells.Totals, cells.Run) // so that a sweep of many cells needs little memory
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

// run simulates every cell and shows the progress. If ctx ends it returns what there is, marked as interrupted.
func (s simulation) run(ctx context.Context, p *term.Progress) (outcome, error) {
	// A run keeps what it allocates until it ends. So there is little to collect, and each collection looks at everything.
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
			begun := slices.DeleteFunc(slices.Clone(results[:s.seeds]), func(r sim.Result) bool { return r.End == 0 })
			if m := sim.Summarize(of.Contender, begun); len(m.Results) > 0 {
				o.results[i] = append(o.results[i], m)
			}
			results = results[s.seeds:]
		}
	}
	return o, nil
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

const longestRun = time.Hour

// An estimate is roughly what a simulation will take on this machine.
type estimate struct {
	memory    int64 // the most bytes at any time
	time      time.Duration
	events    float64
	runs      int
	parallel  int // runs side by side
	processes int // of the largest cell
	horizon   time.Duration
}

// estimate adds up the time of all runs, and the memory of the largest ones that may run at the same time.
func (s simulation) estimate() estimate {
	e := estimate{runs: s.runs(), parallel: min(s.where.Parallel, s.runs())}
	var memory []int64
	seconds := 0.0
	for _, cell := range s.cells {
		n := 0
		for _, f := range cell.scenario.Fleets {
			n += max(f.Processes, 1)
		}
		e.processes, e.horizon = max(e.processes, n), max(e.horizon, cell.scenario.Horizon)
		for _, c := range cell.contenders {
			cost := cell.scenario.Cost(c.Contender)
			seconds += cost.Time.Seconds() * float64(s.seeds)
			e.events += float64(cost.Events) * float64(s.seeds)
			for range min(s.seeds, e.parallel) {
				memory = append(memory, cost.Memory)
			}
		}
	}
	slices.Sort(memory)
	total := 0.0
	for _, m := range memory[max(0, len(memory)-e.parallel):] {
		total += float64(m)
	}
	e.memory = int64(min(total, 1<<62))
	e.time = time.Duration(min(seconds/float64(max(e.parallel, 1)), (1<<62)/1e9) * 1e9)
	return e
}

// check refuses a simulation that needs more memory than is available, or more time than longestRun.
func (e estimate) check(available int64) error {
	var reasons, advice []string
	if e.memory > available {
		reasons = append(reasons, fmt.Sprintf("about %s of memory, of which %s are free", bytesInWords(e.memory), bytesInWords(available)))
		advice = append(advice, "fewer --clients")
		if e.parallel > 1 {
			advice = append(advice, "--workers 1")
		}
	}
	if e.time > longestRun {
		reasons = append(reasons, fmt.Sprintf("about %s", inWords(e.time)))
		advice = append(advice, "a shorter --horizon")
		if e.runs > 1 {
			advice = append(advice, "fewer --seeds, policies or values of a --sweep")
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return problem.List{{
		Field: "this simulation",
		Value: fmt.Sprintf("%d runs of up to %s processes for %s, %s events: it needs %s", e.runs, grouped(float64(e.processes)),
			inWords(e.horizon), abbreviated(e.events), strings.Join(reasons, ", and ")),
		Allowed: strings.Join(advice, ", or ") + ", or --force",
	}}
}

func bytesInWords(n int64) string {
	const mib = 1 << 20
	if n < 1000*mib {
		return trimmed(float64(n)/mib, 3) + " MiB"
	}
	return trimmed(float64(n)/(1<<30), 3) + " GiB"
}

const assumedMemory = 4 << 30

// availableMemory is how many bytes may be used without swapping, by Linux's /proc/meminfo. It ignores a container's limit.
func availableMemory() int64 {
	text, _ := os.ReadFile("/proc/meminfo")
	if n, ok := memAvailable(string(text)); ok {
		return n
	}
	return assumedMemory
}

func memAvailable(meminfo string) (int64, bool) {
	for line := range strings.Lines(meminfo) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemAvailable:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err == nil && n >= 0 && n < math.MaxInt64>>10
		}
	}
	return 0, false
}
