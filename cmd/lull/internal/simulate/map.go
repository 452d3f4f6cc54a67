package simulate

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

const mapDefinitions = `What the maps show
  back after  time from the end of the last fault to the moment from which on calls
              succeed 95 %% as often as before the first one, and do so up to the
              end of the run: the mean of %s. "2/5" is how many of the
              seeds came back, if not all; "?" was not simulated
  success     share of calls that succeeded, over the whole run
  held        calls in progress, on average: what callers hold while a call runs
              or waits
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
	measures := []mapMeasure{{"Success", mapSuccess}, {"Held", mapHeld}}
	if o.recovers() {
		measures = slices.Insert(measures, 0, mapMeasure{"Back after", mapRecovery})
	}
	// grid has a line for each value of the first axis.
	grid := func(title string, heads []string, cell func(row, column int) string) {
		fmt.Fprintf(out, "\n%s\n", title)
		rows := [][]string{append([]string{""}, heads...)}
		for i, v := range o.axes[0].values {
			row := []string{"  " + v}
			for j := range heads {
				row = append(row, cell(i, j))
			}
			rows = append(rows, row)
		}
		term.Table(out, rows, term.Width)
	}
	policies := cli.Names(o.contenders, func(c contender) string { return c.Name })
	for _, m := range measures {
		if len(o.axes) == 1 {
			grid(m.title, policies, func(row, column int) string { return o.show(row, policies[column], m) })
			continue
		}
		across := o.axes[1].values
		for _, policy := range policies {
			grid(m.title+": "+policy, across, func(row, column int) string { return o.show(row*len(across)+column, policy, m) })
		}
	}
	seeds := "one seed"
	if o.seeds > 1 {
		seeds = fmt.Sprintf("%d seeds", o.seeds)
	}
	fmt.Fprintf(out, "\n"+mapDefinitions, seeds)
	return out.Flush()
}

func (o outcome) recovers() bool {
	return slices.ContainsFunc(slices.Concat(o.results...), func(m sim.Summary) bool {
		return slices.ContainsFunc(m.Results, func(r sim.Result) bool { return r.Recovery.Measured })
	})
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

func mapHeld(m sim.Summary) string { return trimmed(m.Held.Mean, 3) }

func mapSuccess(m sim.Summary) string {
	if m.Results[len(m.Results)-1].Interrupted {
		return "?"
	}
	return percentOf(m.Success.Mean)
}
