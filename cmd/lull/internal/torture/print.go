package torture

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/torture"
)

// printCard prints the twelve lines of a client, and what is not passed.
func (f Command) printCard(out io.Writer, c *torture.Card) {
	title := c.Client
	if c.Version != "" {
		title += " " + c.Version
	}
	fmt.Fprintf(out, "%s: %d pass, %d warn, %d fail, %d do not apply; %v\n\n", term.Printable(title),
		c.Count(torture.Pass), c.Count(torture.Warn), c.Count(torture.Fail), c.Count(torture.NotApplicable), c.Took.Round(100*time.Millisecond))
	for _, line := range c.Lines() {
		fmt.Fprintf(out, "%-22s %-5s %s\n", line.Group, line.Grade, counts(line))
		for _, r := range c.Results {
			if r.Group != line.Group || !f.All && (r.Grade == torture.Pass || r.Grade == torture.NotApplicable) {
				continue
			}
			fmt.Fprint(out, term.Fill(fmt.Sprintf("    %-4s  ", r.Grade), r.Case+": "+term.Printable(r.Why)))
			if r.Note != "" {
				fmt.Fprint(out, term.Fill("          ", term.Printable(r.Note)))
			}
			if f.Timeline {
				for _, e := range r.Events {
					fmt.Fprintf(out, "          %9.3f s  call %d: %s\n", e.At.Seconds(), e.Call, term.Printable(e.Text))
				}
			}
		}
	}
}

// counts returns how many cases of a line have which grade.
func counts(l torture.Line) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{l.Pass, "pass"}, {l.Warn, "warn"}, {l.Fail, "fail"}, {l.NotApplies, "n/a"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// printMatrix prints a line for each client, and a column for each group: the worst grade, and
// how many cases have it.
func printMatrix(out io.Writer, cards []*torture.Card) {
	rows := [][]string{{"client"}}
	for _, group := range torture.Groups {
		rows[0] = append(rows[0], short(group))
	}
	for _, c := range cards {
		row := []string{term.Printable(c.Client)}
		for _, l := range c.Lines() {
			n := map[torture.Grade]int{torture.Pass: l.Pass, torture.Warn: l.Warn, torture.Fail: l.Fail}[l.Grade]
			cell := string(l.Grade)
			if l.Grade == torture.Warn || l.Grade == torture.Fail {
				cell = fmt.Sprintf("%d %s", n, l.Grade)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	term.Table(out, rows, term.Width)
}

// short returns a group's name for the head of a column.
func short(group string) string {
	switch group {
	case "connections that break":
		return "broken"
	case "must not be repeated":
		return "forbidden"
	}
	return group
}

// printList prints all cases.
func printList(out io.Writer) error {
	cases := torture.Cases()
	fmt.Fprintf(out, "%d cases in %d groups.\n", len(cases), len(torture.Groups))
	group := ""
	for _, c := range cases {
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(out, "\n%s\n", group)
		}
		fmt.Fprintf(out, "\n  %s\n", c.Name)
		fmt.Fprint(out, term.Fill("    The server ", c.Does+"."))
		fmt.Fprint(out, term.Fill("    The client ", c.Right+"."))
		if _, err := fmt.Fprint(out, term.Fill("    ", c.Source)); err != nil {
			return err
		}
	}
	return nil
}
