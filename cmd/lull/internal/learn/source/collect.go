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
	kind       string
	steps      []time.Duration // the possible lengths of a step, each a multiple of the one before
	base       int64           // of the steps: a time before which and after which they are counted
	series     []seriesOf
	known      map[seriesOf]int
	hosts      map[string]string // the name that a host gets
	bars       map[uint64]uint32 // requests by keyOf
	sums       map[uint64]float64
	flows      map[uint64]flow
	files      []span
	resolution time.Duration // of times of day
	precision  time.Duration // of durations
	numbered   bool          // it is known which attempts are retries
}

// A seriesOf says which series a request belongs to.
type seriesOf struct {
	side          observed.Side
	service, host string
}

// A flow is what is known of a series in a step beside what ended in it.
type flow struct{ began, retries, ended int64 }

// A span is a stretch of time: from the first line of a file to its last.
type span struct{ from, to int64 }

// A request is one that has ended, or an attempt of one.
type request struct {
	series     int
	ended      int64 // nanoseconds since 1970
	took       int64 // nanoseconds
	resolution time.Duration
	precision  time.Duration
	outcome    int
	retry      bool
}

// Outcomes are statuses from 100 to 599 and, after these, words.
var words = []string{"timeout", "refused", "reset", "canceled", "error"}

const (
	outcomeTimeout = 600 + iota
	outcomeRefused
	outcomeReset
	outcomeCanceled
	outcomeError
)

func outcomeName(outcome int) string {
	if outcome >= 600 {
		return words[outcome-600]
	}
	return string([]byte{byte('0' + outcome/100), byte('0' + outcome/10%10), byte('0' + outcome%10)})
}

// A key has 35 bits for the step (of 100 ms: a century), 8 for the series, 10 for the outcome and 11 for the bar.
const (
	middle    = 1 << 34 // the step of base
	maxSeries = 1 << 8
	maxBars   = 1 << 20   // of bars in memory, before steps get longer: 50 MB
	maxBytes  = 100 << 20 // of Points
	maxPoints = 3600
)

func keyOf(step int64, series, outcome, bar int) uint64 {
	return uint64(step+middle)<<29 | uint64(series)<<21 | uint64(outcome)<<11 | uint64(bar)
}

func stepOf(key uint64) int64 { return int64(key>>29) - middle }
func seriesIn(key uint64) int { return int(key >> 21 & (maxSeries - 1)) }

// withStep returns key with another step.
func withStep(key uint64, step int64) uint64 { return key&(1<<29-1) | uint64(step+middle)<<29 }

func newCollector(kind string, o *Options) *collector {
	c := &collector{kind: kind, known: map[seriesOf]int{}, hosts: map[string]string{}, bars: map[uint64]uint32{},
		sums: map[uint64]float64{}, flows: map[uint64]flow{}}
	c.steps = []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
		5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
	if o.Step != 0 {
		c.steps = []time.Duration{o.Step}
	}
	return c
}

