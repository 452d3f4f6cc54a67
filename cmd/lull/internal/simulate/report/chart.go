package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/sim"
)

type quantity struct {
	id, title, about string
	// axis: "number" (from zero), "count" (whole numbers), "share" (nothing to
	// all), "time" (logarithmic, seconds; the path holds logarithms).
	axis     string
	atEnd    bool      // the values are of the end of each step, not of all of it
	keyShows aggregate // what the key shows while the pointer is elsewhere
	absent   string    // replaces a chart that has nothing to show
	of       func(sim.Series) []float64
}

type aggregate string

const (
	highest aggregate = "highest"
	mean    aggregate = "mean"
)

func (q quantity) text(v float64) string {
	switch q.axis {
	case "share":
		return percent(v)
	case "time":
		return seconds(v)
	}
	return number(v)
}

// quantities are in the order of the page. Those of reasons follow.
var quantities = []quantity{
	{
		id: "attempts", title: "Attempts per second", axis: "number", keyShows: highest,
		about: "The load: first attempts and retries together.",
		of:    func(s sim.Series) []float64 { return sum(s.First, s.Retries) },
	},
	{
		id: "retries", title: "Retries per second", axis: "number", keyShows: highest,
		about:  "The part of the load that is not the first attempt of a call.",
		absent: "No call was retried.",
		of:     func(s sim.Series) []float64 { return s.Retries },
	},
	{
		id: "goodput", title: "Goodput, calls per second", axis: "number", keyShows: mean,
		about: "Calls that succeeded, by the time at which they did.",
		of:    func(s sim.Series) []float64 { return s.Goodput },
	},
	{
		id: "good", title: "Calls that succeed", axis: "share", keyShows: mean,
		about: "Of the calls that began in a step, the share that succeeded in the end. Recovery is judged by it. The last ones may not have had the time.",
		of: func(s sim.Series) []float64 {
			succeeded := slices.Clone(s.Good)
			for i := range succeeded {
				if i < len(s.Calls) && s.Calls[i] == 0 {
					succeeded[i] = math.NaN()
				}
			}
			return succeeded
		},
	},
	{
		id: "queue", title: "Queue", axis: "count", keyShows: highest, atEnd: true,
		about:  "Attempts that wait for a worker at the end of each step, over all services.",
		absent: "No attempt had to wait for a worker at the end of any step.",
		of:     func(s sim.Series) []float64 { return s.Queue },
	},
	{
		id: "held", title: "Calls in progress", axis: "count", keyShows: highest, atEnd: true,
		about: "What callers hold at the end of each step: calls that have begun and not ended, in an attempt or in a wait.",
		of:    func(s sim.Series) []float64 { return s.Held },
	},
	{
		id: "wasted", title: "Wasted work, attempts per second", axis: "number", keyShows: highest,
		about:  "Work that was finished for callers that had gone.",
		absent: "No work was finished for a caller that had gone.",
		of:     func(s sim.Series) []float64 { return s.Wasted },
	},
	{
		id: "p50", title: "Latency, p50", axis: "time", keyShows: highest,
		about: "Half of the calls that succeeded in a step took no longer than this, counted from their beginning. Logarithmic; a gap where none succeeded.",
		of:    func(s sim.Series) []float64 { return times(s.P50) },
	},
	{
		id: "p99", title: "Latency, p99", axis: "time", keyShows: highest,
		about: "99 of 100 calls that succeeded in a step took no longer than this. Logarithmic; a gap where none succeeded.",
		of:    func(s sim.Series) []float64 { return times(s.P99) },
	},
	{
		id: "open", title: "Breakers open, processes", axis: "count", keyShows: highest, atEnd: true,
		about:  "Processes whose circuit breaker is open or half-open at the end of each step.",
		absent: "No circuit breaker was open at the end of any step.",
		of:     func(s sim.Series) []float64 { return s.Open },
	},
}

