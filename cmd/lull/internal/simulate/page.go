package simulate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

func (o outcome) writePage(w io.Writer, command string) error {
	page, err := o.page(command)
	if err != nil {
		return err
	}
	return report.Write(w, page)
}

func (o outcome) page(command string) (report.Page, error) {
	scenario, err := scenario.Format(o.scenario)
	if err != nil {
		return report.Page{}, err
	}
	policies, err := o.policiesFile()
	if err != nil {
		return report.Page{}, err
	}
	p := report.Page{
		Scenario: o.scenario, ScenarioYAML: string(scenario), PoliciesYAML: policies,
		Command: command, Version: cli.Version(),
		Seed: o.seed, Seeds: o.seeds, Interrupted: o.interrupted,
	}
	if o.swept() {
		p.Maps = o.maps()
		return p, nil
	}
	all := o.results[0]
	p.Summaries, p.Windows = all, pageWindows(o.scenario)
	columns := columnsFor(o.scenario, all)
	if !slices.ContainsFunc(columns, func(c column) bool { return c.head == medianColumn.head }) {
		columns = append(columns, medianColumn) // the page has room
	}
	p.Verdict = pageTable(columns, all)
	markBest(p.Verdict, columns, all)
	if some, fleets := ofFleets(o.scenario, columns, all); fleets != nil {
		p.OfFleets = pageTable(some, fleets)
	}
	if o.seeds > 1 {
		p.OfSeeds = seedTable(columns, all)
	}
	for _, sentence := range findings(o.scenario, all) {
		p.Notes = append(p.Notes, strings.ReplaceAll(sentence, "\n  ", " "))
	}
	return p, nil
}

// policiesFile returns the policies as a file. Presets, which are more than data, are
// named in comments.
func (o outcome) policiesFile() (string, error) {
	var b strings.Builder
	var own []config.NamedPolicy
	for _, c := range o.contenders {
		if c.preset {
			fmt.Fprintf(&b, "# preset %s: %s\n", c.Name, c.Title)
		} else {
			own = append(own, config.NamedPolicy{Name: c.Name, Policy: c.Policy})
		}
	}
	if len(own) == 0 {
		return b.String(), nil
	}
	file, err := config.FormatPolicies(own)
	return b.String() + string(file), err
}

func (f Command) command() string {
	words := []string{"lull", "simulate"}
	if f.Scenario != "" {
		words = append(words, shellQuoted(string(f.Scenario)))
	}
	add := func(flag string, values ...cli.Text) {
		for _, v := range values {
			if v != "" {
				words = append(words, flag, shellQuoted(string(v)))
			}
		}
	}
	add("--policy", f.Policy...)
	add("--clients", f.Clients)
	add("--horizon", f.Horizon)
	add("--set", f.Set...)
	add("--sweep", f.Sweep...)
	add("--seed", f.Seed)
	if f.Seeds != "1" {
		add("--seeds", f.Seeds)
	}
	if f.Map {
		words = append(words, "--map")
	}
	add("--report", f.Report)
	return strings.Join(words, " ")
}

func shellQuoted(v string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=,:+%@", r)
	}
	if v != "" && strings.IndexFunc(v, func(r rune) bool { return !plain(r) }) < 0 {
		return v
	}
	return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'"
}

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
