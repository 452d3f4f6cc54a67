package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lullgo/lull/sim"
)

// printComparison prints the setting, the figures, how things went through time,
// what became of whom, and how the figures are defined.
func printComparison(w io.Writer, o outcome, levels []rune) error {
	out := bufio.NewWriter(w)
	all := o.results[0]
	fmt.Fprint(out, o.text())
	fmt.Fprint(out, interruptedText(o, all))
	fmt.Fprintln(out)
	columns := columnsFor(o.scenario, all)
	writeTable(out, columns, all)
	fmt.Fprintln(out)
	writeSparklines(out, o.scenario, all, levels)
	if lines := simulationFindings(o.scenario, all); len(lines) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(lines, "\n"))
	}
	fmt.Fprintln(out, "\nWhat the figures mean")
	for _, c := range columns {
		if c.meaning != "" {
			fmt.Fprint(out, hanging(fmt.Sprintf("  %-10s  ", c.name), c.meaning, textWidth))
		}
	}
	return out.Flush()
}

// text describes what was simulated.
func (o outcome) text() string {
	b := strings.Builder{}
	b.WriteString(scenarioText(o.scenario))
	seeds := fmt.Sprintf("%d", o.seed)
	if o.seeds > 1 {
		seeds = fmt.Sprintf("%d and the %d after it; means ± the half width of a 95 %% confidence interval", o.seed, o.seeds-1)
	}
	b.WriteString(entry("seed", seeds))
	b.WriteString("The policies\n")
	width := 0
	for _, c := range o.contenders {
		width = max(width, len(c.Name))
	}
	for _, c := range o.contenders {
		b.WriteString(hanging("  "+pad(c.Name, width)+"  ", c.Title, 80))
	}
	return b.String()
}

// interruptedText says how far an interrupted run had come; "" if it was not.
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
	return hanging("\n", fmt.Sprintf("Interrupted: %d of %d runs were complete. The figures are of the time that had been simulated; a policy whose run had not begun is missing.", complete, o.runs()), 80)
}

// tableWidth is wider than text, since one line for each policy is worth it.
const tableWidth = 100

// writeTable prints a line for each summary, in columns as wide as they must be.
func writeTable(out io.Writer, columns []column, all []sim.Summary) {
	rows := [][]string{{""}, {"policy"}}
	for _, c := range columns {
		rows[0], rows[1] = append(rows[0], c.above), append(rows[1], c.head)
	}
	for _, m := range all {
		row := []string{m.Contender.Name}
		for _, c := range columns {
			cell := "-"
			if len(m.Results) > 0 {
				cell = c.cell(m)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	writeFolded(out, rows, tableWidth)
}

// writeRows prints rows with the first column to the left and the others to the
// right.
func writeRows(out io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := pad(row[0], widths[0])
		for i, cell := range row[1:] {
			line += "  " + strings.Repeat(" ", widths[i+1]-utf8.RuneCountInString(cell)) + cell
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
