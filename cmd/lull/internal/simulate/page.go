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
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
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
	p.Verdict = pageTable(columns, all)
	markBest(p.Verdict, columns, all)
	if some, fleets := ofFleets(o.scenario, columns, all); fleets != nil {
		p.OfFleets = pageTable(some, fleets)
	}
	if o.seeds > 1 {
		p.OfSeeds = seedTable(columns, all)
	}
	p.Notes = choice.Each(findings(o.scenario, all), func(sentence string) string { return strings.ReplaceAll(sentence, "\n  ", " ") })
	return p, nil
}

// policiesFile returns the policies as a file. Presets, which are more than data, are named in comments.
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

// markBest marks the best figure of each column, and those that are not certainly worse. Where all are alike, none is marked.
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

// rank returns the estimate by which a column ranks a summary, the greater the better; false: it cannot be the best.
func rank(c column, m sim.Summary) (e sim.Estimate, ok bool) {
	sign := -1.0
	switch c.name {
	case backColumn.name:
		e, ok = m.Recovery, m.Recovered == len(m.Results)
	case successColumn.name, handledColumn.name:
		e, ok, sign = m.Success, true, 1
	case perCallColumn.name, perMessageColumn.name:
		e, ok = m.Amplification, m.Amplification.Mean > 0
	case worstColumn.name:
		e, ok = m.WorstTenSeconds, m.WorstTenSeconds.Mean > 0
	case heldColumn(nil).name, "time held":
		e, ok = m.Held, m.Held.Mean > 0
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

func (o outcome) maps() *report.Maps {
	across := o.axes[len(o.axes)-1]
	m := &report.Maps{
		Title: "Recovered or not",
		About: "A cell has the time from the end of the last fault to recovery, and below it the share of calls that succeeded. " +
			"3/5: three of five seeds recovered, and the time is theirs.",
		X: report.Parameter{Name: across.Path, Values: across.Values},
		Legend: []report.MapCell{{Text: "quick", Class: "level-0"}, {Class: "level-1"}, {Class: "level-2"}, {Class: "level-3"}, {Text: "slow", Class: "level-4"},
			{Text: "some seeds", Class: "mixed"}, {Text: "✗ never", Class: "never"}},
	}
	if len(o.axes) > 1 {
		m.Y = report.Parameter{Name: o.axes[0].Path, Values: o.axes[0].Values}
	}
	shortest, longest := math.Inf(1), 0.0
	for _, s := range slices.Concat(o.results...) {
		if s.Recovered > 0 {
			shortest, longest = min(shortest, max(s.Recovery.Mean, 1e-3)), max(longest, s.Recovery.Mean)
		}
	}
	for _, c := range o.contenders {
		g := report.Grid{Name: c.Name}
		for from := 0; from < len(o.cells); from += len(across.Values) {
			row := make([]report.MapCell, len(across.Values))
			for x := range row {
				s, _ := o.summary(from+x, c.Name)
				row[x] = sweepCell(s, shortest, longest)
			}
			g.Cells = append(g.Cells, row)
		}
		m.Grids = append(m.Grids, g)
	}
	return m
}

// sweepCell returns the cell of a sweep. The shortest and the longest time to recover have the first and the last of five shades.
func sweepCell(m sim.Summary, shortest, longest float64) report.MapCell {
	seeds, measured := 0, false
	for _, r := range m.Results {
		if !r.Interrupted {
			seeds++
		}
		measured = measured || r.Recovery.Measured
	}
	more, took := percentOf(m.Success.Mean), inWords(seconds(m.Recovery.Mean))
	switch {
	case seeds == 0:
		return report.MapCell{Text: "?", Class: "blank"}
	case !measured:
		return report.MapCell{Text: "–", More: more, Class: "blank"}
	case m.Recovered == 0:
		return report.MapCell{Text: "✗ never", More: more, Class: "never"}
	case m.Recovered < seeds:
		return report.MapCell{Text: fmt.Sprintf("%d/%d · %s", m.Recovered, seeds, took), More: more, Class: "mixed"}
	}
	level := 0
	if m.Recovery.Mean > shortest { // each level is slower than the one before by the same factor
		level = min(4, int(5*math.Log(m.Recovery.Mean/shortest)/math.Log(longest/shortest)))
	}
	tip := fmt.Sprintf("%s succeed, %.2f attempts per call (%.2f in the worst ten seconds), %s calls held",
		more, m.Amplification.Mean, m.WorstTenSeconds.Mean, trimmed(m.Held.Mean, 3))
	return report.MapCell{Text: took, More: more, Tip: tip, Class: fmt.Sprintf("level-%d", level)}
}

var (
	mapClasses = [...]string{comesBack: "back", onlyHelped: "help", neverBack: "never"}
	mapWords   = [...]string{comesBack: "comes back by itself", onlyHelped: "comes back only with help", neverBack: "never comes back"}
)

func (m stabilityMap) maps() *report.Maps {
	first := m.of[0][0]
	maps := &report.Maps{
		Title: "Where it comes back",
		About: fmt.Sprintf("Across is the load%s. Down is the %s. The maps were found in %s.", m.capacity(), m.rows(), term.Counted(m.runs(), "run")),
		X:     report.Parameter{Name: "calls a second"}, Y: report.Parameter{Name: "outage"},
	}
	if first.Theory != nil {
		maps.About += " The line is the boundary without retries, by queueing theory."
	}
	for s, meaning := range m.meanings() {
		maps.Legend = append(maps.Legend, report.MapCell{Text: marks[s] + " " + meaning, Class: mapClasses[s]})
	}
	for _, l := range first.Loads {
		maps.X.Values = append(maps.X.Values, loadInWords(l))
	}
	for _, d := range first.Outages {
		maps.Y.Values = append(maps.Y.Values, inWords(d))
	}
	for i, c := range m.contenders {
		for n, s := range m.of[i] {
			maps.Grids = append(maps.Grids, report.Grid{Name: c.Name + ", " + each(m.sizes[n], "1 process", "processes"), Cells: stabilityCells(s)})
		}
	}
	return maps
}

func stabilityCells(m sim.Stability) (rows [][]report.MapCell) {
	for d, outage := range m.Outages {
		row := make([]report.MapCell, len(m.Loads))
		for l, load := range m.Loads {
			s := state(m, l, d)
			row[l] = report.MapCell{Text: marks[s], Class: mapClasses[s],
				Tip: fmt.Sprintf("%s calls a second, an outage of %s: %s", loadInWords(load), inWords(outage), mapWords[s])}
			if m.Theory != nil && m.Theory[d] == l+1 {
				row[l].Class += " theory"
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (m stabilityMap) writePage(w io.Writer, command string) error {
	file, err := scenario.Format(m.scenario)
	if err != nil {
		return err
	}
	p := report.Page{Scenario: m.scenario, ScenarioYAML: string(file), Command: command, Version: cli.Version(), Seed: m.seed, Seeds: 1, Maps: m.maps()}
	p.Scenario.Horizon = 0 // the runs of a map differ in length
	return report.Write(w, p)
}
