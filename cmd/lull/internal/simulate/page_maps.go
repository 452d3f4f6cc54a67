package simulate

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// maps returns the maps of a sweep, the last axis across.
func (o outcome) maps() *report.Maps {
	across := o.axes[len(o.axes)-1]
	m := &report.Maps{
		Title: "Recovered or not",
		About: "A cell has the time from the end of the last fault to recovery, and below it the share of calls that succeeded. " +
			"3/5: three of five seeds recovered, and the time is theirs.",
		X: report.Parameter{Name: across.path, Values: across.values},
		Legend: []report.MapCell{{Text: "quick", Class: "level-0"}, {Class: "level-1"}, {Class: "level-2"}, {Class: "level-3"}, {Text: "slow", Class: "level-4"},
			{Text: "some seeds", Class: "mixed"}, {Text: "✗ never", Class: "never"}},
	}
	if len(o.axes) > 1 {
		m.Y = report.Parameter{Name: o.axes[0].path, Values: o.axes[0].values}
	}
	shortest, longest := math.Inf(1), 0.0
	for _, s := range slices.Concat(o.results...) {
		if s.Recovered > 0 {
			shortest, longest = min(shortest, max(s.Recovery.Mean, 1e-3)), max(longest, s.Recovery.Mean)
		}
	}
	for _, c := range o.contenders {
		g := report.Grid{Name: c.Name}
		for from := 0; from < len(o.cells); from += len(across.values) {
			row := make([]report.MapCell, len(across.values))
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

// maps returns the maps of stability, the load across.
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
