package simulate

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

const mostSparks = 64 // columns of a sparkline

// writeSparklines draws goodput, attempts and the backlog of messages through time, of the
// first seed, and below them the times of faults.
func writeSparklines(out io.Writer, s sim.Scenario, all []sim.Summary, levels term.Bars) {
	var step time.Duration
	seed := ""
	name := len("policy")
	for _, m := range all {
		name = max(name, len(m.Contender.Name))
		if step == 0 && len(m.Results) > 0 {
			step = m.Results[0].Series.Step
		}
		if len(m.Results) > 1 {
			seed = fmt.Sprintf(" (seed %d)", m.Results[0].Seed)
		}
	}
	if step <= 0 {
		return
	}
	points := max(1, int((s.Horizon+step-1)/step))
	bars := min(points, mostSparks)
	slice := s.Horizon / time.Duration(bars)
	draw := func(title string, of func(sim.Result) []float64, highest func([]float64) float64, unit string) {
		var lines [][]float64
		var drawn []float64
		for _, m := range all {
			line := []float64(nil)
			if len(m.Results) > 0 {
				line = resampled(of(m.Results[0]), points, bars)
			}
			lines, drawn = append(lines, line), append(drawn, line...)
		}
		if len(drawn) == 0 {
			return
		}
		top := highest(drawn)
		fmt.Fprintf(out, "%s%s: %c is %s%s\n", title, seed, levels.Highest(), abbreviated(top), unit)
		for i, m := range all {
			fmt.Fprintln(out, strings.TrimRight("  "+term.Pad(m.Contender.Name, name)+"  "+levels.Line(lines[i], top), " "))
		}
		fmt.Fprintf(out, "  %s  %s\n", term.Pad("", name), faultAxis(s, bars, slice, levels))
	}
	succeeded := "Calls that succeeded"
	if onlyMessages(s) {
		succeeded = "Messages that were handled"
	}
	draw(succeeded, func(r sim.Result) []float64 { return r.Series.Goodput }, usual, " a second or more")
	draw("Attempts", func(r sim.Result) []float64 { return sums(r.Series.First, r.Series.Retries) }, slices.Max[[]float64], " a second")
	if len(s.Topics) > 0 {
		draw("Messages that are not handled yet", backlog, slices.Max[[]float64], "")
	}
}

// backlog adds up that of all topics.
func backlog(r sim.Result) []float64 {
	var sum []float64
	for i, t := range r.Topics {
		if i == 0 {
			sum = t.Backlog
		} else {
			sum = sums(sum, t.Backlog)
		}
	}
	return sum
}

// usual returns the third quartile of the values above zero. A short peak, as when a queue
// is worked off, does not make normal values look low.
func usual(values []float64) float64 {
	some := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v <= 0 })
	if len(some) == 0 {
		return 0
	}
	slices.Sort(some)
	return some[len(some)*3/4]
}

// sums adds two series, point by point.
func sums(a, b []float64) []float64 {
	sum := make([]float64, min(len(a), len(b)))
	for i := range sum {
		sum[i] = a[i] + b[i]
	}
	return sum
}

// resampled returns bars, each the mean of its points. The points that an interrupted run
// does not have leave bars out.
func resampled(values []float64, points, bars int) []float64 {
	var out []float64
	for i := range bars {
		from, to := i*points/bars, max((i+1)*points/bars, i*points/bars+1)
		if to > len(values) {
			break
		}
		sum := 0.0
		for _, v := range values[from:to] {
			sum += v
		}
		out = append(out, sum/float64(to-from))
	}
	return out
}

// faultAxis marks the faults below the bars.
func faultAxis(s sim.Scenario, bars int, slice time.Duration, levels term.Bars) string {
	dot, mark := '·', '▔'
	if levels[0] == term.ASCII[0] {
		dot, mark = '.', '^'
	}
	line := []rune(strings.Repeat(string(dot), bars))
	last := 0
	for _, w := range windows(s) {
		from, to := int(w.From/slice), int((max(w.To, w.From+1)-1)/slice)
		for i := max(from, 0); i <= min(to, bars-1); i++ {
			line[i] = mark
			last = max(last, i)
		}
	}
	end := []rune(" " + inWords(s.Horizon))
	if start := bars - len(end); start > last {
		copy(line[start:], end)
	} else {
		line = append(line, end...)
	}
	if line[0] == dot {
		line[0] = '0'
	}
	return string(line)
}
