package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

func TestWindows(t *testing.T) {
	second := time.Second
	s := sim.Scenario{
		Horizon: 100 * second,
		Services: []sim.Service{
			{Name: "db", Hosts: 10, Faults: []sim.Fault{
				{Kind: sim.Stall, At: 20 * second, For: 5 * second},
				{Kind: sim.SlowDown, At: 90 * second, For: 60 * second, Hosts: 1},
				{Kind: sim.Crash, At: 500 * second, For: second},
			}},
			{Name: "web", Faults: []sim.Fault{
				{Kind: sim.Errors, At: 10 * second, For: 2 * second, Every: 30 * second, Share: 0.25},
			}},
		},
		Fleets: []sim.Fleet{
			{Name: "apps", Arrivals: sim.Arrivals{Rate: 10, Ramp: []sim.RampPoint{{At: 0, Factor: 0.5}, {At: 50 * second, Factor: 0.5}, {At: 60 * second, Factor: 2}, {At: 70 * second, Factor: 0.5}}}},
			{Name: "slow", Arrivals: sim.Arrivals{Rate: 10, Ramp: []sim.RampPoint{{At: 0, Factor: 1}, {At: 100 * second, Factor: 3}}}}, // no surge: the load stays high
			{Name: "herd", Processes: 1000, Arrivals: sim.Arrivals{Kind: sim.AtOnce, At: 5 * second, Each: 3}},
		},
	}
	var got []string
	for _, w := range windows(s) {
		got = append(got, strings.ReplaceAll(fmt.Sprintf("%s; %s; %s; %s", w.When(), w.Kind, w.Mark, w.What), nbsp, " "))
	}
	want := []string{
		"5 s; surge; at once; herd: 3,000 calls begin together",
		"10 s to 12 s; fault; web: errors; web: 25 % of the attempts fail, every 30 s",
		"20 s to 25 s; fault; db: stall; db: workers stand still, and attempts wait",
		"40 s to 42 s; fault; ; ",
		"50 s to 70 s; surge; load × 4; apps: up to 4 times as many calls",
		"70 s to 72 s; fault; ; ",
		"90 s to 100 s; fault; db: slow-down; db: work goes on at 10 % of its speed (1 of 10 hosts)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMarksDoNotMeet: the marks of a row do not touch, and become numbers if there are too
// many for the rows.
func TestMarksDoNotMeet(t *testing.T) {
	s := sim.Scenario{Horizon: 60 * time.Second, Services: []sim.Service{{Name: "db"}}}
	add := func(at time.Duration) {
		s.Services[0].Faults = append(s.Services[0].Faults, sim.Fault{Kind: sim.Stall, At: at, For: time.Second})
	}
	add(10 * time.Second)
	add(11 * time.Second)
	add(50 * time.Second)
	ws := windows(s)
	if ws[0].Row == ws[1].Row || ws[2].Row != 0 || ws[2].Anchor != "end" || !strings.HasPrefix(ws[0].Mark, "stall") {
		t.Errorf("three marks: %+v", ws)
	}
	for i := range 5 {
		add(time.Duration(12+i) * time.Second)
	}
	ws = windows(s)
	for i, w := range ws {
		if w.Mark != fmt.Sprint(i+1) {
			t.Errorf("mark %d is %q", i, w.Mark)
		}
	}
}
