package simulate

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

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
	seeds := choice.Either(o.seeds > 1, fmt.Sprintf("%d and the %d after it; means ± the half width of a 95 %% confidence interval", o.seed, o.seeds-1), fmt.Sprintf("%d", o.seed))
	b.WriteString(entry("seed", seeds))
	listed(&b, "The policies", choice.Each(o.contenders, func(c contender) [2]string { return [2]string{c.Name, c.Title} }))
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

func writeFleets(out io.Writer, s sim.Scenario, columns []column, all []sim.Summary) {
	if some, fleets := ofFleets(s, columns, all); fleets != nil {
		fmt.Fprintln(out, "\nOf each fleet")
		writeTable(out, some, fleets)
	}
}

// ofFleets returns a summary for each policy and fleet, with their columns; nil if there is one fleet.
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
	listed(out, "Scenarios (lull simulate NAME --explain describes it)",
		choice.Each(scenario.BuiltIn(), func(s sim.Scenario) [2]string { return [2]string{s.Name, s.Title} }))
	fmt.Fprintln(out)
	listed(out, "Policies for --policy", choice.Each(rivals.All(), func(p rivals.Preset) [2]string { return [2]string{p.Name, p.Title} }))
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

const muchLoad = 1.5

// findings are sentences: who recovered or lost the fewest messages, who sent most, who repeated what must not be repeated.
func findings(s sim.Scenario, all []sim.Summary) (lines term.Sentences) {
	list := func(intro string, of func(sim.Summary) (value float64, text string, ok bool)) bool {
		return lines.List(intro, term.Ranked(all, func(m sim.Summary) (float64, string, bool) {
			value, text, ok := of(m)
			if text != "" {
				text = " (" + text + ")"
			}
			return value, m.Contender.Name + text, ok
		})...)
	}
	unit := "call"
	if onlyMessages(s) {
		unit = "message"
		list("Dead letters, the fewest first: ", func(m sim.Summary) (float64, string, bool) {
			return float64(dead(m)), grouped(float64(dead(m))), true
		})
	} else {
		back := list("Back to normal, the soonest first: ", func(m sim.Summary) (float64, string, bool) {
			return m.Recovery.Mean, inWords(seconds(m.Recovery.Mean)), fateOf(m) == isBack
		})
		not := list("Not back when the run ended: ", func(m sim.Summary) (float64, string, bool) {
			return 0, atTheEnd(m), fateOf(m) == notBack
		})
		list("Back for a time, and worse again: ", func(m sim.Summary) (float64, string, bool) {
			return 0, relapsed(m), relapses(m) > 0
		})
		cut := list("Stopped too early to tell whether they recover: ", func(m sim.Summary) (float64, string, bool) {
			return 0, "", fateOf(m) == undecided
		})
		if !back && !not && !cut {
			list("Calls that succeed, the most first: ", func(m sim.Summary) (float64, string, bool) {
				return -m.Success.Mean, percentOf(m.Success.Mean), true
			})
		}
	}
	list("Most attempts for each "+unit+": ", func(m sim.Summary) (float64, string, bool) {
		return -m.Amplification.Mean, fmt.Sprintf("%.1f", m.Amplification.Mean), m.Amplification.Mean >= muchLoad
	})
	twice := list("Operations carried out more than once: ", func(m sim.Summary) (float64, string, bool) {
		return 0, grouped(float64(duplicates(m))), duplicates(m) > 0
	})
	if !twice && mustNotRepeat(s) {
		lines = append(lines, "Nobody carried out an operation twice.")
	}
	return lines
}

type fate int

const (
	undisturbed fate = iota // there is nothing to recover from
	isBack                  // with every seed
	notBack                 // with some seed
	undecided               // a run was stopped before that
)

func fateOf(m sim.Summary) fate {
	measured := 0
	for _, r := range m.Results {
		switch {
		case r.Interrupted && !r.Recovery.Recovered:
			return undecided
		case r.Recovery.Measured:
			measured++
		}
	}
	switch measured {
	case 0:
		return undisturbed
	case m.Recovered:
		return isBack
	}
	return notBack
}

func relapses(m sim.Summary) int {
	return total(m, func(r sim.Result) int { return r.Recovery.Relapses })
}

func relapsed(m sim.Summary) string {
	first, seeds := time.Duration(0), 0
	for _, r := range m.Results {
		if r.Recovery.Relapses > 0 {
			first += r.Recovery.First
			seeds++
		}
	}
	if seeds == 0 {
		return ""
	}
	text := fmt.Sprintf("first after %s, %s", inWords(first/time.Duration(seeds)), term.Counted(relapses(m), "relapse"))
	if len(m.Results) > 1 {
		text += fmt.Sprintf(" with %d of %d seeds", seeds, len(m.Results))
	}
	return text
}

func atTheEnd(m sim.Summary) string {
	final, n := 0.0, 0
	for _, r := range m.Results {
		if r.Recovery.Measured && !r.Recovery.Recovered {
			final += r.Recovery.Final
			n++
		}
	}
	text := percentOf(final/float64(max(1, n))) + " succeed at the end"
	if len(m.Results) > 1 {
		text += fmt.Sprintf(", %d of %d seeds", n, len(m.Results))
	}
	return text
}
