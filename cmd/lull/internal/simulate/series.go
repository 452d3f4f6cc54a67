package simulate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/sim"
)

const mostSparks = 64 // columns of a sparkline

// writeSparklines draws goodput, attempts and the backlog of the first seed through time, and the times of faults.
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
	succeeded := choice.Either(onlyMessages(s), "Messages that were handled", "Calls that succeeded")
	draw(succeeded, func(r sim.Result) []float64 { return r.Series.Goodput }, usual, " a second or more")
	draw("Attempts", func(r sim.Result) []float64 { return sums(r.Series.First, r.Series.Retries) }, slices.Max[[]float64], " a second")
	if len(s.Topics) > 0 {
		draw("Messages that are not handled yet", backlog, slices.Max[[]float64], "")
	}
}

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

// usual is the third quartile of the values above zero. So a short peak does not make normal values look low.
func usual(values []float64) float64 {
	some := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v <= 0 })
	if len(some) == 0 {
		return 0
	}
	slices.Sort(some)
	return some[len(some)*3/4]
}

func sums(a, b []float64) []float64 {
	sum := make([]float64, min(len(a), len(b)))
	for i := range sum {
		sum[i] = a[i] + b[i]
	}
	return sum
}

// resampled returns bars, each the mean of its points. The points that an interrupted run does not have leave bars out.
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

const mostRepeats = 200

func windows(s sim.Scenario) (all []report.Window) {
	for _, service := range s.Services {
		for _, f := range service.Faults {
			for i, at := 0, f.At; at < s.Horizon && i < mostRepeats; i, at = i+1, at+f.Every {
				w := report.Window{From: at, To: min(at+f.For, s.Horizon), Kind: "fault"}
				if i == 0 {
					w.Mark, w.What = f.Kind.String()+" "+inWords(f.For), service.Name+": "+faultEffect(f, service)
					if len(s.Services) > 1 {
						w.Mark = service.Name + ": " + f.Kind.String()
					}
					if f.Every > 0 {
						w.What += ", every " + inWords(f.Every)
					}
				}
				all = append(all, w)
				if f.Every <= 0 {
					break
				}
			}
		}
	}
	for _, f := range s.Fleets {
		all = append(all, surges(f, s)...)
	}
	return all
}

// pageWindows returns the windows of the page, in the order of their beginning: also when all processes of a fleet call at once.
func pageWindows(s sim.Scenario) []report.Window {
	all := windows(s)
	for _, f := range s.Fleets {
		if a := f.Arrivals; a.Kind == sim.AtOnce && a.At < s.Horizon {
			calls := grouped(float64(max(1, f.Processes)) * float64(max(1, a.Each)))
			all = append(all, report.Window{From: a.At, To: min(a.At+a.Within, s.Horizon), Kind: "surge", Mark: "at once", What: f.Name + ": " + calls + " calls begin together"})
		}
	}
	slices.SortStableFunc(all, func(a, b report.Window) int { return cmp.Compare(a.From, b.From) })
	return all
}

func surges(f sim.Fleet, s sim.Scenario) (all []report.Window) {
	a := f.Arrivals
	normal, open := 1.0, -1
	peak := 0.0
	for i, p := range a.Ramp {
		if i == 0 && p.At <= 0 {
			normal = p.Factor
		}
		switch {
		case open < 0 && p.Factor > normal:
			open, peak = i, p.Factor
			if i > 0 && a.Ramp[i-1].At < p.At {
				open = i - 1 // it climbs from there
			}
		case open >= 0 && p.Factor > normal:
			peak = max(peak, p.Factor)
		case open >= 0:
			if from := a.Ramp[open].At; from < s.Horizon {
				times := trimmed(peak/normal, 3)
				all = append(all, report.Window{From: from, To: min(p.At, s.Horizon), Kind: "surge", Mark: "load × " + times,
					What: fmt.Sprintf("%s: up to %s times as many calls", f.Name, times)})
			}
			open = -1
		}
	}
	return all
}
