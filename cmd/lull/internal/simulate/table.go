package simulate

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// printComparison prints the scenario, the figures, lines through time, findings, and what
// the figures mean.
func printComparison(w io.Writer, o outcome, levels term.Bars) error {
	out := bufio.NewWriter(w)
	all := o.results[0]
	fmt.Fprint(out, o.text())
	fmt.Fprint(out, interruptedText(o, all))
	fmt.Fprintln(out)
	columns := columnsFor(o.scenario, all)
	writeTable(out, columns, all)
	writeFleets(out, o.scenario, columns, all)
	fmt.Fprintln(out)
	writeSparklines(out, o.scenario, all, levels)
	if lines := findings(o.scenario, all); len(lines) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(lines, "\n"))
	}
	fmt.Fprintln(out, "\nWhat the figures mean")
	for _, c := range columns {
		if c.meaning != "" {
			fmt.Fprint(out, term.Fill(fmt.Sprintf("  %-10s  ", c.name), c.meaning))
		}
	}
	return out.Flush()
}

func (o outcome) text() string {
	b := strings.Builder{}
	b.WriteString(scenarioText(o.scenario))
	seeds := fmt.Sprintf("%d", o.seed)
	if o.seeds > 1 {
		seeds = fmt.Sprintf("%d and the %d after it; means ± the half width of a 95 %% confidence interval", o.seed, o.seeds-1)
	}
	b.WriteString(entry("seed", seeds))
	var policies [][2]string
	for _, c := range o.contenders {
		policies = append(policies, [2]string{c.Name, c.Title})
	}
	listed(&b, "The policies", policies)
	return b.String()
}

// interruptedText describes how far an interrupted run came; it is "" for any other run.
func interruptedText(o outcome, all []sim.Summary) string {
	if !o.interrupted {
		return ""
	}
	complete := 0
	for _, m := range all {
		for _, r := range m.Results {
			if !r.Interrupted {
				complete++
			}
		}
	}
	return term.Fill("\n", fmt.Sprintf("Interrupted: %d of %d runs were complete. The figures are of the time that had been simulated; a policy whose run had not begun is missing.", complete, o.runs()))
}

// tableWidth is wider than text: a table with one line for each policy is worth it.
const tableWidth = 100

func writeTable(out io.Writer, columns []column, all []sim.Summary) {
	rows := [][]string{{""}, {"policy"}}
	for _, c := range columns {
		rows[0], rows[1] = append(rows[0], c.above), append(rows[1], c.head)
	}
	for _, m := range all {
		row := []string{m.Contender.Name}
		for _, c := range columns {
			row = append(row, c.text(m))
		}
		rows = append(rows, row)
	}
	term.Table(out, rows, tableWidth)
}

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

func printList(w io.Writer) error {
	out := bufio.NewWriter(w)
	var scenarios, policies [][2]string
	for _, s := range scenario.BuiltIn() {
		scenarios = append(scenarios, [2]string{s.Name, s.Title})
	}
	for _, p := range rivals.All() {
		policies = append(policies, [2]string{p.Name, p.Title})
	}
	listed(out, "Scenarios (lull simulate NAME --explain describes it)", scenarios)
	fmt.Fprintln(out)
	listed(out, "Policies for --policy", policies)
	return out.Flush()
}

func listed(out io.Writer, heading string, lines [][2]string) {
	fmt.Fprintln(out, heading)
	width := 0
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	for _, l := range lines {
		fmt.Fprint(out, term.Fill("  "+term.Pad(l[0], width)+"  ", l[1]))
	}
}

func printExplanation(w io.Writer, s sim.Scenario) error {
	file, err := scenario.Format(s)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, scenarioText(s))
	if s.Teaches != "" {
		fmt.Fprintln(out, entry("teaches", s.Teaches))
	}
	if s.Source != "" {
		fmt.Fprintln(out, entry("source", s.Source))
	}
	fmt.Fprintf(out, "As a file, to be changed and given to lull simulate:\n\n%s\n", strings.TrimRight(string(file), "\n"))
	return out.Flush()
}
