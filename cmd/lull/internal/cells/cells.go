// Package cells divides a run into cells that can run anywhere, in any order, and joins their results again.
//
// A [Cell] is one simulation as data: a scenario, a policy and a seed. Its result depends on nothing
// else, so it does not matter where and when it runs. Its key is a digest of all of it and of the build
// of lull. The key alone identifies a result. So a part of a run needs no number of its own, the
// results of an interrupted part are useful, and a cell that two runs share runs once.
//
// A [Where] is where cells run: here, on another machine that was given a part (--cells, --merge),
// or by workers (--workers URL).
package cells

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/sim"
)

// A Cell is one simulation, and everything that its result depends on.
type Cell struct {
	Wanted    Wanted
	Scenario  sim.Scenario
	Contender Contender
	Named     []Contender `json:",omitempty"` // policies that the scenario names
	Seed      uint64
	Relief    time.Duration `json:",omitempty"` // of a map
}

// Wanted is what a cell gives.
type Wanted string

const (
	Run     Wanted = "run"     // a flight, with its series
	Totals  Wanted = "totals"  // a flight without its series
	Figures Wanted = "figures" // what the battery judges a flight by
	Map     Wanted = "map"     // a map of metastability
)

// A Contender is a sim.Contender as data.
type Contender struct {
	Name   string
	Preset string `json:",omitempty"` // whose options and verdicts it has; empty: it has none
	Policy lull.Policy
	Holds  bool `json:",omitempty"`
}

// ContenderOf returns c as data. preset is the name of the preset that it was made of, if any.
func ContenderOf(c sim.Contender, preset string) Contender {
	return Contender{Name: c.Name, Preset: preset, Policy: c.Policy, Holds: c.Holds}
}

func (c Contender) contender() (sim.Contender, error) {
	of := sim.Contender{Name: c.Name, Policy: c.Policy, Holds: c.Holds}
	if c.Preset != "" {
		p, err := rivals.Find(c.Preset)
		if err != nil {
			return of, err
		}
		of.Options, of.Verdict = p.Options(), p.Reads.Verdict
	}
	return of, nil
}

// A Result is what a cell gives: one of them is set.
type Result struct {
	Run     *sim.Result      `json:"run,omitempty"`
	Figures *battery.Figures `json:"figures,omitempty"`
	Map     *sim.Stability   `json:"map,omitempty"`
}

// Key is a digest of the cell and of the build of lull.
func (c *Cell) Key() (string, error) {
	named := *c
	named.Scenario.Name, named.Scenario.Title = "", ""
	text, err := json.Marshal(named)
	if err != nil {
		return "", fmt.Errorf("%s with %s: %w", c.Scenario.Name, c.Contender.Name, err)
	}
	sum := sha256.Sum256(append([]byte(Build()+"\n"), text...))
	return hex.EncodeToString(sum[:16]), nil
}

// Fly runs the cell. If ctx ends, it returns what it has with the context's error.
func (c *Cell) Fly(ctx context.Context, progress func(sim.Progress)) (Result, error) {
	of, err := c.Contender.contender()
	if err != nil {
		return Result{}, err
	}
	var named []sim.Contender
	for _, n := range c.Named {
		other, err := n.contender()
		if err != nil {
			return Result{}, err
		}
		named = append(named, other)
	}
	if c.Wanted == Map {
		m, err := sim.FindStability(ctx, c.Scenario, of, sim.StabilityOptions{Seed: c.Seed, Named: named, Relief: c.Relief})
		return Result{Map: &m}, err
	}
	r, err := sim.Run(ctx, c.Scenario, of, sim.Options{Seed: c.Seed, Named: named, Progress: progress})
	switch c.Wanted {
	case Run:
	case Totals:
		r.Series = sim.Series{}
	case Figures:
		f := battery.FiguresOf(&r)
		return Result{Figures: &f}, err
	default:
		return Result{}, fmt.Errorf("a cell that wants %q: want run, totals, figures or map", c.Wanted)
	}
	return Result{Run: &r}, err
}

