package battery

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/battery"
)

func printList(w io.Writer, t task) error {
	out, family := bufio.NewWriter(w), ""
	if t.drawn != nil {
		fmt.Fprintf(out, "drawn with --seed %d\n", *t.drawn)
	}
	for _, f := range battery.Families {
		for _, w := range t.plan.Worlds {
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
	if t.drawn != nil {
		fmt.Fprintf(out, "drawn with --seed %d\n", *t.drawn)
	}
	unmet := 0
	rows := [][]string{{"demand", "world", "", ""}}
	more := []int{0} // worlds with the same shortfall: many have the same peace
	for i := range flown {
		for _, s := range flown[i].Shortfalls() {
			unmet++
			k := slices.IndexFunc(rows, func(row []string) bool { return row[0] == string(s.Demand) && row[3] == s.Text })
			if k < 0 {
				rows, more = append(rows, []string{string(s.Demand), s.World, "", s.Text}), append(more, 0)
				continue
			}
			more[k]++
			rows[k][2] = fmt.Sprintf("and %d", more[k])
		}
	}
	fmt.Fprintf(out, "\nDemands that are not met: %d\n", unmet)
	if len(rows) > 1 { // more than the heading
		term.Left(out, rows)
	}

	costs := []string{"attempts", "worst 10 s", "held"}
	rows = [][]string{slices.Concat([]string{"world", t.plan.Judged.Name}, costs, []string{battery.None, "best", ""}, costs, []string{"back", battery.None, "quickest", ""})}
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
		row := slices.Concat([]string{o.World.Name, battery.Percent(ours.Runs)}, costsOf(ours, none), []string{battery.Percent(none.Runs)})
		if best != nil {
			row = slices.Concat(row, []string{battery.Percent(best.Runs), best.Contender}, costsOf(best, none))
		} else {
			row = append(row, make([]string, 2+len(costs))...)
		}
		if o.World.To > 0 {
			row = append(row, battery.BackIn(ours.Runs), battery.BackIn(none.Runs))
			if quickest != nil {
				row = append(row, battery.BackIn(quickest.Runs), quickest.Contender)
			}
		}
		rows = append(rows, row)
	}
	fmt.Fprintf(out, "\nWorlds where a rival has more successes, or is quicker back: %d\n", beaten)
	if len(rows) > 1 { // more than the heading
		term.Left(out, rows)
	}
	return out.Flush()
}

// costsOf returns what successes took: attempts a call, also in the worst ten seconds, and what was held, as a multiple of none's.
func costsOf(f, none *battery.Flown) []string {
	return []string{fmt.Sprintf("%.2f", f.Amplification()), fmt.Sprintf("%.2f", f.Worst()), fmt.Sprintf("%.2f×", f.Held()/none.Held())}
}

// An account is everything that was flown, as JSON.
type account struct {
	Policy string  `json:"policy"`
	Seeds  int     `json:"seeds"`
	Drawn  *uint64 `json:"drawn_with_seed,omitempty"` // --fresh
	Worlds []world `json:"worlds"`
}

type world struct {
	Family string `json:"family"`
	Name   string `json:"name"`
	// Scenario and Peace are digests, by which --against knows a world again.
	Scenario   string      `json:"scenario"`
	Peace      []string    `json:"peace,omitempty"`
	Contenders []contender `json:"contenders"`
	Unmet      []unmet     `json:"unmet,omitempty"`
}

type contender struct {
	Name  string      `json:"name"`
	Runs  []figures   `json:"runs"`
	Peace [][]figures `json:"peace,omitempty"`
}

type figures struct {
	Calls     int64    `json:"calls"`
	Succeeded int64    `json:"succeeded"`
	Attempts  int64    `json:"attempts"`
	Back      *float64 `json:"back_seconds"`        // null: never, or there is no outage
	Few       bool     `json:"few_calls,omitempty"` // too few to say
	Over      float64  `json:"worst_minute_over"`
	Worst     float64  `json:"worst_ten_seconds"` // attempts a call
	Held      *float64 `json:"held"`              // calls in progress, on average; null in old files
}

type unmet struct {
	Demand string `json:"demand"`
	Rivals string `json:"rivals,omitempty"`
	Text   string `json:"text"`
}

func printJSON(out io.Writer, t task, flown []battery.Outcome) error {
	all := account{Policy: t.plan.Judged.Name, Seeds: t.seeds, Drawn: t.drawn}
	for i := range flown {
		o := &flown[i]
		w := world{Family: o.World.Family, Name: o.World.Name, Scenario: battery.Digest(o.World.Scenario)}
		w.Peace = choice.Each(o.World.Peace, battery.Digest)
		for _, f := range o.Flown {
			c := contender{Name: f.Contender, Runs: written(f.Runs)}
			c.Peace = choice.Each(f.Peace, written)
			w.Contenders = append(w.Contenders, c)
		}
		for _, s := range o.Shortfalls() {
			w.Unmet = append(w.Unmet, unmet{string(s.Demand), s.Rival, s.Text})
		}
		all.Worlds = append(all.Worlds, w)
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(all)
}

func written(runs []battery.Figures) []figures {
	var all []figures
	for _, r := range runs {
		f := figures{Calls: r.Calls, Succeeded: r.Good, Attempts: r.Attempts, Few: r.Few, Over: r.Over, Worst: r.Worst, Held: &r.Held}
		if r.Settled {
			back := r.Back.Seconds()
			f.Back = &back
		}
		all = append(all, f)
	}
	return all
}

// readKnown reads the rivals' flights of an earlier run, without those of old files that lack a figure.
func readKnown(path string) (map[battery.Key]battery.Figures, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.CannotRead(err)
	}
	var all account
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s is not what lull battery --json printed: %w", path, err)
	}
	known := map[battery.Key]battery.Figures{}
	for _, w := range all.Worlds {
		digests := append([]string{w.Scenario}, w.Peace...)
		for _, c := range w.Contenders {
			if c.Name == all.Policy {
				continue // what is judged is flown anew
			}
			for i, runs := range append([][]figures{c.Runs}, c.Peace[:min(len(c.Peace), len(w.Peace))]...) {
				for n, r := range runs {
					if r.Held != nil {
						known[battery.Key{Scenario: digests[i], Contender: c.Name, Seed: n + 1}] = r.read()
					}
				}
			}
		}
	}
	return known, nil
}

func (r figures) read() battery.Figures {
	f := battery.Figures{Good: r.Succeeded, Calls: r.Calls, Attempts: r.Attempts, Few: r.Few, Over: r.Over, Worst: r.Worst, Held: *r.Held}
	if r.Back != nil {
		f.Settled, f.Back = true, time.Duration(*r.Back*float64(time.Second))
	}
	return f
}
