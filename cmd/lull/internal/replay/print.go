package replay

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

const mostBars = 60 // columns of a plot

var titles = [figures]string{"Arrivals, calls a second", "Attempts a second", "Share that fails", "Time, p50 of what succeeds", "Time, p99 of what succeeds"}

// text returns a value of a figure.
func text(figure int, v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case figure == failed:
		return simulate.PercentOf(v)
	case figure >= p50:
		return simulate.InWords(seconds(v))
	}
	return simulate.Trimmed(v, 3)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// fill prints a text in lines.
func fill(out io.Writer, start, format string, args ...any) {
	io.WriteString(out, term.Fill(start, fmt.Sprintf(format, args...)))
}

func (r *result) print(out io.Writer, bars term.Bars) error {
	var b strings.Builder
	for _, note := range r.notes() {
		fill(&b, "", "%s", note)
	}
	r.plots(&b, bars)
	fmt.Fprintln(&b, "\nDistance of what is simulated from what was observed: 0 alike, 1 nothing in common")
	rows := [][]string{{"", "distance", "of the seeds", "furthest off"}}
	for k, d := range r.distances {
		row := []string{names[k], "not measured", "", ""}
		if d.judged {
			row = []string{names[k], number(d.value), number(d.low) + " to " + number(d.high),
				fmt.Sprintf("%s, from %s", d.part.name, span(d.from, d.to))}
		}
		rows = append(rows, row)
	}
	term.Table(&b, rows, term.Width)
	fill(&b, "", "\n%s", r.verdict())
	if len(r.answers) == 0 {
		r.printQuestions(&b)
	} else {
		r.printAnswers(&b)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// notes say what was flown.
func (r *result) notes() []string {
	begin, end := r.world.Disturbance()
	incident := "until the end"
	if end > 0 {
		incident = "to " + simulate.InWords(end)
	}
	notes := []string{fmt.Sprintf("%s: %s, with an incident from %s %s. The policy that ran: %s. %s.",
		cmp.Or(r.world.Title, r.world.Name), simulate.InWords(r.world.Horizon), simulate.InWords(begin), incident, r.policies[0].Name, term.Counted(r.seeds, "seed"))}
	if r.smaller > 1 {
		notes = append(notes, fmt.Sprintf("The world was made %d times smaller, in load, processes, workers and queues, to fly it in about a minute. Chance weighs more there than in the real one.", r.smaller))
	}
	if r.invalid != nil {
		notes = append(notes, fmt.Sprintf("%d of %d draws are left out, since they are no worlds: %v.", r.seeds-r.drawn, r.seeds, r.invalid))
	}
	return notes
}

// verdict says whether the incident is reproduced.
func (r *result) verdict() string {
	off := r.off()
	far := 0.0
	for _, d := range r.distances {
		far = max(far, d.value)
	}
	if len(off) == 0 {
		text := fmt.Sprintf("The incident is reproduced: no figure is further off than %s (allowed: %s).", number(far), number(r.tolerance))
		if end := r.parts[1].to; end > 0 {
			text += r.backs()
		}
		return text
	}
	var parts []string
	for _, d := range off {
		parts = append(parts, fmt.Sprintf("%s by %s (from %s: observed %s, simulated %s)", names[d.figure], number(d.value), span(d.from, d.to), text(d.figure, d.seen), text(d.figure, d.simulated)))
	}
	return fmt.Sprintf("The incident is not reproduced: off by more than %s are %s.%s", number(r.tolerance), strings.Join(parts, "; "), r.backs())
}

// backs compares how soon things were as before, by the share of failures in each step.
func (r *result) backs() string {
	_, end := r.world.Disturbance()
	if end == 0 || r.observed.known(failed, 0, len(r.observed[failed])) == 0 {
		return ""
	}
	step := r.learned.Observed.Step
	from, to := int(r.world.Horizon/step), 0
	begin := r.parts[1].from
	for _, f := range r.ran {
		first := int((end + step - 1) / step)
		n := back(f.course, begin, first) - first
		from, to = min(from, n), max(to, n)
	}
	return fmt.Sprintf(" Fewer than 5 %% more failed than before the incident after %s (observed) and %s (simulated), in steps of %s.",
		simulate.InWords(r.backSeen), span(time.Duration(from)*step, time.Duration(to)*step), simulate.InWords(step))
}

// plots draws what was observed above what is simulated.
func (r *result) plots(b *strings.Builder, bars term.Bars) {
	simulated := median(coursesOf(r.ran))
	n := len(simulated[arrivals])
	columns := min(n, mostBars)
	for k := range figures {
		if r.observed.known(k, 0, n) == 0 {
			continue
		}
		seen, flown := shrunk(r.observed[k], columns), shrunk(simulated[k], columns)
		top := 0.0
		for _, v := range slices.Concat(seen, flown) {
			if v > top { // and no gap
				top = v
			}
		}
		fmt.Fprintf(b, "\n%s: %c is %s\n", titles[k], bars.Highest(), text(k, top))
		fmt.Fprintf(b, "  observed   %s\n  simulated  %s\n", drawn(bars, seen, top), drawn(bars, flown, top))
		fmt.Fprintf(b, "             %s\n", simulate.Axis(r.world, columns, bars))
	}
}

// shrunk returns the means of equal parts, NaN where nothing is known.
func shrunk(values []float64, columns int) (out []float64) {
	for i := range columns {
		sum, n := 0.0, 0.0
		for _, v := range values[i*len(values)/columns : (i+1)*len(values)/columns] {
			if !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		out = append(out, sum/n)
	}
	return out
}

// drawn is a line of bars, with ? where nothing is known.
func drawn(bars term.Bars, values []float64, top float64) string {
	line := []rune(bars.Line(values, top))
	for i, v := range values {
		if math.IsNaN(v) {
			line[i] = '?'
		}
	}
	return strings.TrimRight(string(line), " ")
}

// printQuestions prints what would have to be known.
func (r *result) printQuestions(b *strings.Builder) {
	if r.nearest != nil {
		fill(b, "\nIt would be reproduced with ", "%s. If you can confirm that, change the file.", strings.Join(r.nearest.values, ", "))
	} else if len(r.off()) == 0 {
		fill(b, "\n", "But in none of %s of the uncertain values: %s. They are too uncertain.", term.Counted(r.drawn, "draw"), strings.Join(uncertain(r), ", "))
	}
	if all := r.questions(); len(all) > 0 {
		fmt.Fprintln(b, "\nWhat would have to be known:")
		for _, q := range all {
			fill(b, "  - ", "%s", q)
		}
	} else {
		fill(b, "\n", "The file has no open question. Then something happened that the simulator was not told: another fault, a load that was not measured, or another policy than %s.", r.policies[0].Name)
	}
	for _, f := range r.learned.Seen {
		fill(b, "  seen: ", "%s %s (%s)", f.What, between(f.Low, f.High), f.By)
	}
}

func between(low, high string) string {
	if low == high || high == "" {
		return low
	}
	return low + " to " + high
}

func uncertain(r *result) (paths []string) {
	for _, v := range r.learned.Values {
		if v.Low != "" && v.Low != v.High {
			paths = append(paths, v.Path)
		}
	}
	return paths
}

// questions are those of the world that may explain what is off: of arrivals alone, those about the fleets; else all.
func (r *result) questions() (all []string) {
	off := r.off()
	arrivalsAlone := len(off) == 1 && off[0].figure == arrivals
	for _, q := range r.learned.Unknown {
		if arrivalsAlone && !strings.HasPrefix(q.Path, "fleets.") {
			continue
		}
		text := q.Path + ": " + q.Ask
		if q.Least != "" {
			text += " At least " + q.Least + "."
		}
		if q.Needs != "" {
			text += " It needs " + q.Needs + "."
		}
		all = append(all, text)
	}
	return all
}

func (r *result) printAnswers(b *strings.Builder) {
	draws := term.Counted(len(r.draws), "flight")
	n := float64(len(r.draws))
	fill(b, "\n", "What the policies do in it. Figures are from the lowest to the highest of %s; another one lies between them with %.0f %%.", draws, 100*(n-1)/(n+1))
	if paths := uncertain(r); len(paths) > 0 {
		fill(b, "", "Each flight has a draw of what is uncertain: %s.", strings.Join(paths, ", "))
	}
	if left := r.drawn - len(r.draws); left > 0 {
		fill(b, "", "%d of %d draws are left out: with them %s does not do what was observed.", left, r.drawn, r.policies[0].Name)
	}
	fmt.Fprintln(b)
	rows := [][]string{append([]string{""}, columns...)}
	for _, a := range r.answers {
		rows = append(rows, append([]string{a.Name}, a.cells()...))
	}
	term.Table(b, rows, term.Width)
	fmt.Fprintln(b)
	for i, a := range r.answers {
		if i == 0 && len(r.answers) == 1 {
			break
		}
		line := a.Name
		if i+1 < len(r.answers) {
			line += ": " + compared(a, r.answers[i+1])
		}
		fill(b, fmt.Sprintf("%2d. ", i+1), "%s", line)
	}
	if all := r.questions(); len(all) > 0 {
		fmt.Fprintln(b, "\nNot varied, for nothing is known of it:")
		for _, q := range all {
			fill(b, "  - ", "%s", q)
		}
	}
}

var columns = []string{"back after", "success", "attempts a call", "calls held"}

// cells are the figures of a policy.
func (a answer) cells() []string {
	return []string{
		a.back(),
		a.rangeOf(func(r *sim.Result) float64 { return r.Totals.SuccessRate() }, simulate.PercentOf),
		a.rangeOf(func(r *sim.Result) float64 { return r.Totals.Amplification }, func(v float64) string { return fmt.Sprintf("%.2f", v) }),
		a.rangeOf(func(r *sim.Result) float64 { return r.HeldRate() }, func(v float64) string { return simulate.Trimmed(v, 3) }),
	}
}

func (a answer) rangeOf(of func(*sim.Result) float64, text func(float64) string) string {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range a.flights {
		v := of(&a.flights[i].Result)
		low, high = min(low, v), max(high, v)
	}
	return joined(text(low), text(high))
}

// back is the time from the end of the last fault to recovery.
func (a answer) back() string {
	low, high := time.Duration(math.MaxInt64), time.Duration(0)
	never, measured := 0, 0
	for _, f := range a.flights {
		v := f.Recovery
		switch {
		case !v.Measured:
			continue
		case !v.Recovered:
			never++
		default:
			low, high = min(low, v.Time), max(high, v.Time)
		}
		measured++
	}
	switch {
	case measured == 0:
		return "cannot be said"
	case never == measured:
		return "never"
	case never > 0:
		return fmt.Sprintf("%s; never in %d of %d", span(low, high), never, measured)
	}
	return span(low, high)
}

// compared says how surely a is better than b.
func compared(a, b answer) string {
	wins, losses := versus(a, b)
	n := len(a.flights)
	text := fmt.Sprintf("better than %s in %d of %d flights", b.Name, wins, n)
	if alike := n - wins - losses; alike > 0 {
		text += fmt.Sprintf(", as good in %d", alike)
	}
	switch decided := wins + losses; {
	case decided == 0:
		return fmt.Sprintf("as good as %s in all of %d flights", b.Name, n)
	case wins > 0 && wilson(wins, decided) > 0.5:
		return text + ": surely"
	}
	return text + ": the order is not sure"
}

// wilson is the lower end of the 95 % interval of a share (Wilson, "Probable inference", 1927).
func wilson(k, n int) float64 {
	const z = 1.959964
	p, m := float64(k)/float64(n), float64(n)
	return (p + z*z/(2*m) - z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))) / (1 + z*z/m)
}

func number(v float64) string { return fmt.Sprintf("%.2f", v) }

// span is from one duration to another.
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
