package simulate

import (
	"bufio"
	"fmt"
	"github.com/lullgo/lull/lab/scenario"
	"io"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/sim"
)

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

// printExplanation prints what a scenario is, what it teaches, its source, and its file.
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
