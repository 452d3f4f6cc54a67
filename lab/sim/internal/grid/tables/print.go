package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
)

// fly does n pieces of work side by side. It fails with the error of the first that failed.
func (p *printer) fly(n int, work func(i int)) {
	errs := make([]error, n)
	sim.Each(n, p.workers, func(i int) {
		defer must.Catch(&errs[i])
		must.Succeed(p.ctx.Err())
		work(i)
	})
	must.Succeed(cmp.Or(errs...))
}

// A column is a heading, and the cells under it. Strokes separate the entries of a row in it.
type column[T any] struct {
	head  string
	cells []T
}

// rows flies every row through every cell and prints a table of the entries.
func rows[T any](p *printer, corner string, cs []sim.Contender, columns []column[T], entry func(sim.Contender, T) string) {
	names := make([]string, len(cs))
	for i, c := range cs {
		names[i] = c.Name
	}
	lines(p, corner, names, cs, columns, entry)
}

// lines is rows for any kind of row.
func lines[R, T any](p *printer, corner string, names []string, cs []R, columns []column[T], entry func(R, T) string) {
	type place struct{ row, col, i int }
	var places []place
	text := make([][][]string, len(cs))
	for r := range cs {
		text[r] = make([][]string, len(columns))
		for c := range columns {
			text[r][c] = make([]string, len(columns[c].cells))
			for i := range columns[c].cells {
				places = append(places, place{r, c, i})
			}
		}
	}
	p.fly(len(places), func(i int) {
		at := places[i]
		text[at.row][at.col][at.i] = entry(cs[at.row], columns[at.col].cells[at.i])
	})
	fmt.Fprintf(p.out, "\n| %s |", corner)
	for _, c := range columns {
		fmt.Fprintf(p.out, " %s |", c.head)
	}
	fmt.Fprintf(p.out, "\n|---|%s\n", strings.Repeat("---|", len(columns)))
	for r, name := range names {
		fmt.Fprintf(p.out, "| %s |", name)
		for _, entries := range text[r] {
			fmt.Fprintf(p.out, " %s |", strings.Join(entries, " / "))
		}
		fmt.Fprintln(p.out)
	}
	fmt.Fprintln(p.out)
}

var someLoads = []float64{0.2, 0.8, 0.95}

// recoveries prints the times to recover from an outage at someLoads, with a column for each fleet.
func (p *printer) recoveries(cs []sim.Contender, fleets []int, outage cell) {
	var columns []column[cell]
	for _, outage.processes = range fleets {
		c := column[cell]{head: count(outage.processes)}
		for _, outage.load = range someLoads {
			c.cells = append(c.cells, outage)
		}
		columns = append(columns, c)
	}
	rows(p, "seconds to recover at load 0.2 / 0.8 / 0.95; processes:", cs, columns, p.recovery)
}

// successes prints the shares of calls that succeed in peace.
func (p *printer) successes(at string, cs []sim.Contender, columns []column[quiet]) {
	rows(p, "% of calls that succeed at "+at+"; processes:", cs, columns, p.success)
}

// shares is a column for each fleet, with an entry for each share of errors.
func shares(fleets []int, errors ...float64) []column[quiet] {
	var all []column[quiet]
	for _, n := range fleets {
		c := column[quiet]{head: count(n)}
		for _, e := range errors {
			c.cells = append(c.cells, quiet{processes: n, errors: e})
		}
		all = append(all, c)
	}
	return all
}

// enough is how long things must have been normal in a flight that only measures when
// they were.
const enough = 12 * second

func (p *printer) recovery(c sim.Contender, cell cell) string {
	var sum time.Duration
	back := 0
	for seed := range uint64(p.seeds) {
		r, err := sim.Run(p.ctx, cell.scenario(), c, sim.Options{Seed: seed + 1, StopAfterRecovery: enough})
		if err == nil && !r.Recovery.Recovered && r.End < before+cell.length+after {
			// It ended in a dip after it had been well.
			r, err = sim.Run(p.ctx, cell.scenario(), c, sim.Options{Seed: seed + 1})
		}
		must.Succeed(err)
		if r.Recovery.Recovered {
			back++
			sum += r.Recovery.Time
		}
	}
	switch back {
	case 0:
		return "never"
	case p.seeds:
		return fmt.Sprintf("%.0f", (sum / time.Duration(back)).Seconds())
	}
	return fmt.Sprintf("never in %d of %d", p.seeds-back, p.seeds)
}

func (p *printer) success(c sim.Contender, peace quiet) string {
	var sum battery.Figures
	for seed := range uint64(p.seeds) {
		r := must.Have(sim.Run(p.ctx, peace.scenario(), c, sim.Options{Seed: seed + 1}))
		f := battery.FiguresOf(&r)
		sum.Good, sum.Calls = sum.Good+f.Good, sum.Calls+f.Calls
	}
	return percent(sum.Share())
}

// percent never rounds up to 100.
func percent(share float64) string {
	s := fmt.Sprintf("%.2f", 100*share)
	if s == "100.00" && share < 1 {
		s = "99.99+"
	}
	if share == 1 {
		s = "100"
	}
	return s
}

func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