// measured are the quantities of what was measured.
var measured = []quantity{
	{
		id: "calls", title: "Calls per second", axis: "number", keyShows: highest,
		about: "Calls that began.",
		of:    func(s sim.Series) []float64 { return s.Calls },
	},
	{
		id: "attempts", title: "Requests per second", axis: "number", keyShows: highest,
		about: "The load: first attempts and retries together.",
		of:    func(s sim.Series) []float64 { return s.First },
	},
	{
		id: "good", title: "What succeeds", axis: "share", keyShows: mean,
		about: "The share of what ended in a step.",
		of:    func(s sim.Series) []float64 { return s.Good },
	},
	{
		id: "p50", title: "Time, p50", axis: "time", keyShows: highest,
		about: "Half of what succeeded in a step took no longer than this. Logarithmic; a gap where nothing did.",
		of:    func(s sim.Series) []float64 { return times(s.P50) },
	},
	{
		id: "p99", title: "Time, p99", axis: "time", keyShows: highest,
		about: "99 of 100 that succeeded in a step took no longer than this. Logarithmic; a gap where nothing did.",
		of:    func(s sim.Series) []float64 { return times(s.P99) },
	},
}

// reasons returns a quantity for each reason of calls that failed, the most frequent first.
func reasons(summaries []sim.Summary) []quantity {
	total := map[string]float64{}
	for _, s := range summaries {
		for _, r := range s.Results {
			for reason, values := range r.Series.Refused {
				for _, v := range values {
					total[reason] += v
				}
			}
		}
	}
	var names []string
	for name, n := range total {
		if n > 0 && name != engine.Success.String() {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), strings.Compare(a, b))
	})
	var qs []quantity
	for i, name := range names {
		qs = append(qs, quantity{
			id: fmt.Sprintf("reason-%d", i+1), title: "Calls ended: " + strings.ReplaceAll(name, "_", " "), axis: "number", keyShows: highest,
			about: "Calls per second that ended without success" + meaning(name) + ".",
			of:    func(s sim.Series) []float64 { return s.Refused[name] },
		})
	}
	return qs
}

// meaning is the reason of that name in words: the text in the error of such a call.
func meaning(name string) string {
	for r := range lull.Reason(engine.Reasons) {
		if r != engine.Success && r.String() == name {
			return ": " + r.Meaning()
		}
	}
	return " for this reason"
}

type chart struct {
	ID, Title, About, Axis, Label string
	Telling                       aggregate
	Steps                         int
	Step                          float64 // seconds
	AtEnd                         bool
	Lines                         []line
	Scale                         scale
	Matrix                        string
	Across                        []tick
	Table                         table
}

// Dense reports whether lines have so many points that they are drawn finer.
func (c chart) Dense() bool { return c.Steps > 250 }

// A line is that of one contender. Path and Band are in steps and values, Low and High the extremes of both.
type line struct {
	contender
	Path, Band string
	Low, High  float64
	Points     int
	Telling    string
}

// drawable is about how many bytes of paths a page may have.
const drawable = 1 << 20

// charts draws all quantities. absent has sentences for those without values. thinned: lines have fewer points than steps.
func charts(p Page, cs []contender) (all []chart, absent []string, thinned bool) {
	steps, step := extent(p)
	if steps == 0 {
		return nil, nil, false
	}
	qs := slices.Concat(quantities, reasons(p.Summaries))
	if p.Measured {
		qs = measured
	}
	if len(p.Scenario.Services) > 1 {
		qs[0].about = "The load: first attempts and retries together, at the service that gets the most."
	}
	for _, limit := range []int{600, 400, 300, 200, 150, 100, 60, 40} {
		all, absent = nil, nil
		size := 0
		for _, q := range qs {
			c, ok := drawChart(q, p, cs, steps, step, limit)
			if !ok {
				if q.absent != "" {
					absent = append(absent, q.absent)
				}
				continue
			}
			for _, l := range c.Lines {
				size += len(l.Path) + len(l.Band)
			}
			all = append(all, c)
		}
		thinned = steps > limit
		if size <= drawable {
			break
		}
	}
	return all, absent, thinned
}

