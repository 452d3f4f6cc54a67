package simulate

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/sim"
)

type sweepAxis struct {
	Path   string   `json:"path"`
	Values []string `json:"values"`
}

const (
	mostAxes   = 2
	mostValues = 1000
)

func axes(l *problem.List, sweeps cli.Texts) []sweepAxis {
	l.Check(len(sweeps) <= mostAxes, "--sweep", fmt.Sprintf("given %d times", len(sweeps)), "at most two of them")
	var all []sweepAxis
	cells := 1
	for _, sweep := range sweeps {
		path, list, found := strings.Cut(string(sweep), "=")
		values, err := valuesOf(list)
		if !found || path == "" || err != nil {
			l.Add("--sweep", sweep.Quoted(), "PATH=a,b,c or PATH=from..to/step, of numbers or durations, such as clients=1,100,10k or services.0.faults.0.for=1s..10s/3s")
			continue
		}
		for _, other := range all {
			l.Check(other.Path != path, "--sweep", path+" twice", "two different fields")
		}
		all = append(all, sweepAxis{path, values})
		cells *= len(values)
	}
	l.Check(cells <= mostCells, "--sweep", fmt.Sprintf("%d combinations", cells), fmt.Sprintf("at most %d", mostCells))
	if len(*l) > 0 {
		return nil
	}
	return all
}

func valuesOf(list string) ([]string, error) {
	from, rest, isRange := strings.Cut(list, "..")
	if !isRange {
		var values []string
		seen := map[string]bool{}
		for v := range strings.SplitSeq(list, ",") {
			v = strings.TrimSpace(v)
			if v == "" || seen[v] {
				return nil, fmt.Errorf("empty or repeated value")
			}
			seen[v] = true
			values = append(values, v)
		}
		return values, nil
	}
	to, step, _ := strings.Cut(rest, "/")
	if a, b, by, ok := three(from, to, step, time.ParseDuration); ok {
		return steps(float64(a), float64(b), float64(by), func(v float64) string { return time.Duration(math.Round(v)).String() })
	}
	if a, b, by, ok := three(from, to, step, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }); ok {
		return steps(a, b, by, func(v float64) string { return strconv.FormatFloat(v, 'g', 12, 64) })
	}
	return nil, fmt.Errorf("no numbers, or numbers of different kinds")
}

func three[T any](a, b, c string, parse func(string) (T, error)) (x, y, z T, ok bool) {
	x, errA := parse(strings.TrimSpace(a))
	y, errB := parse(strings.TrimSpace(b))
	z, errC := parse(strings.TrimSpace(c))
	return x, y, z, errA == nil && errB == nil && errC == nil
}

// steps returns the values from a to b. It includes b if a whole number of steps leads there.
func steps(a, b, by float64, format func(float64) string) ([]string, error) {
	n := math.Floor((b-a)/by + 1e-9)
	if !(by > 0) || !(n >= 0 && n < mostValues) {
		return nil, fmt.Errorf("no steps, or too many")
	}
	var values []string
	for i := range int(n) + 1 {
		values = append(values, format(a+float64(i)*by))
	}
	return values, nil
}

// cellsOf returns the changes of each pair of values, row by row. Without a sweep that is one cell without changes.
func cellsOf(axes []sweepAxis) [][]change {
	cells := [][]change{nil}
	for _, x := range axes {
		var more [][]change
		for _, c := range cells {
			for _, v := range x.Values {
				more = append(more, append(c[:len(c):len(c)], change{"--sweep", x.Path + "=" + v}))
			}
		}
		cells = more
	}
	return cells
}

const mapDefinitions = `What the maps show
  back after  time from the end of the last fault to the moment from which on calls
              succeed 95 %% as often as before the first one, and do so up to the
              end of the run: the mean of %s. "2/5" is how many of the
              seeds came back, if not all; "?" was not simulated
  success     share of calls that succeeded, over the whole run
  held        calls in progress, on average: what callers hold while a call runs
              or waits
`

// printMaps prints a sweep: of one field a column for each policy, of two fields a map for each.
func printMaps(w io.Writer, o outcome) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, o.text())
	for i, x := range o.axes {
		fmt.Fprint(out, entry([]string{"rows", "columns"}[i], x.Path))
	}
	if o.interrupted {
		fmt.Fprint(out, term.Fill("\n", `Interrupted. "?" was not simulated, or not to its end.`))
	}
	// grid has a line for each value of the first axis.
	grid := func(title string, heads []string, cell func(row, column int) string) {
		fmt.Fprintf(out, "\n%s\n", title)
		rows := [][]string{append([]string{""}, heads...)}
		for i, v := range o.axes[0].Values {
			row := []string{"  " + v}
			for j := range heads {
				row = append(row, cell(i, j))
			}
			rows = append(rows, row)
		}
		term.Table(out, rows, term.Width)
	}
	policies := choice.Each(o.contenders, func(c contender) string { return c.Name })
	measure := func(title string, of func(sim.Summary) string) {
		show := func(cell int, policy string) string {
			if s, ok := o.summary(cell, policy); ok {
				return of(s)
			}
			return "?"
		}
		if len(o.axes) == 1 {
			grid(title, policies, func(row, column int) string { return show(row, policies[column]) })
			return
		}
		across := o.axes[1].Values
		for _, policy := range policies {
			grid(title+": "+policy, across, func(row, column int) string { return show(row*len(across)+column, policy) })
		}
	}
	measured := func(r sim.Result) bool { return r.Recovery.Measured }
	if slices.ContainsFunc(slices.Concat(o.results...), func(m sim.Summary) bool { return slices.ContainsFunc(m.Results, measured) }) {
		measure("Back after", mapRecovery)
	}
	measure("Success", mapSuccess)
	measure("Held", func(m sim.Summary) string { return trimmed(m.Held.Mean, 3) })
	seeds := choice.Either(o.seeds > 1, fmt.Sprintf("%d seeds", o.seeds), "one seed")
	fmt.Fprintf(out, "\n"+mapDefinitions, seeds)
	return out.Flush()
}

func (o outcome) summary(cell int, policy string) (sim.Summary, bool) {
	for _, s := range o.results[cell] {
		if s.Contender.Name == policy && len(s.Results) > 0 {
			return s, true
		}
	}
	return sim.Summary{}, false
}

// mapRecovery is a shorter recoveryCell.
func mapRecovery(m sim.Summary) string {
	if m.Recovered > 0 && m.Recovered < len(m.Results) {
		return fmt.Sprintf("%d/%d", m.Recovered, len(m.Results))
	}
	m.Recovery.Half = 0
	return recoveryCell(m)
}

func mapSuccess(m sim.Summary) string {
	if m.Results[len(m.Results)-1].Interrupted {
		return "?"
	}
	return percentOf(m.Success.Mean)
}
