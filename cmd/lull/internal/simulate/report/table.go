package report

import (
	"math"
	"strconv"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/sim"
)

type table struct {
	Caption string
	Rows    []row
}

type row struct {
	Name, About string
	Cells       []string
}

const tableRows = 24

// table returns the mean of each line over stretches of the same length.
func (c chart) table(q quantity, lines [][]float64, step time.Duration) table {
	each := (c.Steps + tableRows - 1) / tableRows
	t := table{Caption: "Mean over " + span(time.Duration(each)*step)}
	if each == 1 {
		t.Caption = "Each step of " + span(step)
	}
	for from := 0; from < c.Steps; from += each {
		r := row{Name: span(time.Duration(from) * step)}
		for _, values := range lines {
			v := math.NaN()
			if from < len(values) {
				stretch := values[from:min(from+each, len(values))]
				if q.axis == "time" {
					stretch = powers(stretch)
				}
				if m, ok := aggregated(mean, stretch); ok {
					v = m
				}
			}
			r.Cells = append(r.Cells, q.text(v))
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

func powers(logs []float64) []float64 {
	return choice.Each(logs, func(v float64) float64 { return math.Pow(10, v) })
}

// numbers are all totals of each contender, means over the seeds.
type numbers struct {
	Names []string
	Rows  []row
}

var totals = []struct {
	name, about string
	of          func(sim.Result) float64
	text        func(float64) string
}{
	{"Calls", "that began after the warm-up", func(r sim.Result) float64 { return float64(r.Totals.Calls) }, grouped},
	{"Succeeded", "calls", func(r sim.Result) float64 { return float64(r.Totals.Succeeded) }, grouped},
	{"Refused", "calls that made no attempt", func(r sim.Result) float64 { return float64(r.Totals.Refused) }, grouped},
	{"Unfinished", "calls that had not ended when the run did", func(r sim.Result) float64 { return float64(r.Totals.Unfinished) }, grouped},
	{"Reloads", "calls that users made because the one before had failed", func(r sim.Result) float64 { return float64(r.Totals.Reloads) }, grouped},
	{"Attempts", "first ones and retries", func(r sim.Result) float64 { return float64(r.Totals.Attempts) }, grouped},
	{"Retries", "attempts but the first of each call", func(r sim.Result) float64 { return float64(r.Totals.Retries) }, grouped},
	{"Timed out", "attempts that their own timeout ended", func(r sim.Result) float64 { return float64(r.Totals.AttemptsTimedOut) }, grouped},
	{"Failed", "attempts that an answer ended", func(r sim.Result) float64 { return float64(r.Totals.AttemptsFailed) }, grouped},
	{"Wasted", "attempts worked on for a caller that had gone", func(r sim.Result) float64 { return float64(r.Totals.Wasted) }, grouped},
	{"Queue full", "attempts that services turned away", func(r sim.Result) float64 { return float64(r.Totals.QueueFull) }, grouped},
	{"Rate-limited", "attempts refused by a rate limit", func(r sim.Result) float64 { return float64(r.Totals.RateLimited) }, grouped},
	{"Errors", "attempts failed by a fault", func(r sim.Result) float64 { return float64(r.Totals.Errors) }, grouped},
	{"Shed", "attempts refused by admission control", func(r sim.Result) float64 { return float64(r.Totals.Shed) }, grouped},
	{"Dropped", "attempts dropped because their caller had gone", func(r sim.Result) float64 { return float64(r.Totals.Dropped) }, grouped},
	{"Effects", "operations carried out", func(r sim.Result) float64 { return float64(r.Totals.Effects) }, grouped},
	{"Duplicates", "effects that repeat one carried out before", func(r sim.Result) float64 { return float64(r.Totals.Duplicates) }, grouped},
	{"Worst minute", "the most attempts per call over any minute", func(r sim.Result) float64 { return r.Totals.WorstMinute }, ratio},
	{"Worst ten seconds", "the most attempts per call over any ten seconds from the first fault on", func(r sim.Result) float64 { return r.Totals.WorstTenSeconds }, ratio},
	{"Calls held", "in progress, on average", func(r sim.Result) float64 { return r.HeldRate() }, number},
	{"Calls held, most", "in progress at once", func(r sim.Result) float64 { return float64(r.Totals.Held.Most) }, grouped},
	{"Held in waits", "the share of the time of calls in which no attempt was in flight", func(r sim.Result) float64 { return share(r.Totals.Held.Waits(), r.Totals.Held.Seconds) }, percent},
	{"Held, p50", "for how long a caller held its call, whether it succeeded or not", func(r sim.Result) float64 { return r.Totals.Held.P50.Seconds() }, seconds},
	{"Held, p99", "", func(r sim.Result) float64 { return r.Totals.Held.P99.Seconds() }, seconds},
	{"Held, longest", "", func(r sim.Result) float64 { return r.Totals.Held.Max.Seconds() }, seconds},
	{"Peak rate", "the most attempts per second in any window", func(r sim.Result) float64 { return r.Totals.PeakRate }, number},
	{"Normal rate", "attempts per second before the first fault", func(r sim.Result) float64 { return r.Totals.NormalRate }, number},
	{"Peak at", "the end of that window", func(r sim.Result) float64 { return r.Totals.PeakAt.Seconds() }, seconds},
	{"Normal share", "of calls that succeeded before the first fault", func(r sim.Result) float64 { return r.Recovery.Normal }, percent},
	{"Final share", "of calls that succeeded in the last tenth of the time after the fault", func(r sim.Result) float64 { return r.Recovery.Final }, percent},
	{"Mean completion", "from the beginning of a call to its success", func(r sim.Result) float64 { return r.Totals.MeanCompletion.Seconds() }, seconds},
	{"Latency, mean", "of calls that succeeded", func(r sim.Result) float64 { return r.Latency.Mean.Seconds() }, seconds},
	{"Latency, p50", "", func(r sim.Result) float64 { return r.Latency.P50.Seconds() }, seconds},
	{"Latency, p90", "", func(r sim.Result) float64 { return r.Latency.P90.Seconds() }, seconds},
	{"Latency, p99.9", "", func(r sim.Result) float64 { return r.Latency.P999.Seconds() }, seconds},
	{"Latency, highest", "", func(r sim.Result) float64 { return r.Latency.Max.Seconds() }, seconds},
	{"Oldest user", "the longest wait, from the first call to the success or to giving up", func(r sim.Result) float64 { return r.Totals.Oldest.Seconds() }, seconds},
	{"Last call", "ended at", func(r sim.Result) float64 { return r.Totals.Last.Seconds() }, seconds},
}

func newNumbers(p Page, cs []contender) *numbers {
	n := &numbers{Names: choice.Each(cs, func(c contender) string { return c.Name })}
	for _, t := range totals {
		line := row{Name: t.name, About: t.about}
		any := false
		for _, s := range p.Summaries {
			v, ok := aggregated(mean, choice.Each(s.Results, t.of))
			text := "–"
			if ok {
				text = t.text(v)
				any = any || v != 0
			}
			line.Cells = append(line.Cells, text)
		}
		if any {
			n.Rows = append(n.Rows, line)
		}
	}
	if len(n.Rows) == 0 {
		return nil
	}
	return n
}

// share returns part / whole, 0 of nothing.
func share(part, whole float64) float64 { return part / max(whole, math.SmallestNonzeroFloat64) }

// ratio is a quotient, such as 1.04 ×.
func ratio(v float64) string {
	text := choice.Either(v < 9.9995, strconv.FormatFloat(v, 'f', 3, 64), number(v))
	return text + nbsp + "×"
}