// seriesFor returns the number of a series. The name of its host is replaced by one that tells nothing. Beyond the last number all
// hosts and services are one.
func (c *collector) seriesFor(r *reader, s seriesOf) int {
	if i, ok := c.known[s]; ok {
		return i
	}
	own := s
	if s.host != "" {
		name, ok := c.hosts[s.host]
		if !ok {
			name = fmt.Sprintf("host-%d", len(c.hosts)+1)
			c.hosts[s.host] = name
		}
		own.host = name
	}
	if len(c.series) >= maxSeries-3 {
		r.problem(r.line, "series", fmt.Sprintf("there are more than %d services and hosts: this and what follows is counted as one", maxSeries-3))
		own = seriesOf{side: s.side}
		if i, ok := c.known[own]; ok {
			return i
		}
		s = own
	}
	c.known[s] = len(c.series)
	c.series = append(c.series, own)
	return len(c.series) - 1
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func (c *collector) add(r *request) {
	c.resolution, c.precision = max(c.resolution, r.resolution), finer(c.precision, r.precision)
	if c.base == 0 {
		last := int64(c.steps[len(c.steps)-1])
		c.base = r.ended / last * last
	}
	step := int64(c.steps[0])
	ended, began := floorDiv(r.ended-c.base, step), floorDiv(r.ended-r.took-c.base, step)
	seconds := float64(r.took) / 1e9
	bar, _ := slices.BinarySearch(observed.ExactEdges, seconds)
	c.bars[keyOf(ended, r.series, r.outcome, bar)]++
	c.sums[keyOf(ended, r.series, r.outcome, 0)] += seconds
	key := keyOf(ended, r.series, 0, 0)
	f := c.flows[key]
	f.ended++
	if began != ended {
		c.flows[key] = f
		key = keyOf(began, r.series, 0, 0)
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

func finer(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
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
		key = withStep(key, floorDiv(stepOf(key), times))
		out[key] = add(out[key], v)
	}
	return out
}

// finish makes the series of the data.
func (c *collector) finish(r *reader) error {
	r.name, r.line = c.kind, 0
	if len(c.bars) == 0 {
		return nil // the reader of each file has said so
	}
	c.leaveStrays(r)
	from, to := c.bounds()
	for len(c.steps) > 1 && (c.steps[0] < c.resolution || (to-from)/int64(c.steps[0]) > maxPoints ||
		c.steps[0] < time.Second && (to-from)/int64(c.steps[1]) >= 60 || c.bytes() > maxBytes) {
		c.coarsen()
	}
	from, to = c.bounds()
	if n := (to - from) / int64(c.steps[0]); n > 20*maxPoints || c.bytes() > 4*maxBytes {
		return fmt.Errorf("step is %v, and the sources last %v: want longer steps, or a part of the time", c.steps[0], time.Duration(to-from).Round(time.Second))
	}
	keys := slices.Sorted(maps.Keys(c.bars))
	all := make([]*observed.Series, len(c.series))
	order := make([]int, len(c.series))
	for i := range c.series {
		order[i] = i
		all[i] = c.makeSeries(i, keys, from, to)
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := c.series[i], c.series[j]
		return cmp.Or(cmp.Compare(a.side, b.side), cmp.Compare(a.service, b.service), cmp.Compare(len(a.host), len(b.host)), cmp.Compare(a.host, b.host))
	})
	for _, i := range order {
		if all[i] != nil {
			r.data.Series = append(r.data.Series, all[i])
		}
	}
	return nil
}

// leaveStrays removes requests that ended more than a day from most others, such as those of a clock that was wrong for a while.
func (c *collector) leaveStrays(r *reader) {
	gap := int64(24 * time.Hour / c.steps[0])
	byStep := map[int64]int64{}
	var all int64
	for key, f := range c.flows {
		byStep[stepOf(key)] += f.ended
		all += f.ended
	}
	steps := slices.Sorted(maps.Keys(byStep))
	for first := 0; first < len(steps); {
		end, n := first, int64(0)
		for ; end < len(steps) && (end == first || steps[end]-steps[end-1] <= gap); end++ {
			n += byStep[steps[end]]
		}
		if n*100 < all {
			a, b := steps[first], steps[end-1]
			stray := func(key uint64) bool { return stepOf(key) >= a && stepOf(key) <= b }
			maps.DeleteFunc(c.bars, func(k uint64, _ uint32) bool { return stray(k) })
			maps.DeleteFunc(c.sums, func(k uint64, _ float64) bool { return stray(k) })
			maps.DeleteFunc(c.flows, func(k uint64, _ flow) bool { return stray(k) })
			r.problem(0, "stray", "requests ended more than a day before or after all others, and are not used: the clock may have jumped")
			r.data.Problems[r.known[r.name+"\x00stray"]].Count += max(0, n-1)
		}
		first = end
	}
}

// bounds returns the time of the first step in which a request ended, and the end of the last.
func (c *collector) bounds() (from, to int64) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for key := range c.bars {
		first, last = min(first, stepOf(key)), max(last, stepOf(key))
	}
	return c.base + first*int64(c.steps[0]), c.base + (last+1)*int64(c.steps[0])
}

// bytes is about how much memory the Points will take.
func (c *collector) bytes() int {
	used := map[uint64]bool{} // bars of each series
	for key := range c.bars {
		used[uint64(seriesIn(key))<<11|key&(1<<11-1)] = true
	}
	wide := map[int]int{}
	for key := range used {
		wide[int(key>>11)] += 2
	}
	n := 0
	for key := range c.sums {
		n += 8*min(wide[seriesIn(key)], len(observed.ExactEdges)) + 100
	}
	return n
}

