package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// writePage writes a page with the observed course beside those of the policies.
func (r *result) writePage(w io.Writer, command string) error {
	world, err := scenario.Format(r.world)
	if err != nil {
		return err
	}
	p := report.Page{
		Scenario: r.world, ScenarioYAML: string(world), Command: command, Version: cli.Version(), Seed: r.seed, Seeds: r.seeds,
		Measured: true, Windows: simulate.Windows(r.world), Notes: append(r.notes(), r.verdict()),
	}
	var own []config.NamedPolicy
	for _, c := range r.policies {
		own = append(own, config.NamedPolicy{Name: c.Name, Policy: c.Policy})
	}
	policies, err := config.FormatPolicies(own)
	if err != nil {
		return err
	}
	p.PoliciesYAML = string(policies)
	for _, d := range r.distances {
		if d.judged {
			p.Notes = append(p.Notes, fmt.Sprintf("Distance of %s: %s (seeds: %s to %s). Furthest off: %s, from %s.", names[d.figure],
				number(d.value), number(d.low), number(d.high), d.part.name, span(d.from, d.to)))
		}
	}
	if len(r.answers) == 0 {
		for _, q := range r.questions() {
			p.Notes = append(p.Notes, "To be known: "+q)
		}
	}
	for _, name := range columns {
		p.Verdict.Columns = append(p.Verdict.Columns, report.Column{Name: name})
	}
	add := func(name, title string, cells []string, courses []course) {
		m := sim.Summary{Contender: sim.Contender{Name: name, Title: title}}
		for _, c := range courses {
			m.Results = append(m.Results, sim.Result{Series: series(c, r.learned.Observed.Step.Seconds())})
		}
		p.Summaries = append(p.Summaries, m)
		row := report.Row{Name: name}
		for i := range columns {
			cell := report.Cell{Text: "–"}
			if cells != nil {
				cell.Text = cells[i]
			}
			row.Cells = append(row.Cells, cell)
		}
		p.Verdict.Rows = append(p.Verdict.Rows, row)
	}
	add("observed", "what was measured", nil, []course{r.observed})
	add(r.policies[0].Name, "the policy that ran, as the file has the world", nil, coursesOf(r.ran))
	for i, a := range r.answers {
		title := fmt.Sprintf("place %d of %d", i+1, len(r.answers))
		if i+1 < len(r.answers) {
			title += "; " + compared(a, r.answers[i+1])
		}
		add(a.Name, title, a.cells(), coursesOf(a.flights))
	}
	return report.Write(w, p)
}

// series holds the figures of a course for the charts of a page with Measured.
func series(c course, step float64) sim.Series {
	s := sim.Series{Step: seconds(step), Calls: c[arrivals], First: c[attempts], Retries: make([]float64, len(c[attempts])), Failed: c[failed]}
	for i := range c[p50] {
		s.P50, s.P99 = append(s.P50, seconds(max(c[p50][i], 0))), append(s.P99, seconds(max(c[p99][i], 0)))
	}
	return s
}

// figure is a number of a file: null if it is not known.
type figure float64

func (f figure) MarshalJSON() ([]byte, error) {
	if v := float64(f); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(math.Round(float64(f)*1e6) / 1e6)
}

func figuresOf(values []float64) (all []figure) {
	for _, v := range values {
		all = append(all, figure(v))
	}
	return all
}

// jsonReplay is the output of --json. Names in _s are seconds, rates are per second, shares from 0 to 1.
type jsonReplay struct {
	Schema     int            `json:"schema"` // 1
	Ran        string         `json:"ran"`
	Seed       uint64         `json:"seed"`
	Seeds      int            `json:"seeds"`
	Smaller    int            `json:"times_smaller"`
	Tolerance  figure         `json:"tolerance"`
	Reproduced bool           `json:"reproduced"`
	Figures    []jsonFigure   `json:"figures"`
	Draws      [][]string     `json:"draws"` // the assignments of each; without those in which the incident is not reproduced
	Drawn      int            `json:"drawn"`
	Questions  []string       `json:"questions"`
	Policies   []jsonPolicies `json:"policies"` // the best first; none if not reproduced
}

type jsonFigure struct {
	Name      string   `json:"name"`
	Distance  *figure  `json:"distance"` // null: it was not measured
	Low       figure   `json:"low"`
	High      figure   `json:"high"`
	From      figure   `json:"from_s"`
	To        figure   `json:"to_s"`
	Observed  []figure `json:"observed"`
	Simulated []figure `json:"simulated"`
}

type jsonPolicies struct {
	Name    string       `json:"name"`
	Flights []jsonFlight `json:"flights"` // one for each of draws
	Better  int          `json:"better_than_next"`
	Worse   int          `json:"worse_than_next"`
}

type jsonFlight struct {
	Seed     uint64  `json:"seed"`
	Back     *figure `json:"back_s"` // null: never, or it cannot be said
	Measured bool    `json:"back_measured"`
	Success  figure  `json:"success"`
	Attempts figure  `json:"attempts_a_call"`
	Held     figure  `json:"held"`
}

func (r *result) printJSON(w io.Writer) error {
	v := jsonReplay{Schema: 1, Ran: r.policies[0].Name, Seed: r.seed, Seeds: r.seeds, Smaller: r.smaller, Tolerance: figure(r.tolerance),
		Reproduced: !r.refused(), Drawn: r.drawn, Questions: r.questions()}
	simulated := median(coursesOf(r.ran))
	for k, d := range r.distances {
		f := jsonFigure{Name: names[k], Observed: figuresOf(r.observed[k]), Simulated: figuresOf(simulated[k])}
		if d.judged {
			value := figure(d.value)
			f.Distance, f.Low, f.High, f.From, f.To = &value, figure(d.low), figure(d.high), figure(d.from.Seconds()), figure(d.to.Seconds())
		}
		v.Figures = append(v.Figures, f)
	}
	for _, d := range r.draws {
		v.Draws = append(v.Draws, append([]string{}, d.values...))
	}
	for i, a := range r.answers {
		p := jsonPolicies{Name: a.Name}
		if i+1 < len(r.answers) {
			p.Better, p.Worse = versus(a, r.answers[i+1])
		}
		for _, f := range a.flights {
			one := jsonFlight{Seed: f.Seed, Measured: f.Recovery.Measured, Success: figure(f.Totals.SuccessRate()), Attempts: figure(f.Totals.Amplification), Held: figure(f.HeldRate())}
			if f.Recovery.Recovered {
				back := figure(f.Recovery.Time.Seconds())
				one.Back = &back
			}
			p.Flights = append(p.Flights, one)
		}
		v.Policies = append(v.Policies, p)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(v)
}
