package grid

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/sim"
)

func TestBefore(t *testing.T) {
	at := func(d time.Duration) Recovered { return Recovered{true, d} }
	for _, c := range []struct {
		a, b Recovered
		want bool
	}{
		{at(3 * time.Second), at(5 * time.Second), false}, // a tie
		{at(2999 * time.Millisecond), at(5 * time.Second), true},
		{at(100 * time.Second), Recovered{}, true},
		{Recovered{}, at(100 * time.Second), false},
		{Recovered{}, Recovered{}, false},
	} {
		if got := c.a.Before(c.b); got != c.want {
			t.Errorf("%+v before %+v: %v", c.a, c.b, got)
		}
	}
}

func TestAbove(t *testing.T) {
	for _, c := range []struct {
		a, b Success
		want bool
	}{
		{Success{99_989, 100_000}, Success{99_980, 100_000}, false},                       // less than a hundredth of a point
		{Success{9_900, 10_000}, Success{9_880, 10_000}, false},                           // 0.2 points, an interval of 0.29
		{Success{990_000, 1_000_000}, Success{988_000, 1_000_000}, true},                  // 0.2 points, 0.029
		{Success{988_000, 1_000_000}, Success{990_000, 1_000_000}, false},                 // the other way round
		{Success{}, Success{}, false},                                                     // nobody called
		{Success{1, 1}.Add(Success{999_999, 999_999}), Success{999_000, 1_000_000}, true}, // a tenth of a point
	} {
		if got := c.a.Above(c.b); got != c.want {
			t.Errorf("%+v above %+v: %v", c.a, c.b, got)
		}
	}
}

// A minute's attempts above the ratio are found wherever the minute begins.
func TestWorstMinute(t *testing.T) {
	s := sim.Series{Step: time.Second}
	for i := range 200 {
		s.Calls = append(s.Calls, 100)
		s.First = append(s.First, 100)
		retries := 10.0 // just the ratio
		if i >= 77 && i < 87 {
			retries = 30 // 200 more in ten seconds
		}
		if i == 150 {
			retries = 0
		}
		s.Retries = append(s.Retries, retries)
	}
	if got := WorstMinute(&s, 1.1); math.Abs(got-200) > 1e-6 {
		t.Errorf("%v attempts more than 1.1 times the calls, want 200", got)
	}
}

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
