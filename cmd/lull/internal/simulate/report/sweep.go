package report

import (
	"fmt"
	"math"
	"time"
)

// A Sweep is a comparison over the values of one or two parameters.
type Sweep struct {
	// X is across, Y is down. Without values of Y only X is swept.
	X, Y  Parameter
	Grids []Grid
}

// A Parameter is swept over. Name and Values are as they were typed.
type Parameter struct {
	Name   string
	Values []string
}

// A Grid has the results of one contender, as Cells[y][x]. Missing cells were not computed.
type Grid struct {
	Contender string
	Cells     [][]Cell
}

// A Cell is the result of one contender at one point of a sweep.
type Cell struct {
	Seeds     int           // completed runs
	Measured  bool          // there was something to recover from
	Recovered int           // runs
	Time      time.Duration // to recover: the mean of the runs that did
	Success   float64       // the share of calls that succeeded, 0 to 1
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

// levels is how many shades the time to recover has.
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
	if c.Time > shortest { // each level is slower than the one before by the same factor
		level = min(levels-1, int(levels*math.Log(c.Time.Seconds()/shortest.Seconds())/math.Log(longest.Seconds()/shortest.Seconds())))
	}
	return heatCell{Text: span(c.Time), More: more, Class: fmt.Sprintf("back level-%d", level)}
}