// Build names this build: its version, or a digest of the program. Two builds of the same name give the same results.
var Build = sync.OnceValue(func() string {
	if v := cli.ModuleVersion(); v != "" && !strings.Contains(v, "+dirty") {
		return v
	}
	sum := sha256.New()
	self, err := os.Executable()
	if err == nil {
		var program *os.File
		if program, err = os.Open(self); err == nil {
			defer program.Close()
			_, err = io.Copy(sum, program)
		}
	}
	if err != nil {
		return "unknown"
	}
	return "program " + hex.EncodeToString(sum.Sum(nil)[:8])
})

// Flags are those of commands whose work is in cells. They are text, so that all mistakes are reported at once.
type Flags struct {
	Workers cli.Text  `placeholder:"N" help:"How many simulations run at the same time. Default: one for each processor. With a URL, such as nats://host, they run on the machines where lull worker was started with that URL. The figures do not depend on this."`
	Cells   cli.Text  `placeholder:"I/N" help:"Run only part I of N, from 0/N on, and print its results for --merge."`
	Merge   cli.Texts `placeholder:"FILE,..." help:"Take the results of the parts from these files. * matches any text. Give the same other flags as for the parts."`
	Quiet   bool      `help:"Show no progress."`
	// Away runs cells elsewhere. Nil: this program cannot, and starts lull-queue.
	Away Away `kong:"-"`
}

// An Away has cells flown by the workers of a URL, and calls done with the result of each, one call at a time.
type Away func(ctx context.Context, url string, cells []Cell, done func(i int, r json.RawMessage) error) error

const mostWorkers = 1024

// A Where is where cells run.
type Where struct {
	Env      cli.Env // where parts are printed, and notes
	Parallel int     // how many cells run at the same time here
	Part     bool    // only a part of the cells runs (--cells), and its results are printed

	url     string
	away    Away
	part, n int     // --cells
	known   results // of --merge; nil without it
	quiet   bool
}

// Read reads the flags. Errors of files are returned; mistakes in flags are added to the list.
func (f Flags) Read(l *problem.List) (*Where, error) {
	w := &Where{away: f.Away, n: 1, quiet: f.Quiet}
	switch {
	case f.Remote():
		w.url = string(f.Workers)
	case f.Workers != "":
		w.Parallel = cli.Whole(l, "--workers", f.Workers, 1, mostWorkers)
	}
	w.Parallel = cmp.Or(w.Parallel, runtime.GOMAXPROCS(0))
	if f.Cells != "" {
		i, n, _ := strings.Cut(string(f.Cells), "/")
		var errI, errN error
		w.part, errI = strconv.Atoi(i)
		w.n, errN = strconv.Atoi(n)
		l.Check(errI == nil && errN == nil && 0 <= w.part && w.part < w.n, "--cells", f.Cells.Quoted(), "I/N with I from 0 to N - 1, such as 0/4")
		w.Part = true
	}
	if len(f.Merge) == 0 {
		return w, nil
	}
	w.known = results{}
	files, err := filesOf(f.Merge.Split())
	for _, name := range files {
		if err == nil {
			err = w.known.readFile(name)
		}
	}
	if err != nil {
		return w, fmt.Errorf("--merge: %w", cli.CannotRead(err))
	}
	return w, nil
}

// Remote reports whether the flags name workers on other machines.
func (f Flags) Remote() bool { return strings.Contains(string(f.Workers), "://") }

// OfPart returns the elements that belong to the part, and their indices.
func OfPart[T any](w *Where, all []T) (mine []T, at []int) {
	for i := w.part; i < len(all); i += w.n {
		mine, at = append(mine, all[i]), append(at, i)
	}
	return mine, at
}

// A Watcher is called with what becomes of cells. Calls do not overlap.
type Watcher struct {
	// Done is called with the result of each cell. If the run is interrupted, it may be a part of it.
	Done func(i int, r Result)
	// Progress, if not nil, is called with how far a cell has come that is flown here.
	Progress func(i int, p sim.Progress)
}

