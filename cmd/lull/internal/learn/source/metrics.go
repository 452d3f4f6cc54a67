package source

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// metrics are the samples of all sources. Only metrics that have a rule are kept.
type metrics struct {
	all     map[string]*metric // by name and labels
	started map[string]int64   // the first sample of each process
	names   map[string]string  // of services that are known by their address
}

// A metric is a counter or a histogram with its labels.
type metric struct {
	base      string // its name without endings
	who       seriesOf
	isAddress bool // the service's name is its address, until all is read
	outcome   string
	process   string // which process measured
	samples   []sample
}

// A sample is what was read at one time.
type sample struct {
	at, start int64 // nanoseconds since 1970; since when it is counted, 0: unknown
	delta     bool  // counted since start alone
	n         float64
	bars      []edge // of a histogram
}

// An edge is how many were at most upper.
type edge struct{ upper, n float64 }

// addBar adds a bar of a native histogram, which leaves out what is empty.
func addBar(bars []edge, lower, upper, n float64) []edge {
	last := edge{math.Inf(-1), 0}
	if len(bars) > 0 {
		last = bars[len(bars)-1]
	}
	if lower > last.upper*(1+1e-9) {
		bars = append(bars, edge{lower, last.n})
	}
	return append(bars, edge{upper, last.n + n})
}

// addSample adds what a source has of a metric at a time. Of a classic histogram each bucket and the count come alone.
func (r *reader) addSample(name string, labels map[string]string, s sample) {
	base, part, unit := ruleName(name)
	if rules[base] == nil || part == "_sum" {
		return
	}
	at := time.Unix(0, s.at)
	if r.leavesOut(at, "") {
		return
	}
	if !(s.n >= 0 && s.n <= math.MaxFloat64) {
		r.wrong(name, fmt.Append(nil, s.n), "a number that is not negative")
		return
	}
	r.used(at)
	process := labels["job"] + "\x00" + labels["instance"] + "\x00" + labels["pod"]
	if first, ok := r.metrics.started[process]; !ok || s.at < first {
		r.metrics.started[process] = s.at
	}
	le := labels["le"]
	labels["le"] = "" // the buckets of a histogram are one metric
	whole := fmt.Sprint(base, labels)
	labels["le"] = le
	if part == "_bucket" {
		upper, err := strconv.ParseFloat(le, 64)
		if err != nil || math.IsNaN(upper) {
			r.wrong("le", []byte(le), "a number or +Inf")
			return
		}
		if !math.IsInf(upper, 1) {
			s.bars, s.n = []edge{{upper, s.n}}, math.NaN()
		}
	}
	for i, rule := range rules[base] {
		key := fmt.Sprint(whole, i)
		m := r.metrics.all[key]
		if m == nil {
			m = &metric{base: base, who: seriesOf{side: rule.side, service: r.Service}, outcome: rule.outcome(labels), process: process}
			if i := slices.IndexFunc(rule.service, func(label string) bool { return labels[label] != "" }); i >= 0 {
				m.who.service = labels[rule.service[i]]
				m.isAddress = r.Service == "" && slices.Contains(addresses, rule.service[i])
			}
			if m.outcome == "" || r.leavesOut(at, m.who.service) {
				continue
			}
			r.metrics.all[key] = m
		}
		r.put(m, s, cmp.Or(unit, rule.unit))
	}
}

// put adds a sample, or a part of one.
func (r *reader) put(m *metric, s sample, unit float64) {
	i, found := slices.BinarySearchFunc(m.samples, s.at, func(a sample, at int64) int { return cmp.Compare(a.at, at) })
	if !found {
		m.samples = slices.Insert(m.samples, i, sample{at: s.at, start: s.start, delta: s.delta, n: math.NaN()})
	}
	to := &m.samples[i]
	if to.n >= 0 && s.n >= 0 {
		if to.n != s.n {
			r.problem("again", "another value of the same metric at the same time is not used")
		}
		return
	}
	for _, b := range s.bars {
		if b.upper*unit < math.Inf(1) {
			to.bars = append(to.bars, edge{b.upper * unit, b.n})
		}
	}
	if s.n >= 0 {
		to.n = s.n
	}
}

