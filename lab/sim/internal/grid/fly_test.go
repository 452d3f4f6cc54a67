package grid

import (
	"testing"
	"time"
)

func TestScenariosAreValid(t *testing.T) {
	cells := Cells(Loads, Fleets, Outages, append(Lengths[:len(Lengths):len(Lengths)], Edges...))
	if len(cells) != 1000 {
		t.Errorf("%d cells, and the package comment says 1,000", len(cells))
	}
	for _, c := range cells {
		if err := c.Scenario(After).Validate(); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	for _, e := range PeaceErrors {
		for _, after := range []time.Duration{0, 2 * time.Second} {
			p := Peace{Load: 0.8, Processes: 1, Errors: e, After: after, For: PeaceTime}
			if err := p.Scenario().Validate(); err != nil {
				t.Errorf("%v: %v", p, err)
			}
		}
	}
}
