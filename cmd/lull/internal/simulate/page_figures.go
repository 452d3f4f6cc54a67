package simulate

import (
	"math"
	"strconv"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/lab/sim"
)

// pageTable returns the columns of the summaries as a table of the page.
func pageTable(columns []column, all []sim.Summary) (t report.Figures) {
	for _, c := range columns {
		t.Columns = append(t.Columns, report.Column{Name: strings.TrimSpace(c.above + " " + c.head), About: c.meaning})
	}
	for _, m := range all {
		row := report.Row{Name: m.Contender.Name}
		for _, c := range columns {
			row.Cells = append(row.Cells, report.Cell{Text: c.text(m)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// seedTable returns a table with a row for each run.
func seedTable(columns []column, all []sim.Summary) report.Figures {
	var runs []sim.Summary
	seed := column{head: "seed", cell: func(m sim.Summary) string { return strconv.FormatUint(m.Results[0].Seed, 10) }}
	for _, m := range all {
		for i := range m.Results {
			runs = append(runs, sim.Summarize(m.Contender, m.Results[i:i+1]))
		}
	}
	return pageTable(append([]column{seed}, columns...), runs)
}

// markBest marks the best figure of each column, and those that cannot be told from it: their confidence intervals touch, or
// their texts are the same. Where all figures are alike, none is marked.
func markBest(t report.Figures, columns []column, all []sim.Summary) {
	for k, c := range columns {
		var alike []int
		best := math.Inf(-1)
		half := 0.0
		for _, m := range all {
			if e, ok := rank(c, m); ok && e.Mean > best {
				best, half = e.Mean, e.Half
			}
		}
		for i, m := range all {
			if e, ok := rank(c, m); ok && best-e.Mean <= half+e.Half {
				alike = append(alike, i)
			}
		}
		for _, i := range alike {
			t.Rows[i].Cells[k].Best = len(alike) < len(all)
		}
	}
}

// rank returns the estimate by which a column ranks a summary: the greater its mean, the better. It reports false if the
// summary cannot be the best.
func rank(c column, m sim.Summary) (e sim.Estimate, ok bool) {
	sign := -1.0
	switch c.name {
	case backColumn.name:
		e, ok = m.Recovery, m.Recovered == len(m.Results)
	case successColumn.name, handledColumn.name:
		e, ok, sign = m.Success, true, 1
	case perCallColumn.name, perMessageColumn.name:
		e, ok = m.Amplification, m.Amplification.Mean > 0
	case worstColumn.name:
		e, ok = m.WorstTenSeconds, m.WorstTenSeconds.Mean > 0
	case heldColumn(nil).name, "time held":
		e, ok = m.Held, m.Held.Mean > 0
	case peakColumn.name:
		e, ok = m.PeakOverNormal, m.PeakOverNormal.Mean > 0
	case p99Column.name:
		e, ok = m.P99, m.P99.Mean > 0
	case wastedColumn.name:
		e, ok = m.Wasted, true
	case refusedColumn.name:
		e, ok = m.Refused, true
	}
	e.Mean *= sign
	return e, ok && len(m.Results) > 0
}