// usable sorts the edges of a sample, and reports whether the sample makes sense.
func (s *sample) usable(r *reader) bool {
	slices.SortFunc(s.bars, func(a, b edge) int { return cmp.Compare(a.upper, b.upper) })
	s.bars = slices.Compact(s.bars)
	for i, b := range s.bars {
		if i > 0 && (b.n < s.bars[i-1].n || b.upper == s.bars[i-1].upper) || !(b.n <= s.n) {
			r.problem("sorted", "the buckets of a histogram do not grow with le, up to the count: it is not used at this time")
			return false
		}
	}
	if math.IsNaN(s.n) {
		r.problem("count", "a histogram lacks its count: it is not used at this time")
	}
	return !math.IsNaN(s.n)
}

// finish makes the series of the data.
func (m *metrics) finish(r *reader) error {
	if len(m.all) == 0 {
		return nil
	}
	groups := map[seriesOf][]*metric{}
	var times, between []int64
	for _, key := range slices.Sorted(maps.Keys(m.all)) {
		one := m.all[key]
		if one.isAddress {
			one.who.service = r.nameOf(one.who.service)
		}
		groups[one.who] = append(groups[one.who], one)
		one.samples = slices.DeleteFunc(one.samples, func(s sample) bool { return !s.usable(r) })
		for i := 1; i < len(one.samples); i++ {
			between = append(between, one.samples[i].at-one.samples[i-1].at)
		}
	}
	if len(between) == 0 {
		return errors.New("no metric has samples of two times: want two dumps, or one with timestamps")
	}
	slices.Sort(between)
	interval := between[len(between)/2]
	for _, one := range m.all {
		for _, s := range one.samples {
			if times = append(times, s.at); s.at-s.start < 2*interval {
				times = append(times, s.start)
			}
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	var spans []span
	for i, at := range times[1:] {
		if at-times[i] <= interval*7/2 {
			spans = append(spans, span{time.Unix(0, times[i]), time.Unix(0, at)})
		}
	}
	step := max(r.Step, time.Duration(interval).Round(time.Second), time.Second)
	if r.Step != 0 && step > r.Step {
		r.problem("step", fmt.Sprintf("step is %v: metrics have %v, since their samples are that far apart", r.Step, step))
	}
	start := time.Unix(0, times[0]).UTC().Truncate(step)
	n := (times[len(times)-1]-start.UnixNano()-1)/int64(step) + 1
	if n > 20*maxPoints {
		return fmt.Errorf("step is %v: want longer steps, or a part of the time (from, to): the samples have %d of them", step, n)
	}
	for _, who := range slices.SortedFunc(maps.Keys(groups), func(a, b seriesOf) int { return cmp.Or(cmp.Compare(a.side, b.side), cmp.Compare(a.service, b.service)) }) {
		g := group{reader: r, all: r.once(groups[who]), interval: interval, s: &observed.Series{Side: who.side, Service: who.service, Source: "metrics", Start: start, Step: step,
			Resolution: time.Duration(interval), Points: make([]observed.Point, n)}}
		if g.make(spans) {
			r.data.Series = append(r.data.Series, g.s)
		}
	}
	return nil
}

// A group makes one Series.
type group struct {
	*reader
	all      []*metric
	interval int64
	s        *observed.Series
}

func (g *group) make(spans []span) bool {
	processes, has := map[string]bool{}, map[string]bool{}
	g.setEdges()
	for _, m := range g.all {
		processes[m.process], has[m.outcome] = true, true
		for i := range m.samples {
			g.use(m, i)
		}
	}
	for i := range g.s.Points {
		p := &g.s.Points[i]
		p.Began, p.Retries = -1, -1
		if has[retried] {
			p.Retries = p.Bars(retried, 0).N
		}
		delete(p.Ended, retried)
		g.divide(p)
	}
	setMissing(g.s, spans)
	g.s.Processes = len(processes)
	if processes["\x00\x00"] { // it has no name
		g.s.Processes = 0
	}
	delete(has, retried)
	return len(has) > 0
}

// setEdges sets the edges that all classic histograms have, or any of native ones, which leave out what is empty.
func (g *group) setEdges() {
	count, histograms, native := map[float64]int{}, 0, false
	for _, m := range g.all {
		mine := map[float64]bool{}
		for _, s := range m.samples {
			for _, b := range s.bars {
				mine[b.upper] = true
			}
			native = native || len(s.bars) > 0 && len(s.bars) < len(mine)
		}
		for e := range mine {
			count[e]++
		}
		histograms += min(1, len(mine))
	}
	for e, n := range count {
		if e > 0 && (native || n == histograms) {
			g.s.Edges = append(g.s.Edges, e)
		}
	}
	slices.Sort(g.s.Edges)
}

// use adds what sample i counted to the steps since the one before.
func (g *group) use(m *metric, i int) {
	s := &m.samples[i]
	start, step, n := g.s.Start.UnixNano(), int64(g.s.Step), int64(len(g.s.Points))
	from, grown, first := s.at-g.interval, g.bars(s), g.metrics.started[m.process]
	switch {
	case s.delta && s.start != 0:
		from = s.start
	case i > 0:
		before := &m.samples[i-1]
		from = before.at
		switch {
		case s.delta:
		case s.n < before.n || s.start != before.start && s.start >= before.at:
			g.problem("restart", "a counter began at 0 again: a process was started anew, and what it counted between the last sample and that is not known")
			from = max(from, s.start)
		default:
			old := g.bars(before)
			grown.N -= old.N
			for j := range min(len(grown.Counts), len(old.Counts)) {
				grown.Counts[j] -= old.Counts[j]
			}
			if has := len(grown.Counts); has > 0 && (slices.Min(grown.Counts) < -1e-6*s.n || old.N > 0 && len(old.Counts) != has) {
				g.problem("shrunk", "a histogram has other buckets than before: the times between are not used")
				grown.Counts = nil
			}
		}
	case s.start >= first-g.interval: // it began at 0, and was 0 when the process was seen before
		if from = s.start; first < s.at {
			from = max(from, s.at-g.interval)
		}
	case s.at <= first: // otherwise it was 0 when the process was seen before
		return
	}
	for j := max(0, (from-start)/step); j < n && start+j*step < s.at && from < s.at && grown.N > 0; j++ {
		g.s.Points[j].Add(m.outcome, grown, float64(min(s.at, start+(j+1)*step)-max(from, start+j*step))/float64(s.at-from))
	}
}

// bars returns what a sample counts, over the edges of the series.
func (g *group) bars(s *sample) *observed.Bars {
	b := &observed.Bars{N: s.n}
	if len(s.bars) == 0 {
		return b
	}
	b.Counts = make([]float64, len(g.s.Edges)+1)
	below, j, last := 0., 0, edge{}
	for i, e := range g.s.Edges {
		for ; j < len(s.bars) && s.bars[j].upper <= e; j++ {
			last = s.bars[j]
		}
		n := last.n
		if j < len(s.bars) && last.upper < e { // a part of the next bar
			n += (s.bars[j].n - last.n) * (e - max(0, last.upper)) / (s.bars[j].upper - max(0, last.upper))
		}
		b.Counts[i] = n - below
		below = n
	}
	b.Counts[len(g.s.Edges)] = s.n - below
	return b
}

// divide gives each outcome its share of the times that are known of all together. Times that are known of a part stand for all.
func (g *group) divide(p *observed.Point) {
	all := p.Ended[together]
	delete(p.Ended, together)
	if all != nil && len(p.Ended) == 0 {
		g.problem("codes", "times are known, but not the codes: all count as 200")
		p.Ended["200"] = all
	}
	for outcome, b := range p.Ended {
		known, n := 0., b.N
		for _, of := range b.Counts {
			known += of
		}
		switch {
		case n <= known*(1+1e-9):
		case all != nil && all.N > 0:
			g.problem("shares", "times are known of all codes together: each code gets its share of them")
			p.Add(outcome, all, (n-known)/all.N)
			b.N = n
		case known == 0:
			b.Counts = nil
		default:
			g.problem("parts", "times are known of a part of the requests: they stand for all")
			for i := range b.Counts {
				b.Counts[i] *= n / known
			}
		}
	}
}