// Fly has the cells flown and calls watch with the results. If ctx ends, so does Fly, with the context's error.
func (w *Where) Fly(ctx context.Context, cells []Cell, watch Watcher) error {
	f := &flying{Where: w, cells: cells, watch: watch}
	if w.known == nil && !w.Part && w.url == "" {
		for i := range cells {
			f.left = append(f.left, i)
		}
		return f.here(ctx)
	}
	f.keys = make([]string, len(cells))
	for i := range cells {
		key, err := cells[i].Key()
		if err != nil {
			return err
		}
		f.keys[i] = key
		known, there := w.known[key]
		if !there {
			f.left = append(f.left, i)
			continue
		}
		if err := f.read(i, known); err != nil {
			return err
		}
	}
	switch {
	case len(f.left) == 0:
		return nil
	case w.known != nil && !w.Part:
		return fmt.Errorf("--merge: of %d cells, %d are in none of the files: want all parts, and the other flags that the parts had", len(cells), len(f.left))
	case w.url != "":
		return f.away(ctx)
	}
	return f.here(ctx)
}

type flying struct {
	*Where
	cells []Cell
	keys  []string // nil: nobody needs them
	left  []int    // cells that are not known
	watch Watcher

	mu sync.Mutex // guards the calls of watch
}

// read takes the result of a cell that ran elsewhere.
func (f *flying) read(i int, text json.RawMessage) error {
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("the result of cell %s: %w", f.keys[i], err)
	}
	if (r.Run != nil) != (f.cells[i].Wanted == Run || f.cells[i].Wanted == Totals) || (r.Figures != nil) != (f.cells[i].Wanted == Figures) || (r.Map != nil) != (f.cells[i].Wanted == Map) {
		return fmt.Errorf("the result of cell %s is not what it gives", f.keys[i])
	}
	return f.done(i, r, true)
}

func (f *flying) done(i int, r Result, whole bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Part && whole {
		if err := write(f.Env.Stdout, f.keys[i], r); err != nil {
			return err
		}
	}
	f.watch.Done(i, r)
	return nil
}

func (f *flying) away(ctx context.Context) error {
	cells := choice.Each(f.left, func(i int) Cell { return f.cells[i] })
	if !f.quiet {
		fmt.Fprintf(f.Env.Stderr, "%s for the workers\n", term.Counted(len(cells), "cell"))
	}
	return f.Where.away(ctx, f.url, cells, func(i int, text json.RawMessage) error { return f.read(f.left[i], text) })
}

// here runs the cells in this process, in their order, several at the same time.
func (f *flying) here(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	sim.Each(len(f.left), f.Parallel, func(n int) {
		if ctx.Err() == nil {
			if err := f.fly(ctx, f.left[n]); err != nil {
				stop(err)
			}
		}
	})
	return context.Cause(ctx) // the first error
}

func (f *flying) fly(ctx context.Context, i int) error {
	r, err := f.cells[i].Fly(ctx, func(p sim.Progress) {
		if f.watch.Progress != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.watch.Progress(i, p)
		}
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	if failed := f.done(i, r, err == nil); failed != nil {
		return failed
	}
	return err
}

// A line is the result of one cell in a part. Lines may be in any order, and parts may be put together with cat.
type line struct {
	Build  string          `json:"build"`
	Cell   string          `json:"cell"`
	Result json.RawMessage `json:"result"`
}

// results are the lines of parts, by cell.
type results map[string]json.RawMessage

func (r results) readFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.read(name, f)
}

// read adds the lines of a part. It ignores a last line that was cut short, as a runner that was killed leaves it.
func (r results) read(name string, in io.Reader) error {
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		at := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: %s", name, n, fmt.Sprintf(format, args...))
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil || l.Cell == "" || len(l.Result) == 0 {
			return at("no line of a part: want what --cells printed")
		}
		if l.Build != Build() {
			return at("made by another build of lull, %s: this is %s", l.Build, Build())
		}
		if was, there := r[l.Cell]; there && !bytes.Equal(was, l.Result) {
			return at("another result than before for the same cell, %s", l.Cell)
		}
		r[l.Cell] = l.Result
	}
}

func filesOf(names []string) (files []string, err error) {
	for _, name := range names {
		if !strings.ContainsAny(name, "*?[") {
			files = append(files, name)
			continue
		}
		found, err := filepath.Glob(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: there is no such file", name)
		}
		files = append(files, found...)
	}
	return files, nil
}

func write(out io.Writer, key string, r Result) error {
	result, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(line{Build(), key, result})
}
