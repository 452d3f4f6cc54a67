package report

import (
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// flown returns a summary of results that recovered in so many seconds; negative: did not
// recover.
func flown(name string, success sim.Estimate, recovery ...float64) sim.Summary {
	s := sim.Summary{Contender: sim.Contender{Name: name}, Success: success}
	for _, after := range recovery {
		r := sim.Result{Recovery: sim.Recovery{Measured: true, Final: 0.25}}
		if after >= 0 {
			r.Recovery.Recovered, r.Recovery.Time = true, time.Duration(after*float64(time.Second))
			s.Recovery.Mean += after
			s.Recovered++
		}
		s.Results = append(s.Results, r)
	}
	if s.Recovered > 0 {
		s.Recovery.Mean /= float64(s.Recovered)
	}
	return s
}

func TestVerdict(t *testing.T) {
	p := Page{Seeds: 2, Summaries: []sim.Summary{
		flown("quick", sim.Estimate{Mean: 0.9, Half: 0.01}, 8, 10),
		flown("lucky", sim.Estimate{Mean: 0.885, Half: 0.01}, 2, -1), // not the quickest: one seed did not recover
		flown("stuck", sim.Estimate{Mean: 0.4, Half: 0.1}, -1, -1),
	}}
	v := newVerdict(p, contenders(p))
	text := func(c cell) string {
		s := c.Text + "/" + c.More
		if c.Best {
			s += "/best"
		}
		return strings.ReplaceAll(s, nbsp, " ")
	}
	for column, want := range map[string][]string{
		"Recovered":       {"✓ yes/2 of 2", "1 of 2/25 % at the end", "✗ no/25 % at the end"},
		"Time to recover": {"9 s//best", "2 s/", "never/"},
		"Success":         {"90 %/± 1 %/best", "88.5 %/± 1 %/best", "40 %/± 10 %"}, // the first two can't be told apart
	} {
		found := false
		for i, c := range v.Columns {
			if c.Name != column {
				continue
			}
			found = true
			for k, row := range v.Rows {
				if got := text(row.Cells[i]); got != want[k] {
					t.Errorf("%s of %s: %q, want %q", column, row.Name, got, want[k])
				}
			}
		}
		if !found {
			t.Errorf("no column %s", column)
		}
	}
	if got, want := strings.ReplaceAll(v.Summary, nbsp, " "), "1 of 3 recovered with every seed, the quickest in 9 s (quick); stuck did not before the end."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNobodyIsBestWhereAllAreAlike(t *testing.T) {
	p := Page{Summaries: []sim.Summary{flown("a", sim.Estimate{Mean: 1}, 5), flown("b", sim.Estimate{Mean: 1}, 5)}}
	v := newVerdict(p, contenders(p))
	for _, row := range v.Rows {
		for i, c := range row.Cells {
			if c.Best {
				t.Errorf("%s is best in %s", row.Name, v.Columns[i].Name)
			}
		}
	}
}

func TestConclusion(t *testing.T) {
	one := sim.Estimate{Mean: 1}
	for _, c := range []struct {
		summaries []sim.Summary
		want      string
	}{
		{[]sim.Summary{flown("a", one)}, ""},
		{[]sim.Summary{flown("a", one, -1), flown("b", one, -1)}, "None recovered before the end."},
		{[]sim.Summary{flown("a", one, 4)}, "It recovered, in 4 s."},
		{[]sim.Summary{flown("a", one, 4), flown("b", one, 3)}, "2 of 2 recovered, the quickest in 3 s (b)."},
		{[]sim.Summary{flown("a", one, 4), flown("b", one, 3), flown("c", one, 3)}, "3 of 3 recovered, the quickest in 3 s (b, c)."},
		{[]sim.Summary{flown("a", one, 3), flown("b", one, 3), flown("c", one, -1)}, "2 of 3 recovered, in 3 s; c did not before the end."},
	} {
		if got := strings.ReplaceAll(conclusion(Page{Summaries: c.summaries}), nbsp, " "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestHeat(t *testing.T) {
	h := newHeat(&Sweep{
		X: Parameter{"load", []string{"0.5", "0.8", "0.9"}},
		Y: Parameter{"stall", []string{"1s", "10s"}},
		Grids: []Grid{{"lull", [][]Cell{
			{{Seeds: 5, Measured: true, Recovered: 5, Time: time.Second, Success: 0.999}, {Seeds: 5, Measured: true, Recovered: 5, Time: 100 * time.Second, Success: 0.9}, {Seeds: 5, Success: 1}},
			{{Seeds: 5, Measured: true, Recovered: 3, Time: 20 * time.Second, Success: 0.5}, {Seeds: 5, Measured: true}},
		}}},
	})
	var got []string
	for _, row := range h.Grids[0].Rows {
		for _, c := range row.Cells {
			got = append(got, strings.ReplaceAll(c.Text+"/"+c.More+"/"+c.Class, nbsp, " "))
		}
	}
	want := "1 s/99.9 %/back level-0; 100 s/90 %/back level-4; –/100 %/blank; 3/5 · 20 s/50 %/mixed; ✗ never/0 %/never; ·//blank"
	if strings.Join(got, "; ") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "; "), want)
	}
}