// makeSeries makes series i of the sorted keys of bars. It is nil if no request belongs to it.
func (c *collector) makeSeries(i int, keys []uint64, from, to int64) *observed.Series {
	step := int64(c.steps[0])
	first := floorDiv(from-c.base, step)
	s := &observed.Series{Side: c.series[i].side, Service: c.series[i].service, Host: c.series[i].host, Source: c.kind, Start: time.Unix(0, from).UTC(),
		Step: c.steps[0], Exact: true, Resolution: c.resolution, Processes: 0}
	s.Points = make([]observed.Point, floorDiv(to-c.base, step)-first)
	edges, barOf := c.edges(i, keys)
	s.Edges = edges
	var durations []uint32 // by bar
	for _, key := range keys {
		if seriesIn(key) != i {
			continue
		}
		p := &s.Points[stepOf(key)-first]
		if p.Ended == nil {
			p.Ended = map[string]*observed.Bars{}
		}
		outcome, bar := int(key>>11&1023), int(key&2047)
		name := outcomeName(outcome)
		b := p.Ended[name]
		if b == nil {
			b = &observed.Bars{Counts: make([]float64, len(edges)+1), Sum: c.sums[key&^2047]}
			p.Ended[name] = b
		}
		n := c.bars[key]
		b.Counts[barOf[bar]] += float64(n)
		b.N += float64(n)
		for len(durations) <= bar {
			durations = append(durations, 0)
		}
		durations[bar] += n
	}
	if durations == nil {
		return nil
	}
	c.setFlows(s, i, first, to-longest(durations))
	c.setMissing(s)
	return s
}

// longest returns how long nearly all took.
func longest(durations []uint32) int64 {
	var all, n float64
	for _, count := range durations {
		all += float64(count)
	}
	for bar, count := range durations {
		if n += float64(count); n >= .999*all {
			return int64(observed.ExactEdges[min(bar, len(observed.ExactEdges)-1)] * 1e9)
		}
	}
	return 0
}

// setFlows sets what began, was retried and was in flight. Of what began after until, some has not ended, and is in no log.
func (c *collector) setFlows(s *observed.Series, i int, first, until int64) {
	var inFlight int64
	for key, f := range c.flows {
		step := stepOf(key) - first
		if seriesIn(key) == i && step < 0 {
			inFlight += f.began - f.ended
		}
	}
	for j := range s.Points {
		p := &s.Points[j]
		f := c.flows[keyOf(first+int64(j), i, 0, 0)]
		inFlight += f.began - f.ended
		p.Began, p.InFlight, p.Retries = float64(f.began), float64(inFlight), float64(f.retries)
		if s.At(j+1).UnixNano() > until {
			p.Began, p.InFlight, p.Retries = -1, -1, -1
		}
		if !c.numbered || s.Side == observed.Calls {
			p.Retries = -1
		}
	}
}

// setMissing marks the steps that not all processes cover from their beginning to their end. Logs that cover the same time are of
// several processes.
func (c *collector) setMissing(s *observed.Series) {
	covered := make([]float64, len(s.Points))
	for _, f := range c.files {
		a, b := f.from-s.Start.UnixNano(), f.to+int64(c.resolution)-s.Start.UnixNano()
		for j := max(0, a/int64(s.Step)); j < int64(len(covered)) && j*int64(s.Step) < b; j++ {
			covered[j] += float64(min(b, (j+1)*int64(s.Step))-max(a, j*int64(s.Step))) / float64(s.Step)
		}
	}
	most := 0.
	for _, n := range covered {
		most = max(most, n)
	}
	s.Processes = max(1, int(math.Round(most)))
	whole := float64(s.Processes) - .1
	if len(s.Points) < 3 {
		return
	}
	for j := range s.Points {
		if covered[j] < whole {
			s.Points[j] = observed.Point{Missing: true, Began: -1, Retries: -1, InFlight: -1}
		}
	}
}

// edges returns the edges of series i, and which bar each bar of ExactEdges becomes. Edges between which nothing is in any step are
// left out. Bars are as wide as the times are exact: 3 ms of a log with milliseconds is from 2.5 to 3.5.
func (c *collector) edges(i int, keys []uint64) ([]float64, []int) {
	exact := observed.ExactEdges
	used := make([]bool, len(exact)+1)
	for _, key := range keys {
		if seriesIn(key) == i {
			used[key&2047] = true
		}
	}
	var edges []float64
	barOf := make([]int, len(exact)+1)
	unit := c.precision.Seconds()
	for bar, is := range used {
		if !is {
			continue
		}
		lower, upper := 0., math.Inf(1)
		if bar > 0 {
			lower = exact[bar-1]
		}
		if bar < len(exact) {
			upper = exact[bar]
		}
		if upper-lower < unit {
			middle := math.Floor(upper/unit+1e-9) * unit
			lower, upper = max(0, middle-unit/2), middle+unit/2
		}
		if n := len(edges); lower > 0 && (n == 0 || edges[n-1] < lower-1e-9) {
			edges = append(edges, lower)
		}
		if n := len(edges); n == 0 || edges[n-1] < upper-1e-9 {
			if math.IsInf(upper, 1) {
				barOf[bar] = len(edges)
				continue
			}
			edges = append(edges, upper)
		}
		barOf[bar] = len(edges) - 1
	}
	return edges, barOf
}
