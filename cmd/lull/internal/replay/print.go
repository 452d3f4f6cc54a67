package replay

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

const mostBars = 60 // columns of a plot

var titles = [figures]string{"Arrivals, calls a second", "Attempts a second", "Share that fails", "Time, p50 of what succeeds", "Time, p99 of what succeeds"}

// text returns a value of a figure.
func text(figure int, v float64) string {
	switch {
	case figure == failed:
		return simulate.PercentOf(v)
	case figure >= p50:
		return simulate.InWords(seconds(v))
	}
	return simulate.Trimmed(v, 3)
}

func (r *result) print(out io.Writer, bars term.Bars) error {
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(term.Fill("", fmt.Sprintf(format, args...))) }
	list := func(heading string, all []string) {
		for i, each := range all {
			if i == 0 {
				b.WriteString("\n" + heading + "\n")
			}
			b.WriteString(term.Fill("  - ", each))
		}
	}
	say("%s", r.flown())
	rows := [][]string{{"", "distance", "of the seeds", "furthest off"}}
	for k, d := range r.Distances {
		if d.Distance < 0 {
			rows = append(rows, []string{d.Figure, "not measured", "", ""})
			continue
		}
		rows = append(rows, []string{d.Figure, number(d.Distance), number(d.Low) + " to " + number(d.High), d.Part + ", from " + span(d.From, d.To)})
		columns := min(len(d.Observed), mostBars)
		seen, flown := shrunk(d.Observed, columns), shrunk(d.Simulated, columns)
		top := slices.Max(known(slices.Concat(seen, flown)))
		line := func(v []float64) string { return strings.TrimRight(bars.Line(v, top), " ") }
		fmt.Fprintf(&b, "\n%s: %c is %s\n  observed   %s\n  simulated  %s\n             %s\n", titles[k], bars.Highest(), text(k, top),
			line(seen), line(flown), simulate.Axis(r.world, columns, bars))
	}
	fmt.Fprintln(&b, "\nDistance from what was observed: 0 is alike, 1 has nothing in common")
	term.Table(&b, rows, term.Width)
	most := slices.MaxFunc(append(r.Draws, nil), func(a, b []string) int { return cmp.Compare(len(a), len(b)) }) // of what is drawn
	if b.WriteByte('\n'); r.FileOff != "" {
		say("%s", r.FileOff)
		b.WriteByte('\n')
		say("That is so with the values of the file. Of %d draws of what is not known exactly %d do what was observed, such as the one with %s. %s", r.Drawn, len(r.Draws), strings.Join(most, ", "), r.verdict())
	} else {
		say("%s", r.verdict())
	}
	switch {
	case r.Policies != nil:
		r.printPolicies(&b, say, len(most))
		list("What the file does not know:", r.Questions)
	case r.Reproduced && r.capacityOpen():
		say("But requests waited in it, and nobody knows how many the service can answer: that decides when each policy is back.")
	case r.Reproduced:
		say("But the values that are not known exactly are too uncertain: it is reproduced with none of %s of them.", term.Counted(r.Drawn, "draw"))
	}
	if r.Policies == nil {
		list("What would have to be known:", append(r.Questions, "whether there was another fault, a load that was not measured, or another policy than "+r.Ran))
		var seen []string
		for _, f := range r.learned.Seen {
			seen = append(seen, fmt.Sprintf("%s: %s", f.What, joined(f.Low, f.High)))
		}
		list("What was seen, too:", seen)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// printPolicies prints what the policies did, with so many uncertain values.
func (r *result) printPolicies(b *strings.Builder, say func(string, ...any), uncertain int) {
	n := len(r.Draws)
	b.WriteByte('\n')
	say("What the policies do in it. Figures are from the lowest to the highest of %d flights; another one lies between them with %.0f %%. They are back some time after the beginning of the incident.", n, 100*float64(n-1)/float64(n+1))
	if uncertain > 0 {
		say("Each flight has a draw of its own of %s. %d of %d draws are left out: with them %s does not do what was observed.", term.Counted(uncertain, "uncertain value"), r.Drawn-n, r.Drawn, r.Ran)
	}
	rows := [][]string{append([]string{""}, columns...)}
	for _, a := range r.Policies {
		rows = append(rows, append([]string{a.Name}, a.cells()...))
	}
	b.WriteByte('\n')
	term.Table(b, rows, term.Width)
	b.WriteByte('\n')
	for i := range r.Policies {
		b.WriteString(term.Fill(fmt.Sprintf("%2d. ", i+1), r.place(i)))
	}
}

// flown says what was flown.
func (r *result) flown() string {
	begin, end := r.world.Disturbance()
	text := fmt.Sprintf("%s: an incident from %s. The policy that ran: %s. %s.", cmp.Or(r.world.Title, r.world.Name), span(begin, cmp.Or(end, r.world.Horizon)), r.Ran, term.Counted(r.seeds, "seed"))
	if r.AtService {
		text += " What was observed is what the service wrote down: it does not notice that callers have gone."
	}
	if n := len(r.whole.Services) - len(r.world.Services); n > 0 {
		text += fmt.Sprintf(" It is of %s. The file does not say what was observed of %s more.", r.world.Services[0].Name, term.Counted(n, "service"))
	}
	if r.Smaller > 1 {
		text += fmt.Sprintf(" To take about two minutes of one processor, the world was made %d times smaller: load, processes, workers and queues. Chance does more in it.", r.Smaller)
	}
	return text
}

// verdict says whether the incident is reproduced.
func (r *result) verdict() string {
	var off []string
	far := 0.0
	for k, d := range r.Distances {
		if far = max(far, d.Distance); d.Distance > r.Tolerance {
			off = append(off, fmt.Sprintf("%s by %s (from %s: observed %s, simulated %s)", d.Figure, number(d.Distance), span(d.From, d.To), text(k, d.Seen), text(k, d.Flown)))
		}
	}
	if off != nil {
		return fmt.Sprintf("The incident is not reproduced: off by more than %s are %s.", number(r.Tolerance), strings.Join(off, "; "))
	}
	return fmt.Sprintf("The incident is reproduced: no figure is further off than %s (allowed: %s).", number(far), number(r.Tolerance))
}

// shrunk returns the means of equal parts.
func shrunk(values []float64, columns int) (out []float64) {
	for i := range columns {
		out = append(out, average(values[i*len(values)/columns:(i+1)*len(values)/columns]))
	}
	return out
}

var columns = []string{"back after", "success", "attempts a call", "calls held"}

// cells are the figures of a policy.
func (a answer) cells() []string {
	back := "cannot be said"
	recovered := slices.DeleteFunc(slices.Clone(a.Flights), func(f flight) bool { return !f.Recovery.Recovered })
	if never := len(a.Flights) - len(recovered); len(recovered) > 0 {
		back = ranged(recovered, func(f *flight) float64 { return f.Back }, func(v float64) string { return text(p50, v) })
		if never > 0 {
			back += fmt.Sprintf("; never in %d of %d", never, len(a.Flights))
		}
	} else if a.Flights[0].Recovery.Measured {
		back = "never"
	}
	return []string{
		back,
		ranged(a.Flights, func(f *flight) float64 { return f.Totals.SuccessRate() }, simulate.PercentOf),
		ranged(a.Flights, func(f *flight) float64 { return f.Totals.Amplification }, number),
		ranged(a.Flights, func(f *flight) float64 { return f.Held }, func(v float64) string { return simulate.Trimmed(v, 3) }),
	}
}

// ranged returns the lowest and the highest value of some flights.
func ranged(all []flight, of func(*flight) float64, text func(float64) string) string {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range all {
		low, high = min(low, of(&all[i])), max(high, of(&all[i]))
	}
	return joined(text(low), text(high))
}

// place returns the policy of a place, and how surely it is better than the next.
func (r *result) place(i int) string {
	a := r.Policies[i]
	if i == len(r.Policies)-1 {
		return a.Name
	}
	b, n := r.Policies[i+1], len(a.Flights)
	wins, losses := versus(a, b)
	if wins+losses == 0 {
		return fmt.Sprintf("%s: as good as %s in all %d flights", a.Name, b.Name, n)
	}
	// Surely: the lower end of the 95 % interval (Wilson, 1927) of its wins among the flights that differ is above a half.
	sure := choice.Either(float64(wins-losses) > 1.96*math.Sqrt(float64(wins+losses)), "surely", "perhaps")
	return fmt.Sprintf("%s: %s better than %s. It is better in %d of %d flights, and worse in %d.", a.Name, sure, b.Name, wins, n, losses)
}

func number(v float64) string { return fmt.Sprintf("%.2f", v) }

func span(a, b time.Duration) string { return joined(simulate.InWords(a), simulate.InWords(b)) }

// joined is a range: 38 to 55 s, not 38 s to 55 s.
func joined(low, high string) string {
	if low == high {
		return low
	}
	if _, unit, ok := strings.Cut(high, " "); ok {
		low = strings.TrimSuffix(low, " "+unit)
	}
	return low + " to " + high
}

// writePage writes a page with the observed course beside those of the policies.
func (r *result) writePage(w io.Writer, command string) error {
	world, err := scenario.Format(r.world)
	if err != nil {
		return err
	}
	p := report.Page{Scenario: r.world, ScenarioYAML: string(world), Command: command, Version: cli.Version(),
		PoliciesYAML: r.file, Measured: true, Windows: simulate.Windows(r.world), Notes: []string{r.flown(), r.verdict()}}
	for _, name := range columns {
		p.Verdict.Columns = append(p.Verdict.Columns, report.Column{Name: name})
	}
	add := func(name, title string, all []flight, cells ...string) {
		m := sim.Summary{Contender: sim.Contender{Name: name, Title: title}}
		for _, f := range all {
			c := f.course
			s := sim.Series{Step: r.learned.Observed.Step, Calls: c[arrivals], First: c[attempts]}
			for i, share := range c[failed] {
				s.Good, s.P50, s.P99 = append(s.Good, 1-share), append(s.P50, seconds(c[p50][i])), append(s.P99, seconds(c[p99][i]))
			}
			m.Results = append(m.Results, sim.Result{Series: s})
		}
		row := report.Row{Name: name}
		for _, text := range append(cells, make([]string, len(columns)-len(cells))...) {
			row.Cells = append(row.Cells, report.Cell{Text: text})
		}
		p.Summaries, p.Verdict.Rows = append(p.Summaries, m), append(p.Verdict.Rows, row)
	}
	var observed flight
	for k, d := range r.Distances {
		observed.course[k] = d.Observed
	}
	add("observed", "what was measured", []flight{observed})
	if len(r.Policies) == 0 {
		p.Notes = append(p.Notes, r.Questions...)
		add(r.Ran, "the policy that ran", r.ran)
	}
	for i, a := range r.Policies {
		add(a.Name, fmt.Sprintf("place %d; %s", i+1, r.place(i)), a.Flights, a.cells()...)
	}
	return report.Write(w, p)
}
