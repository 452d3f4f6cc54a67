package battery

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/battery"
)

func printList(w io.Writer, worlds []battery.World) error {
	out, family := bufio.NewWriter(w), ""
	for _, f := range battery.Families {
		for _, w := range worlds {
			if w.Family != f.Name {
				continue
			}
			if family != f.Name {
				family = f.Name
				fmt.Fprintf(out, "%s: %s\n", f.Name, f.Title)
			}
			fmt.Fprintf(out, "  %s\n", w.Name)
		}
	}
	return out.Flush()
}

func printText(w io.Writer, t task, flown []battery.Outcome, all bool) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s in %s, %s\n", t.plan.Judged.Name, term.Counted(len(flown), "world"), term.Counted(t.seeds, "seed"))
	unmet := 0
	rows := [][]string{{"demand", "world", ""}}
	for i := range flown {
		for _, s := range flown[i].Shortfalls() {
			rows = append(rows, []string{string(s.Demand), s.World, s.Text})
			unmet++
		}
	}
	fmt.Fprintf(out, "\nDemands that are not met: %d\n", unmet)
	left(out, rows)

	rows = [][]string{{"world", t.plan.Judged.Name, "attempts", battery.None, "best", "", "attempts", "back", battery.None, "quickest", ""}}
	beaten := 0
	for i := range flown {
		o := &flown[i]
		best, quickest := o.Best(), o.Quickest()
		if best != nil || quickest != nil {
			beaten++
		} else if !all {
			continue
		}
		ours, none := o.Judged(), o.Of(battery.None)
		row := []string{o.World.Name, battery.Percent(ours.Runs), perCall(ours), battery.Percent(none.Runs), "", "", "", "", "", "", ""}
		if best != nil {
			row[4], row[5], row[6] = battery.Percent(best.Runs), best.Contender, perCall(best)
		}
		if o.World.To > 0 {
			row[7], row[8] = battery.BackIn(ours.Runs), battery.BackIn(none.Runs)
			if quickest != nil {
				row[9], row[10] = battery.BackIn(quickest.Runs), quickest.Contender
			}
		}
		rows = append(rows, row)
	}
	fmt.Fprintf(out, "\nWorlds where a rival has more successes, or is quicker back: %d\n", beaten)
	left(out, rows)
	return out.Flush()
}

// left prints rows with all columns to the left, unless there is only the heading.
func left(out io.Writer, rows [][]string) {
	if len(rows) == 1 {
		return
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush()
}

func perCall(f *battery.Flown) string { return fmt.Sprintf("%.2f", f.Amplification()) }
