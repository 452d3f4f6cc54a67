package simulate

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// printSeriesCSV prints a line for every point of every series: contender, seed, end of
// the step in seconds, name of the series as in JSON (refused.REASON for calls that
// ended without success, backlog.TOPIC for messages that are not handled), value.
func printSeriesCSV(w io.Writer, o outcome) error {
	out := csv.NewWriter(w)
	out.Write([]string{"contender", "seed", "time_s", "series", "value"})
	for _, m := range o.results[0] {
		for _, r := range m.Results {
			seed := strconv.FormatUint(r.Seed, 10)
			for _, line := range seriesOf(r) {
				for i, v := range line.values {
					at := time.Duration(i+1) * r.Series.Step
					out.Write([]string{m.Contender.Name, seed, figure(at.Seconds()).String(), line.name, figure(v).String()})
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// A namedSeries is one of sim.Series and its name in files.
type namedSeries struct {
	name   string
	values []float64
}

// seriesOf returns all series in a fixed order. Durations are in seconds.
func seriesOf(r sim.Result) []namedSeries {
	s := r.Series
	all := []namedSeries{
		{"calls", s.Calls}, {"first_attempts", s.First}, {"retries", s.Retries},
		{"goodput", s.Goodput}, {"good", s.Good}, {"failed", s.Failed}, {"wasted", s.Wasted},
		{"queue", s.Queue}, {"busy", s.Busy}, {"open", s.Open},
		{"p50_s", inSeconds(s.P50)}, {"p99_s", inSeconds(s.P99)},
	}
	for _, t := range r.Topics {
		all = append(all, namedSeries{"backlog." + t.Name, t.Backlog})
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Refused)) {
		all = append(all, namedSeries{"refused." + reason, s.Refused[reason]})
	}
	return all
}

func inSeconds(all []time.Duration) []float64 {
	seconds := make([]float64, len(all))
	for i, d := range all {
		seconds[i] = d.Seconds()
	}
	return seconds
}

// printSweepCSV prints a line for each cell and policy: the values of the axes, under
// their paths, and the summary.
func printSweepCSV(w io.Writer, o outcome) error {
	out := csv.NewWriter(w)
	var head []string
	for _, x := range o.axes {
		head = append(head, x.Path)
	}
	out.Write(append(head, "contender", "seeds", "recovered", "recovery_s", "recovery_s_half", "success", "success_half",
		"amplification", "amplification_half", "peak_over_normal", "peak_over_normal_half", "p99_s", "p99_s_half"))
	for i := range o.cells {
		for _, m := range o.results[i] {
			line := o.valuesAt(i)
			line = append(line, m.Contender.Name, strconv.Itoa(len(m.Results)), strconv.Itoa(m.Recovered))
			recovery := []string{"", ""}
			if m.Recovered > 0 {
				recovery = meanAndHalf(m.Recovery)
			}
			line = append(line, recovery...)
			for _, e := range []sim.Estimate{m.Success, m.Amplification, m.PeakOverNormal, m.P99} {
				line = append(line, meanAndHalf(e)...)
			}
			out.Write(line)
		}
	}
	out.Flush()
	return out.Error()
}

func meanAndHalf(e sim.Estimate) []string {
	return []string{figure(e.Mean).String(), figure(e.Half).String()}
}

func (o outcome) valuesAt(cell int) []string {
	values := make([]string, len(o.axes))
	for i := len(o.axes) - 1; i >= 0; i-- {
		n := len(o.axes[i].Values)
		values[i] = o.axes[i].Values[cell%n]
		cell /= n
	}
	return values
}
