package simulate

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

const mapDefinitions = `What the maps show
  back after  time from the end of the last fault to the moment from which on calls
              succeed 95 %% as often as before the first one, and do so up to the
              end of the run: the mean of %s. "2/5" is how many of the
              seeds came back, if not all; "?" was not simulated
  success     share of calls that succeeded, over the whole run
`

// A mapMeasure is a figure that maps show.
type mapMeasure struct {
	title string
	cell  func(sim.Summary) string
}

// printMaps prints a sweep: of one field a line for each value and a column for each
// policy, of two fields a map for each policy.
func printMaps(w io.Writer, o outcome) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, o.text())
	for i, x := range o.axes {
		fmt.Fprint(out, entry([]string{"rows", "columns"}[i], x.path))
	}
	if o.interrupted {
		fmt.Fprint(out, term.Fill("\n", `Interrupted. "?" was not simulated, or not to its end.`))
	}
	measures := []mapMeasure{{"Success", mapSuccess}}
	if o.recovers() {
		measures = slices.Insert(measures, 0, mapMeasure{"Back after", mapRecovery})
	}
	for _, m := range measures {
		if len(o.axes) == 1 {
			writeValues(out, o, m)
		} else {
			writeMaps(out, o, m)
		}
	}
	seeds := "one seed"
	if o.seeds > 1 {
		seeds = fmt.Sprintf("%d seeds", o.seeds)
	}
	fmt.Fprintf(out, "\n"+mapDefinitions, seeds)
	return out.Flush()
}

// recovers reports whether there is something to recover from.
func (o outcome) recovers() bool {
	return slices.ContainsFunc(slices.Concat(o.results...), func(m sim.Summary) bool {
		return slices.ContainsFunc(m.Results, func(r sim.Result) bool { return r.Recovery.Measured })
	})
}

// writeValues prints one axis: values down, policies across.
func writeValues(out io.Writer, o outcome, m mapMeasure) {
	fmt.Fprintf(out, "\n%s\n", m.title)
	rows := [][]string{{""}}
	for _, c := range o.contenders {
		rows[0] = append(rows[0], c.Name)
	}
	for i, v := range o.axes[0].values {
		row := []string{"  " + v}
		for _, c := range o.contenders {
			row = append(row, o.show(i, c.Name, m))
		}
		rows = append(rows, row)
	}
	term.Table(out, rows, term.Width)
}

// writeMaps prints two axes: a map for each policy, the first axis down.
func writeMaps(out io.Writer, o outcome, m mapMeasure) {
	down, across := o.axes[0], o.axes[1]
	for _, c := range o.contenders {
		fmt.Fprintf(out, "\n%s: %s\n", m.title, c.Name)
		rows := [][]string{append([]string{""}, across.values...)}
		for i, v := range down.values {
			row := []string{"  " + v}
			for j := range across.values {
				row = append(row, o.show(i*len(across.values)+j, c.Name, m))
			}
			rows = append(rows, row)
		}
		term.Table(out, rows, term.Width)
	}
}

// summary returns the summary of a policy in a cell, if there is one.
func (o outcome) summary(cell int, policy string) (sim.Summary, bool) {
	for _, s := range o.results[cell] {
		if s.Contender.Name == policy && len(s.Results) > 0 {
			return s, true
		}
	}
	return sim.Summary{}, false
}

// show returns a measure of a policy in a cell, "?" if it is not known.
func (o outcome) show(cell int, policy string, m mapMeasure) string {
	s, ok := o.summary(cell, policy)
	if !ok {
		return "?"
	}
	return m.cell(s)
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
