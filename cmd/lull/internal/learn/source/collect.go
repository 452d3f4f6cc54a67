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
	base                  time.Time       // of the steps: a time before which and after which they are counted
	series                []seriesOf
	known                 map[seriesOf]int
	hosts                 map[string]string  // the name that a host gets
	bars                  map[uint64]uint32  // requests by keyOf
	sums                  map[uint64]float64 // of seconds
	flows                 map[uint64]flow
	files                 []file
	resolution, precision time.Duration // of times of day, and of durations
	numbered              bool          // it is known which attempts are retries
	cuts                  bool          // durations are cut off, not rounded
}

// A seriesOf says which series a request belongs to.
type seriesOf struct {
	side          observed.Side
	service, host string
}

// A flow is what is known of a series in a step beside what ended in it.
type flow struct{ began, retries, ended int64 }

// A file is the time from the first line to the last, and how exactly times are written.
type file struct {
	from, to   time.Time
	resolution time.Duration
}

// A request has ended, or an attempt of one.
type request struct {
	ended           time.Time
	took, precision time.Duration
	outcome         int // a status from 100 to 599, or timeout and what follows
	retry           bool
}

const (
	timeout = 600 + iota
	refused
	reset
	canceled
	failed
)

const (
	middle    = 1 << 34 // the step of base
	maxSeries = 1 << 8
	maxBars   = 1 << 20  // in memory, before steps get longer: 50 MB
	maxFloats = 12 << 20 // in Points
	maxPoints = 3600
)

func outcomeName(outcome int) string {
	if outcome >= timeout {
		return []string{"timeout", "refused", "reset", "canceled", "error"}[outcome-timeout]
	}
	return fmt.Sprint(outcome)
}

// keyOf has 35 bits for the step (of 100 ms: a century), 8 for the series, 10 for the outcome and 11 for the bar.
func keyOf(step int64, series, outcome, bar int) uint64 {
	return uint64(step+middle)<<29 | uint64(series)<<21 | uint64(outcome)<<11 | uint64(bar)
}

func stepIn(key uint64) int64 { return int64(key>>29) - middle }
func seriesIn(key uint64) int { return int(key >> 21 & (maxSeries - 1)) }
func barIn(key uint64) int    { return int(key & 2047) }

