package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
	"github.com/lullgo/lull/lab/sim/internal/grid"
)

// fly does n pieces of work side by side and returns the first error.
func (p *printer) fly(n int, work func(i int) error) error {
	var once sync.Once
	var failed error
	battery.Each(n, p.workers, func(i int) {
		err := p.ctx.Err()
		if err == nil {
			err = work(i)
		}
		if err != nil {
			once.Do(func() { failed = err })
		}
	})
	return failed
}

// A column is a heading, and the cells under it. Strokes separate the entries of a row in it.
type column[T any] struct {
	head  string
	cells []T
}

// rows flies every row through every cell and prints a table of the entries.
func rows[T any](p *printer, corner string, cs []sim.Contender, columns []column[T], entry func(sim.Contender, T) (string, error)) error {
	names := make([]string, len(cs))
	for i, c := range cs {
		names[i] = c.Name
	}
	return lines(p, corner, names, cs, columns, entry)
}

// lines is rows for any kind of row.
func lines[R, T any](p *printer, corner string, names []string, cs []R, columns []column[T], entry func(R, T) (string, error)) error {
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
	err := p.fly(len(places), func(i int) (err error) {
		at := places[i]
		text[at.row][at.col][at.i], err = entry(cs[at.row], columns[at.col].cells[at.i])
		return err
	})
	if err != nil {
		return err
	}
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
	return nil
}

var someLoads = []float64{0.2, 0.8, 0.95}

// outages is a column for each fleet, with an entry for each load.
func outages(fleets []int, o grid.Outage, length time.Duration) []column[grid.Cell] {
	var all []column[grid.Cell]
	for _, n := range fleets {
		c := column[grid.Cell]{head: count(n)}
		for _, load := range someLoads {
			c.cells = append(c.cells, grid.Cell{Load: load, Processes: n, Outage: o, Length: length})
		}
		all = append(all, c)
	}
	return all
}

// shares is a column for each fleet, with an entry for each share of errors.
func shares(fleets []int, errors ...float64) []column[grid.Peace] {
	var all []column[grid.Peace]
	for _, n := range fleets {
		c := column[grid.Peace]{head: count(n)}
		for _, e := range errors {
			c.cells = append(c.cells, grid.Peace{Load: 0.8, Processes: n, Errors: e, For: grid.PeaceTime})
		}
		all = append(all, c)
	}
	return all
}

// recovery is the mean time to recover.
func (p *printer) recovery(c sim.Contender, cell grid.Cell) (string, error) {
	var sum time.Duration
	back := 0
	for seed := range p.seeds {
		r, err := grid.Recovery(p.ctx, c, cell, grid.After, uint64(seed+1))
		if err != nil {
			return "", err
		}
		if r.OK {
			back++
			sum += r.Time
		}
	}
	switch back {
	case 0:
		return "never", nil
	case p.seeds:
		return fmt.Sprintf("%.0f", (sum / time.Duration(back)).Seconds()), nil
	}
	return fmt.Sprintf("never in %d of %d", p.seeds-back, p.seeds), nil
}

// edgeSeeds is how many flights it takes to see what chance may do.
const edgeSeeds = 8

// longest is the longest that a policy takes until all is well for good.
func (p *printer) longest(c sim.Contender, cell grid.Cell) (string, error) {
	var most time.Duration
	seeds := max(p.seeds, edgeSeeds)
	never := 0
	for seed := range seeds {
		r, err := grid.Fly(p.ctx, c, cell, uint64(seed+1))
		if err != nil {
			return "", err
		}
		settled := grid.Settled(&r)
		if !settled.OK {
			never++
		}
		most = max(most, settled.Time)
	}
	if never > 0 {
		return fmt.Sprintf("never (%d)", never), nil
	}
	return fmt.Sprintf("%.0f", most.Seconds()), nil
}

// success is the share of calls that succeed in peace, in percent.
func (p *printer) success(c sim.Contender, peace grid.Peace) (string, error) {
	var sum grid.Success
	for seed := range p.seeds {
		s, err := grid.InPeace(p.ctx, c, peace, uint64(seed+1))
		if err != nil {
			return "", err
		}
		sum = sum.Add(s)
	}
	return percent(sum.Share()), nil
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

// count is 100,000 for 100000.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