func extent(p Page) (steps int, step time.Duration) {
	for _, s := range p.Summaries {
		for _, r := range s.Results {
			step = max(step, r.Series.Step)
			steps = max(steps, len(r.Series.First), len(r.Series.Goodput))
		}
	}
	if step <= 0 {
		return 0, 0
	}
	if h := p.Scenario.Horizon; h > 0 {
		steps = max(steps, int((h+step-1)/step))
	}
	return steps, step
}

// drawChart returns the chart of q, unless there is nothing to show.
func drawChart(q quantity, p Page, cs []contender, steps int, step time.Duration, limit int) (chart, bool) {
	c := chart{
		ID: q.id, Title: q.title, About: q.about, Axis: q.axis, Telling: q.keyShows,
		Steps: steps, Step: step.Seconds(), AtEnd: q.atEnd,
		Across: timeTicks(time.Duration(steps) * step),
	}
	var medians [][]float64
	something := false
	for i, s := range p.Summaries {
		seeds := choice.Each(s.Results, func(r sim.Result) []float64 { return q.of(r.Series) })
		median, low, high := medianOf(seeds)
		medians = append(medians, median)
		l := line{contender: cs[i], Telling: "–"}
		if worst, ok := aggregated(q.keyShows, median); ok {
			l.Telling = q.text(worst)
		}
		if q.axis == "time" {
			logarithms(median, low, high)
		}
		l.Path, l.Points = trace(thin(median, limit))
		if len(seeds) > 1 {
			l.Band = between(envelope(low, limit/2, math.Min), envelope(high, limit/2, math.Max))
		}
		var any bool
		l.Low, l.High, any = bounds(low, high)
		something = something || any && (l.High > 0 || q.axis != "number" && q.axis != "count")
		c.Lines = append(c.Lines, l)
	}
	if !something {
		return chart{}, false
	}
	c.Scale = c.fit(q)
	c.Matrix = c.matrix()
	told := choice.Each(c.Lines, func(l line) string { return l.Name + " " + l.Telling })
	c.Label = fmt.Sprintf("%s through time, a line for each contender; %s: %s", c.Title, c.Telling, strings.Join(told, ", "))
	c.Table = c.table(q, medians, step)
	return c, true
}

// fit returns the scale for the lines that are visible at first.
func (c chart) fit(q quantity) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range c.Lines {
		if l.Shown && l.Path != "" {
			low, high = min(low, l.Low), max(high, l.High)
		}
	}
	switch {
	case q.axis == "share":
		return linear(1, false, percent)
	case q.axis != "time":
		return linear(high, q.axis == "count", number)
	case low > high:
		return logarithmic(-3, 0, seconds)
	}
	return logarithmic(low, high, seconds)
}

func (c chart) matrix() string {
	x := 1000 / float64(c.Steps)
	y := 1000 / (c.Scale.Hi - c.Scale.Lo)
	at := choice.Either(c.AtEnd, 1, 0.5)
	return fmt.Sprintf("matrix(%.8g 0 0 %.8g %.8g %.8g)", x, -y, at*x, c.Scale.Hi*y)
}

func aggregated(t aggregate, values []float64) (float64, bool) {
	v, n := 0.0, 0
	for _, w := range values {
		if math.IsNaN(w) {
			continue
		}
		n++
		switch {
		case t == mean:
			v += (w - v) / float64(n)
		case n == 1 || w > v:
			v = w
		}
	}
	return v, n > 0
}

func bounds(low, high []float64) (least, most float64, any bool) {
	for i := range low {
		if math.IsNaN(low[i]) {
			continue
		}
		if !any {
			least, most, any = low[i], high[i], true
		}
		least, most = min(least, low[i]), max(most, high[i])
	}
	return fourDigits(least), fourDigits(most), any
}

func sum(a, b []float64) []float64 {
	s := slices.Clone(a)
	for i := range min(len(a), len(b)) {
		s[i] += b[i]
	}
	return s
}

// times returns seconds, NaN for zero, which means that there is no time.
func times(ds []time.Duration) []float64 {
	return choice.Each(ds, func(d time.Duration) float64 { return choice.Either(d > 0, d.Seconds(), math.NaN()) })
}

func logarithms(all ...[]float64) {
	for _, values := range all {
		for i, v := range values {
			values[i] = math.Log10(v)
		}
	}
}