func newCollector(kind string, step time.Duration) *collector {
	c := &collector{kind: kind, known: map[seriesOf]int{}, hosts: map[string]string{}, bars: map[uint64]uint32{}, sums: map[uint64]float64{}, flows: map[uint64]flow{}}
	if c.steps = []time.Duration{step}; step == 0 {
		c.steps = []time.Duration{time.Second / 10, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
	}
	return c
}

// seriesFor returns the number of a series. The host gets a name that tells nothing. Of too many services and hosts the last are one.
func (c *collector) seriesFor(r *reader, s seriesOf) int {
	if len(c.series) >= maxSeries-3 {
		r.problem("series", fmt.Sprintf("there are more than %d services and hosts: this one and others are counted as one", maxSeries-3))
		s.service, s.host = "", ""
	}
	if i, ok := c.known[s]; ok {
		return i
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

func floorDiv(a, b int64) int64 { return int64(math.Floor(float64(a) / float64(b))) }

func (c *collector) add(series int, r *request) {
	if c.base.IsZero() {
		c.base, c.precision = r.ended.Truncate(c.steps[len(c.steps)-1]), r.precision
	}
	c.precision = min(c.precision, r.precision)
	offset, step := int64(r.ended.Sub(c.base)), int64(c.steps[0])
	ended, began := floorDiv(offset, step), floorDiv(offset-int64(r.took), step)
	bar, _ := slices.BinarySearch(observed.ExactEdges, r.took.Seconds())
	c.bars[keyOf(ended, series, r.outcome, bar)]++
	c.sums[keyOf(ended, series, r.outcome, 0)] += r.took.Seconds()
	key := keyOf(ended, series, 0, 0)
	f := c.flows[key]
	f.ended++
	if began != ended {
		c.flows[key] = f
		key = keyOf(began, series, 0, 0)
		f = c.flows[key]
	}
	f.began++
	if r.retry {
		f.retries++
	}
	c.flows[key] = f
	for len(c.bars) > maxBars && len(c.steps) > 1 {
		c.coarsen()
	}
}

// coarsen makes steps longer.
func (c *collector) coarsen() {
	times := int64(c.steps[1] / c.steps[0])
	c.steps = c.steps[1:]
	c.bars = coarser(c.bars, times, func(a, b uint32) uint32 { return a + b })
	c.sums = coarser(c.sums, times, func(a, b float64) float64 { return a + b })
	c.flows = coarser(c.flows, times, func(a, b flow) flow { return flow{a.began + b.began, a.retries + b.retries, a.ended + b.ended} })
}

func coarser[V any](m map[uint64]V, times int64, add func(a, b V) V) map[uint64]V {
	out := make(map[uint64]V, len(m)/2)
	for key, v := range m {
		key = key&(1<<29-1) | uint64(floorDiv(stepIn(key), times)+middle)<<29
		out[key] = add(out[key], v)
	}
	return out
}

// finish makes the series of the data.
func (c *collector) finish(r *reader) error {
	c.leaveStrays(r)
	for _, f := range c.files {
		c.resolution = max(c.resolution, f.resolution)
	}
	var durations [2048]float64
	for key, n := range c.bars {
		durations[barIn(key)] += float64(n)
	}
	edges, barOf, longest := c.edges(&durations)
	first, last := c.bounds()
	for len(c.steps) > 1 && (c.steps[0] < c.resolution || last-first > maxPoints || len(c.sums)*len(edges) > maxFloats || c.steps[0] < time.Second && last-first > 600) {
		c.coarsen()
		first, last = c.bounds()
	}
	if last-first > 20*maxPoints || len(c.sums)*len(edges) > 4*maxFloats {
		return fmt.Errorf("step is %v: want longer steps, or a part of the time (from, to): the sources have %d of them", c.steps[0], last-first+1)
	}
	all := make([]*observed.Series, len(c.series))
	for i, of := range c.series {
		all[i] = &observed.Series{Side: of.side, Service: of.service, Host: of.host, Source: c.kind, Start: c.base.Add(time.Duration(first) * c.steps[0]).UTC(), Step: c.steps[0],
			Points: make([]observed.Point, last-first+1), Edges: edges, Exact: true, Resolution: c.resolution}
		for j := range all[i].Points {
			all[i].Points[j].Ended = map[string]*observed.Bars{}
		}
	}
	for key, n := range c.bars {
		p, name := &all[seriesIn(key)].Points[stepIn(key)-first], outcomeName(int(key>>11&1023))
		b := p.Ended[name]
		if b == nil {
			b = &observed.Bars{Counts: make([]float64, len(edges)+1), Sum: c.sums[key&^2047]}
			p.Ended[name] = b
		}
		b.Counts[barOf[barIn(key)]] += float64(n)
		b.N += float64(n)
	}
	for i, s := range all {
		c.setFlows(s, i, first, s.At(len(s.Points)).Add(-longest))
		c.setMissing(s)
	}
	slices.SortFunc(all, func(a, b *observed.Series) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Service, b.Service), cmp.Compare(len(a.Host), len(b.Host)), cmp.Compare(a.Host, b.Host))
	})
	r.data.Series = append(r.data.Series, all...)
	return nil
}

// leaveStrays removes the few requests that ended more than a day from the others, such as those of a clock that was wrong for a while.
func (c *collector) leaveStrays(r *reader) {
	var all, n int64
	ended := map[int64]int64{}
	for key, f := range c.flows {
		ended[stepIn(key)] += f.ended
		all += f.ended
	}
	steps := slices.Sorted(maps.Keys(ended))
	first, last, day := len(steps)-1, 0, int64(24*time.Hour/c.steps[0])
	for i, step := range steps {
		if n*100 < all*99 { // not in the last hundredth
			last = i
		}
		if n += ended[step]; n*100 > all { // not in the first
			first = min(first, i)
		}
	}
	for ; first > 0 && steps[first]-steps[first-1] <= day; first-- {
	}
	for ; last < len(steps)-1 && steps[last+1]-steps[last] <= day; last++ {
	}
	stray := func(key uint64) bool { return stepIn(key) < steps[first] || stepIn(key) > steps[last] }
	for key, f := range c.flows {
		for i := int64(0); i < f.ended && stray(key); i++ {
			r.problem("stray", "requests ended more than a day before or after the others, and are not used: the clock may have jumped")
		}
	}
	maps.DeleteFunc(c.bars, func(k uint64, _ uint32) bool { return stray(k) })
	maps.DeleteFunc(c.sums, func(k uint64, _ float64) bool { return stray(k) })
}

