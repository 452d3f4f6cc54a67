package source

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// A collector counts the requests of logs of one kind: of one process or of several, in one file or in several.
type collector struct {
	kind                  string
	steps                 []time.Duration // the possible lengths of a step, each a multiple of the one before
	series                []seriesOf
	known                 map[seriesOf]int
	hosts                 map[string]string // the name that a host gets
	counts                map[bin]uint32
	resolution, precision time.Duration // of times of day, and of durations
	numbered              bool          // it is known which attempts are retries
	cuts                  bool          // durations are cut off, not rounded
}

// A seriesOf says which series a request belongs to.
type seriesOf struct {
	side          observed.Side
	service, host string
}

// A bin is what is counted as one number: the step since epoch, the number of the series, the outcome of what ended in it, and
// the bar of observed.ExactEdges. What began has no bar, and beginnings or resends for an outcome.
type bin struct {
	step                 int64
	series, outcome, bar int16
}

var epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

func (b bin) ended() bool { return b.outcome > resends }

// A request has ended, or an attempt of one.
type request struct {
	ended           time.Time
	took, precision time.Duration
	outcome         int
	host            []byte
	retry           bool
	waited          time.Duration // after it
}

// Outcomes are statuses from 100 to 599, and these.
const (
	beginnings, resends = 0, 1 // what began in a step, and what of it was no first attempt

	timeout = 600 + iota
	refused
	reset
	canceled
	failed
)

const (
	maxSeries = 253
	maxBins   = 1 << 20  // in memory, before steps get longer
	maxFloats = 12 << 20 // in Points
	maxPoints = 3600
)

func outcomeName(outcome int) string {
	if outcome >= timeout {
		return []string{"timeout", "refused", "reset", "canceled", "error"}[outcome-timeout]
	}
	return fmt.Sprint(outcome)
}

func newCollector(kind string, step time.Duration) *collector {
	c := &collector{kind: kind, known: map[seriesOf]int{}, hosts: map[string]string{}, counts: map[bin]uint32{}, precision: time.Hour}
	if c.steps = []time.Duration{step}; step == 0 {
		c.steps = []time.Duration{time.Second / 10, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
	}
	return c
}

// seriesFor returns the number of a series. The host gets a name that tells nothing. Of too many services and hosts the last are one.
func (c *collector) seriesFor(r *reader, s seriesOf) int {
	if i, ok := c.known[s]; ok {
		return i
	}
	if rest := (seriesOf{side: s.side}); len(c.series) >= maxSeries && s != rest {
		r.problem("series", fmt.Sprintf("there are more than %d services and hosts: this one and others are counted as one", maxSeries))
		return c.seriesFor(r, rest)
	}
	c.known[s] = len(c.series)
	if s.host != "" {
		if c.hosts[s.host] == "" {
			c.hosts[s.host] = fmt.Sprintf("host-%d", len(c.hosts)+1)
		}
		s.host = c.hosts[s.host]
	}
	c.series = append(c.series, s)
	return len(c.series) - 1
}

func (c *collector) add(series int, r *request) {
	end, step := r.ended.Sub(epoch), c.steps[0]
	c.precision = min(c.precision, r.precision)
	bar, _ := slices.BinarySearch(observed.ExactEdges, r.took.Seconds())
	c.counts[bin{int64(end / step), int16(series), int16(r.outcome), int16(bar)}]++
	began := bin{step: int64((end - r.took) / step), series: int16(series), outcome: beginnings}
	c.counts[began]++
	if began.outcome = resends; r.retry {
		c.counts[began]++
	}
	for len(c.counts) > maxBins && len(c.steps) > 1 {
		c.coarsen()
	}
}

// coarsen makes steps longer.
func (c *collector) coarsen() {
	times, before := int64(c.steps[1]/c.steps[0]), c.counts
	c.steps, c.counts = c.steps[1:], make(map[bin]uint32, len(before)/2)
	for at, n := range before {
		at.step /= times
		c.counts[at] += n
	}
}

// finish makes the series of the data.
func (c *collector) finish(r *reader) error {
	c.leaveStrays(r)
	edges, barOf, longest := c.edges()
	first, last, histograms := c.extent()
	for len(c.steps) > 1 && (c.steps[0] < c.resolution || last-first > maxPoints || histograms*len(edges) > maxFloats || c.steps[0] < time.Second && last-first > 600) {
		c.coarsen()
		first, last, histograms = c.extent()
	}
	if last-first > 20*maxPoints || histograms*len(edges) > 4*maxFloats {
		return fmt.Errorf("step is %v: want longer steps, or a part of the time (from, to): the sources have %d of them", c.steps[0], last-first+1)
	}
	all := make([]*observed.Series, len(c.series))
	for i, of := range c.series {
		all[i] = &observed.Series{Side: of.side, Service: of.service, Host: of.host, Source: c.kind, Start: epoch.Add(time.Duration(first) * c.steps[0]), Step: c.steps[0],
			Points: make([]observed.Point, last-first+1), Edges: edges, Exact: true, Resolution: c.resolution}
	}
	for at, n := range c.counts {
		if at.step < first { // something began in it that ended later
			continue
		}
		p := &all[at.series].Points[at.step-first]
		switch at.outcome {
		case beginnings:
			p.Began += float64(n)
		case resends:
			p.Retries += float64(n)
		default:
			b := p.Bars(outcomeName(int(at.outcome)), len(edges)+1)
			b.Counts[barOf[at.bar]] += float64(n)
			b.N += float64(n)
		}
	}
	var spans []span
	for _, log := range r.data.Sources {
		if log.Kind == c.kind {
			spans = append(spans, span{log.From, log.To.Add(c.resolution)})
		}
	}
	for _, s := range all {
		until := s.At(len(s.Points)).Add(-longest) // of what began later, some has not ended, and is in no log
		for j := range s.Points {
			p, late := &s.Points[j], s.At(j+1).After(until)
			if late {
				p.Began = -1
			}
			if late || !c.numbered || s.Side == observed.Calls {
				p.Retries = -1
			}
		}
		setMissing(s, spans)
	}
	slices.SortFunc(all, func(a, b *observed.Series) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Service, b.Service), cmp.Compare(len(a.Host), len(b.Host)), cmp.Compare(a.Host, b.Host))
	})
	r.data.Series = append(r.data.Series, all...)
	return nil
}

