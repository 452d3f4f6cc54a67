// Command tables prints the tables of lab/battery/TABLES.md, in Markdown, each from
// simulations that it runs.
//
//	go run ./lab/sim/internal/grid/tables [-seeds N] [-workers N] NAME...
//	go run ./lab/sim/internal/grid/tables -page lab/battery/TABLES.md [NAME...]
//
// Without a name it lists them; with -page it brings the tables of a page up to
// date, all of them or those that are named. Times to recover are means over the seeds, in
// seconds; "never" means that a flight had not recovered after ten minutes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
)

// A table is one of those of the page, or two that belong together.
type table struct {
	name, title string
	print       func(*printer) error
}

var tables = []table{
	{"budget", "success-earned budgets, with and without the rule for time-outs", budgets},
	{"price", "time-outs that cost more", prices},
	{"breaker", "when a breaker opens, and for how long", breakers},
	{"edge", "outages about as long as an attempt may take", edge},
	{"short", "short stalls: what the choice costs", short},
	{"hang", "time-outs in peace", hang},
	{"peace", "errors in peace", peace},
	{"lasting", "errors in peace, two hours on end", lasting},
	{"server", "what the server can do", server},
	{"presets", "known clients beside the zero Policy", presets},
}

// A printer flies what a table needs, and writes it.
type printer struct {
	ctx     context.Context
	out     io.Writer
	seeds   int
	workers int
}

func main() {
	p := &printer{out: os.Stdout}
	page := flag.String("page", "", "a Markdown file whose tables are to be brought up to date")
	flag.IntVar(&p.seeds, "seeds", 2, "flights for each figure")
	flag.IntVar(&p.workers, "workers", 0, "flights side by side; 0: as many as there are cores")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p.ctx = ctx
	err := run(p, *page, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

func run(p *printer, page string, names []string) error {
	if p.seeds < 1 {
		return fmt.Errorf("-seeds is %d: want at least 1", p.seeds)
	}
	if page != "" {
		return p.refresh(page, names)
	}
	if len(names) == 0 {
		for _, t := range tables {
			fmt.Fprintf(p.out, "%-8s  %s\n", t.name, t.title)
		}
		return nil
	}
	for _, name := range names {
		if err := p.table(name); err != nil {
			return err
		}
	}
	return nil
}

// table prints the table of that name, with the command that prints it.
func (p *printer) table(name string) error {
	i := slices.IndexFunc(tables, func(t table) bool { return t.name == name })
	if i < 0 {
		return fmt.Errorf("no table is called %q: run without a name for the list", name)
	}
	fmt.Fprintf(p.out, "`go run ./lab/sim/internal/grid/tables -seeds %d %s`\n", p.seeds, name)
	return tables[i].print(p)
}