// bounds returns the steps in which the first request and the last ended.
func (c *collector) bounds() (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	for key := range c.sums {
		first, last = min(first, stepIn(key)), max(last, stepIn(key))
	}
	return first, last
}

// setFlows sets what began, was retried and was in flight. Of what began after until, some has not ended, and is in no log.
func (c *collector) setFlows(s *observed.Series, i int, first int64, until time.Time) {
	inFlight := 0.
	for key, f := range c.flows {
		if seriesIn(key) == i && stepIn(key) < first {
			inFlight += float64(f.began - f.ended) // strays have ended, too
		}
	}
	for j := range s.Points {
		p, f := &s.Points[j], c.flows[keyOf(first+int64(j), i, 0, 0)]
		inFlight += float64(f.began - f.ended)
		p.Began, p.Retries, p.InFlight = float64(f.began), float64(f.retries), inFlight
		if s.At(j + 1).After(until) {
			p.Began, p.Retries, p.InFlight = -1, -1, -1
		}
		if !c.numbered || s.Side == observed.Calls {
			p.Retries = -1
		}
	}
}

// missing is a step that nothing is known of.
var missing = observed.Point{Missing: true, Began: -1, Retries: -1, InFlight: -1}

// setMissing marks the steps that not all processes cover from their beginning to their end. Logs that cover the same time are of
// several processes. One alone may be of any number.
func (c *collector) setMissing(s *observed.Series) {
	covered := make([]float64, len(s.Points))
	for _, f := range c.files {
		from, to := f.from.Sub(s.Start), f.to.Add(c.resolution).Sub(s.Start)
		for j := max(0, int(from/s.Step)); j < len(covered) && time.Duration(j)*s.Step < to; j++ {
			covered[j] += float64(min(to, time.Duration(j+1)*s.Step)-max(from, time.Duration(j)*s.Step)) / float64(s.Step)
		}
	}
	s.Processes = max(1, int(math.Round(slices.Max(covered))))
	for j := range s.Points {
		if len(s.Points) > 2 && covered[j] < float64(s.Processes)-.1 {
			s.Points[j] = missing
		}
	}
	if s.Processes == 1 {
		s.Processes = 0
	}
}

// edges returns the edges of all series, which bar each bar of ExactEdges becomes, and how long 99.9 % took at most. Edges between
// which nothing ever is are left out. Bars are as wide as the times are exact: 3 ms of a log with milliseconds is from 2.5 to 3.5, or to 4 if
// they are cut off.
func (c *collector) edges(durations *[2048]float64) (edges []float64, barOf [2048]int, longest time.Duration) {
	appendEdge := func(e float64) {
		if last := len(edges) - 1; e > 0 && (last < 0 || edges[last] < e-1e-9) {
			edges = append(edges, e)
		}
	}
	unit, lower, all, n := c.precision.Seconds(), 0., 0., 0.
	for _, count := range durations {
		all += count
	}
	for bar, upper := range append(slices.Clip(observed.ExactEdges), math.MaxFloat64) {
		if durations[bar] > 0 {
			from, to := lower, upper
			if value := math.Floor(upper/unit+1e-9) * unit; upper-lower < unit {
				if from, to = value-unit/2, value+unit/2; c.cuts {
					from, to = value, value+unit
				}
			}
			appendEdge(from)
			if barOf[bar] = len(edges); upper < math.MaxFloat64 {
				appendEdge(to)
				barOf[bar] = len(edges) - 1
			}
			if n < .999*all {
				longest = time.Duration(min(upper, 1e9) * 1e9)
			}
			n += durations[bar]
		}
		lower = upper
	}
	return edges, barOf, longest
}
