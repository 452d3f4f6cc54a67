package report

import (
	"fmt"
	"math"
	"time"
)

// A Sweep is a comparison over the values of one parameter or two.
type Sweep struct {
	// X runs across, Y down. Y without values: only X is swept.
	X, Y  Parameter
	Grids []Grid
}

// A Parameter is what is swept over.
type Parameter struct {
	// Name as it was set, such as "load".
	Name string
	// Values as they were set, in their order.
	Values []string
}

// A Grid is what became of one contender.
type Grid struct {
	Contender string
	// Cells by Y, then by X: Cells[y][x]. What is missing was not computed.
	Cells [][]Cell
}

// A Cell is what became of one contender at one point of a sweep.
type Cell struct {
	// Seeds is how many runs there were. Zero: none, as when somebody stopped it.
	Seeds int
	// Measured: there was something to recover from.
	Measured bool
	// Recovered is how many of the runs did, Time the mean time of those.
	Recovered int
	Time      time.Duration
	// Success is the share of calls that succeeded, 0 to 1.
	Success float64
}

// heat is a Sweep as the template reads it.
type heat struct {
	X, Y    string
	Across  []string
	Grids   []heatGrid
	TwoWays bool
	Mixed   bool
}

type heatGrid struct {
	Name string
	Rows []heatRow
}

type heatRow struct {
	Name  string
	Cells []heatCell
}

type heatCell struct{ Text, More, Class string }

// levels of shading of the time to recover.
const levels = 5

func newHeat(s *Sweep) *heat {
	if s == nil || len(s.Grids) == 0 || len(s.X.Values) == 0 {
		return nil
	}
	h := &heat{X: s.X.Name, Y: s.Y.Name, Across: s.X.Values, TwoWays: len(s.Y.Values) > 0}
	down := s.Y.Values
	if !h.TwoWays {
		down = []string{""}
	}
	var shortest, longest time.Duration
	for _, g := range s.Grids {
		for _, row := range g.Cells {
			for _, c := range row {
				longest = max(longest, c.Time)
				if c.Time > 0 && (shortest == 0 || c.Time < shortest) {
					shortest = c.Time
				}
				h.Mixed = h.Mixed || c.Recovered > 0 && c.Recovered < c.Seeds
			}
		}
	}
	for _, g := range s.Grids {
		grid := heatGrid{Name: g.Contender}
		for y, name := range down {
			row := heatRow{Name: name}
			for x := range h.Across {
				var c Cell
				if y < len(g.Cells) && x < len(g.Cells[y]) {
					c = g.Cells[y][x]
				}
				row.Cells = append(row.Cells, c.shown(shortest, longest))
			}
			grid.Rows = append(grid.Rows, row)
		}
		h.Grids = append(h.Grids, grid)
	}
	return h
}

func (c Cell) shown(shortest, longest time.Duration) heatCell {
	more := percent(c.Success)
	switch {
	case c.Seeds == 0:
		return heatCell{Text: "·", Class: "blank"}
	case !c.Measured:
		return heatCell{Text: "–", More: more, Class: "blank"}
	case c.Recovered == 0:
		return heatCell{Text: "✗" + nbsp + "never", More: more, Class: "never"}
	case c.Recovered < c.Seeds:
		return heatCell{Text: fmt.Sprintf("%d/%d%s%s", c.Recovered, c.Seeds, nbsp+"·"+nbsp, span(c.Time)), More: more, Class: "mixed"}
	}
	level := 0
	if c.Time > shortest { // each level is the same number of times slower than the one before
		level = min(levels-1, int(levels*math.Log(c.Time.Seconds()/shortest.Seconds())/math.Log(longest.Seconds()/shortest.Seconds())))
	}
	return heatCell{Text: span(c.Time), More: more, Class: fmt.Sprintf("back level-%d", level)}
}
