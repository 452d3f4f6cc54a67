package simulate

import (
	"fmt"
	"io"
	"slices"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

// writeFleets prints a line for each policy and fleet, if there are several fleets.
func writeFleets(out io.Writer, s sim.Scenario, columns []column, all []sim.Summary) {
	if some, fleets := ofFleets(s, columns, all); fleets != nil {
		fmt.Fprintln(out, "\nOf each fleet")
		writeTable(out, some, fleets)
	}
}

// ofFleets returns a summary for each policy and fleet, and the columns that fleets have. The summaries are nil if there is
// only one fleet.
func ofFleets(s sim.Scenario, columns []column, all []sim.Summary) (some []column, fleets []sim.Summary) {
	apart := func(m sim.Summary) bool { return len(m.Results) > 0 && len(m.Results[0].Fleets) > 0 }
	if !slices.ContainsFunc(all, apart) {
		return nil, nil
	}
	for _, c := range columns {
		switch c.name {
		case backColumn.name, successColumn.name, perCallColumn.name, p99Column.name, refusedColumn.name, lostColumn.name:
			some = append(some, c)
		}
	}
	width := 0
	for _, m := range all {
		width = max(width, len(m.Contender.Name))
	}
	for _, m := range all {
		for i, f := range s.Fleets {
			one := m.OfFleet(i)
			one.Contender.Name = "  " + term.Pad(m.Contender.Name, width) + "  " + f.Name
			fleets = append(fleets, one)
		}
	}
	return some, fleets
}