// leaveStrays removes what ended more than a day before or after most requests: at a time when the clock was wrong, or in another log.
// Steps would be as long as if it were one stretch of time.
func (c *collector) leaveStrays(r *reader) {
	ended := map[int64]int64{}
	for at, n := range c.counts {
		if at.ended() {
			ended[at.step] += int64(n)
		}
	}
	var before, from, n, first, last, most int64
	for _, step := range slices.Sorted(maps.Keys(ended)) {
		if n == 0 || step-before > int64(24*time.Hour/c.steps[0]) {
			from, n = step, 0
		}
		before = step
		if n += ended[step]; n > most {
			first, last, most = from, step, n
		}
	}
	maps.DeleteFunc(c.counts, func(at bin, n uint32) bool {
		stray := at.step > last || at.step < first
		for i := uint32(0); i < n && stray && at.ended(); i++ {
			r.problem("stray", "requests ended more than a day before or after most others, and are not used: the clock may have jumped, "+
				"or the logs are of several days: choose a part of the time (from, to)")
		}
		return stray
	})
}

// extent returns the first and the last step in which a request ended, and the number of histograms.
func (c *collector) extent() (first, last int64, histograms int) {
	first, last = math.MaxInt64, 0
	all := map[bin]bool{}
	for at := range c.counts {
		if at.ended() {
			first, last = min(first, at.step), max(last, at.step)
			at.bar = 0
			all[at] = true
		}
	}
	return first, last, len(all)
}

// A span is a time that one process, or one sample, covers.
type span struct{ from, to time.Time }

// setMissing marks the steps that not all processes cover from their beginning to their end. Spans at the same time are those of several
// processes. One alone may be of any number.
func setMissing(s *observed.Series, spans []span) {
	covered := make([]float64, len(s.Points))
	for _, p := range spans {
		from, to := p.from.Sub(s.Start), p.to.Sub(s.Start)
		for j := max(0, int(from/s.Step)); j < len(covered) && time.Duration(j)*s.Step < to; j++ {
			covered[j] += float64(min(to, time.Duration(j+1)*s.Step)-max(from, time.Duration(j)*s.Step)) / float64(s.Step)
		}
	}
	s.Processes = max(1, int(math.Round(slices.Max(covered))))
	for j := range s.Points {
		if len(s.Points) > 2 && covered[j] < float64(s.Processes)-.1 {
			s.Points[j] = observed.Point{Missing: true, Began: -1, Retries: -1}
		}
	}
	if s.Processes == 1 {
		s.Processes = 0
	}
}

// edges returns the edges of all series, which bar each bar of ExactEdges becomes, and how long 99.9 % took at most. Edges between
// which nothing ever is are left out. Bars are as wide as the times are exact: 3 ms of a log with milliseconds is from 2.5 to 3.5, or to 4 if
// they are cut off.
func (c *collector) edges() (edges []float64, barOf map[int16]int, longest time.Duration) {
	appendEdge := func(e float64) {
		if last := len(edges) - 1; e > 0 && (last < 0 || edges[last] < e-1e-9) {
			edges = append(edges, e)
		}
	}
	durations, all := map[int16]float64{}, 0.
	for at, n := range c.counts {
		if at.ended() {
			durations[at.bar] += float64(n)
			all += float64(n)
		}
	}
	barOf = map[int16]int{}
	unit, n := c.precision.Seconds(), 0.
	for _, bar := range slices.Sorted(maps.Keys(durations)) {
		from, to := 0., math.Inf(1)
		if bar > 0 {
			from = observed.ExactEdges[bar-1]
		}
		if int(bar) < len(observed.ExactEdges) {
			to = observed.ExactEdges[bar]
		}
		if n < .999*all {
			longest = time.Duration(min(to, 1e9) * 1e9)
		}
		n += durations[bar]
		if value := math.Floor(to/unit+1e-9) * unit; to-from < unit {
			if from, to = value-unit/2, value+unit/2; c.cuts {
				from, to = value, value+unit
			}
		}
		appendEdge(from)
		if barOf[bar] = len(edges); !math.IsInf(to, 1) {
			appendEdge(to)
			barOf[bar] = len(edges) - 1
		}
	}
	return edges, barOf, longest
}
