package simulate

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

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

// estimate adds up all runs: their time, divided by how many run side by side, and the
// memory of the largest ones that may run at the same time.
func (s simulation) estimate() estimate {
	e := estimate{runs: s.runs(), parallel: min(s.where.Parallel(), s.runs())}
	var memory []int64
	seconds := 0.0
	for _, cell := range s.cells {
		n := 0
		for _, f := range cell.scenario.Fleets {
			n += max(f.Processes, 1)
		}
		e.processes, e.horizon = max(e.processes, n), max(e.horizon, cell.scenario.Horizon)
		for _, c := range cell.fleet() {
			cost := cell.scenario.Cost(c)
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

// check refuses a simulation that needs more memory than is available, or more time than
// longestRun.
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

// availableMemory returns how many bytes may be used without swapping, from Linux's
// /proc/meminfo. It ignores the limit of a container.
func availableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return assumedMemory
	}
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
