// Command tables runs simulations and prints the tables of lab/battery/TABLES.md, in Markdown.
//
//	go run ./lab/sim/internal/grid/tables [-seeds N] [-workers N] NAME...
//
// Without a name it lists the tables. Times to recover are means over the seeds, in
// seconds; "never" means that a run had not recovered after ten minutes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"

	"github.com/lullgo/lull/internal/must"
)

// A table is one of those of the page, or two that belong together.
type table struct {
	name, title string
	print       func(*printer)
}

var tables = []table{
	{"price", "time-outs that cost more", prices},
	{"breaker", "when a breaker opens, and for how long", breakers},
	{"hang", "time-outs in peace", hang},
	{"peace", "errors in peace", peace},
	{"server", "what the server can do", server},
	{"presets", "known clients beside the zero Policy", presets},
}

// A printer runs the simulations of a table, and prints it.
type printer struct {
	ctx     context.Context
	out     io.Writer
	seeds   int
	workers int
}

func main() {
	p := &printer{out: os.Stdout}
	flag.IntVar(&p.seeds, "seeds", 2, "runs for each figure")
	flag.IntVar(&p.workers, "workers", 0, "runs at the same time; 0: one for each core")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p.ctx = ctx
	must.Main("tables", 1, func() error { return run(p, flag.Args()) })
}

func run(p *printer, names []string) (err error) {
	defer must.Catch(&err)
	if p.seeds < 1 {
		return fmt.Errorf("-seeds is %d: want at least 1", p.seeds)
	}
	if len(names) == 0 {
		for _, t := range tables {
			fmt.Fprintf(p.out, "%-8s  %s\n", t.name, t.title)
		}
		return nil
	}
	for _, name := range names {
		i := slices.IndexFunc(tables, func(t table) bool { return t.name == name })
		if i < 0 {
			return fmt.Errorf("no table is called %q: run without a name for the list", name)
		}
		fmt.Fprintf(p.out, "`go run ./lab/sim/internal/grid/tables -seeds %d %s`\n", p.seeds, name)
		tables[i].print(p)
	}
	return nil
}
