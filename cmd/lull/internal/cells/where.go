package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/sim"
)

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

// mostWorkers is the largest number of cells side by side.
const mostWorkers = 1024

// A Where is where cells are flown.
type Where struct {
	Env cli.Env // where parts are printed, and notes

	side    int // side by side, here
	url     string
	away    Away
	part, n int // --cells
	prints  bool
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
		w.side = cli.Whole(l, "--workers", f.Workers, 1, mostWorkers)
	}
	if w.side == 0 {
		w.side = runtime.GOMAXPROCS(0)
	}
	if f.Cells != "" {
		i, n, _ := strings.Cut(string(f.Cells), "/")
		var errI, errN error
		w.part, errI = strconv.Atoi(i)
		w.n, errN = strconv.Atoi(n)
		l.Check(errI == nil && errN == nil && 0 <= w.part && w.part < w.n, "--cells", f.Cells.Quoted(), "I/N with I from 0 to N - 1, such as 0/4")
		w.prints = true
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

// Part reports whether only a part is flown, of which the results are printed.
func (w *Where) Part() bool { return w.prints }

// Mine returns those that belong to the part, of all that can be flown independently, and their indices.
func Mine[T any](w *Where, all []T) (mine []T, at []int) {
	for i := w.part; i < len(all); i += w.n {
		mine, at = append(mine, all[i]), append(at, i)
	}
	return mine, at
}

// Side is how many are flown side by side here.
func (w *Where) Side() int { return w.side }

// A Watcher is called with what becomes of cells. Calls do not overlap.
type Watcher struct {
	// Done is called with the result of each cell. If the run is interrupted, it may be a part of it.
	Done func(i int, r Result)
	// Progress, if not nil, is called with how far a cell has come that is flown here.
	Progress func(i int, p sim.Progress)
}

// Fly has the cells flown and calls watch with the results. The results depend only on the cells. If ctx ends, so
// does Fly, with the context's error.
func (w *Where) Fly(ctx context.Context, cells []Cell, watch Watcher) error {
	f := &flying{Where: w, cells: cells, watch: watch}
	if w.known == nil && !w.Part() && w.url == "" {
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
	case w.known != nil && !w.Part():
		return fmt.Errorf("--merge: of %d cells, %d are in none of the files: want all parts, and the other flags that the parts had", len(cells), len(f.left))
	case w.url != "":
		return f.away(ctx)
	}
	return f.here(ctx)
}

// flying is one call of Fly.
type flying struct {
	*Where
	cells []Cell
	keys  []string // nil: nobody needs them
	left  []int    // cells that are not known
	watch Watcher

	mu sync.Mutex // guards the calls of watch
}

// read takes the result of a cell that was flown elsewhere.
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

// done hands a result on.
func (f *flying) done(i int, r Result, whole bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Part() && whole {
		if err := write(f.Env.Stdout, f.keys[i], r); err != nil {
			return err
		}
	}
	f.watch.Done(i, r)
	return nil
}

// away has the cells flown by workers.
func (f *flying) away(ctx context.Context) error {
	var cells []Cell
	for _, i := range f.left {
		cells = append(cells, f.cells[i])
	}
	if !f.quiet {
		fmt.Fprintf(f.Env.Stderr, "%s for the workers\n", term.Counted(len(cells), "cell"))
	}
	return f.Where.away(ctx, f.url, cells, func(i int, text json.RawMessage) error { return f.read(f.left[i], text) })
}

// here flies the cells in this process, in their order, several side by side.
func (f *flying) here(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan int)
	var pool sync.WaitGroup
	for range min(f.side, len(f.left)) {
		pool.Go(func() {
			for i := range next {
				if err := f.fly(ctx, i); err != nil {
					stop(err)
				}
			}
		})
	}
	for _, i := range f.left {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	pool.Wait()
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
