// Command results prints the tables of lab/torture/RESULTS.md from cards that lull torture
// --json has printed: how many verdicts of which grade each client has, and each fail.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/torture"
)

func main() {
	must.Main("results", 1, func() error {
		var cards []*torture.Card
		for _, name := range os.Args[1:] {
			more, err := torture.ReadJSON(must.Have(os.Open(name)))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			cards = append(cards, more...)
		}
		write(os.Stdout, cards)
		return nil
	})
}

// heading is what stands above the clients that failed a case.
func heading(c torture.Case) string {
	return fmt.Sprintf("**%s**. The server %s. The client %s. *%s.*", c.Name, c.Does, c.Right, c.Source)
}

func write(out io.Writer, cards []*torture.Card) {
	slices.SortFunc(cards, func(a, b *torture.Card) int { return strings.Compare(a.Name, b.Name) })
	fmt.Fprint(out, "| client | version | pass | warn | fail | n/a |\n|---|---|---|---|---|---|\n")
	for _, c := range cards {
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %d |\n", c.Name, c.Version, c.Count(torture.Pass), c.Count(torture.Warn), c.Count(torture.Fail), c.Count(torture.NotApplicable))
	}
	for _, c := range torture.Cases() {
		var whys []string // in the order of the first client that has each
		names := map[string][]string{}
		for _, card := range cards {
			if r, ok := card.Result(c.Name); ok && r.Grade == torture.Fail {
				if names[r.Why] == nil {
					whys = append(whys, r.Why)
				}
				names[r.Why] = append(names[r.Why], card.Name)
			}
		}
		var failed []string
		for _, why := range whys {
			failed = append(failed, fmt.Sprintf("%s (%s)", strings.Join(names[why], ", "), why))
		}
		if len(failed) > 0 {
			fmt.Fprintf(out, "\n%s\nFailed by %s.\n", heading(c), strings.Join(failed, "; "))
		}
	}
}
