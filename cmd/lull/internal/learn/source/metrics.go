package source

import (
	"cmp"
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
	kind    string             // of the first source
	all     map[string]*metric // by name and labels
	started map[string]int64   // the first sample of each process
}

// A metric is a counter, a gauge or a histogram with its labels.
type metric struct {
	rule    *rule
	who     seriesOf
	outcome string
	process string // which process measured
	samples []sample
}

// A sample is what was read at one time.
type sample struct {
	at, start int64 // nanoseconds since 1970; since when it is counted, 0: unknown
	delta     bool  // counted since start alone
	n, sum    float64
	bars      []edge // of a histogram
}

// An edge is how many were at most upper.
type edge struct{ upper, n float64 }

// read adds what a source has of a metric at a time. Of a classic histogram each bucket, the count and the sum come alone.
func (r *reader) addSample(name string, labels map[string]string, s sample) {
	base, part, unit := ruleName(name)
	if rules[base] == nil || r.outside(time.Unix(0, s.at)) {
		return
	}
	if math.IsNaN(s.n) || s.n < 0 || math.IsInf(s.n, 0) {
		r.wrong(name, fmt.Append(nil, s.n), "a number that is not negative")
		return
	}
	if r.metrics == nil {
		r.metrics = &metrics{kind: r.src.Kind, all: map[string]*metric{}, started: map[string]int64{}}
	}
	m := r.metrics
	r.src.Used++
	if at := time.Unix(0, s.at).UTC(); r.src.From.IsZero() || at.Before(r.src.From) {
		r.src.From = at
	}
	if at := time.Unix(0, s.at).UTC(); at.After(r.src.To) {
		r.src.To = at
	}
	le, isBucket := labels["le"]
	delete(labels, "le")
	process := labels["job"] + "\x00" + labels["instance"] + "\x00" + labels["pod"]
	if first, ok := m.started[process]; !ok || s.at < first {
		m.started[process] = s.at
	}
	key := base + fmt.Sprint(labels) // in the order of the names
	if isBucket {
		labels["le"] = le
	}
	for i := range rules[base] {
		rule := &rules[base][i]
		one := m.all[fmt.Sprint(key, i)]
		if one == nil {
			outcome, ok := rule.outcome(labels)
			service, wanted := r.serviceOf(rule, labels)
			if !ok || !wanted {
				continue
			}
			one = &metric{rule: rule, who: seriesOf{side: rule.side, service: service}, outcome: outcome, process: process}
			m.all[fmt.Sprint(key, i)] = one
		}
		r.put(one, s, part, le, cmp.Or(unit, rule.unit))
	}
}

// serviceOf returns the name of a service; of an address one that tells nothing, unless the user has named it.
func (r *reader) serviceOf(rule *rule, labels map[string]string) (string, bool) {
	for _, label := range rule.service {
		switch name := labels[label]; {
		case name == "":
		case r.Service != "":
			if name != r.Service {
				r.note("other services are left out")
			}
			return name, name == r.Service
		case slices.Contains(addresses, label):
			if r.addresses[name] == "" {
				r.addresses[name] = fmt.Sprintf("service-%d", len(r.addresses)+1)
			}
			return r.addresses[name], true
		default:
			return name, true
		}
	}
	return r.Service, true
}

// put adds a sample, or a part of one.
func (r *reader) put(m *metric, s sample, part, le string, unit float64) {
	i, found := slices.BinarySearchFunc(m.samples, s.at, func(a sample, at int64) int { return cmp.Compare(a.at, at) })
	if !found {
		m.samples = slices.Insert(m.samples, i, sample{at: s.at, start: s.start, delta: s.delta, n: math.NaN(), sum: math.NaN()})
	}
	to := &m.samples[i]
	set := func(v *float64, is float64) {
		if !math.IsNaN(*v) && *v != is {
			r.problem("again", "another value of the same metric at the same time is not used")
			return
		}
		*v = is
	}
	switch part {
	case "bucket":
		upper, err := strconv.ParseFloat(le, 64)
		if err != nil || math.IsNaN(upper) {
			r.wrong("le", []byte(le), "a number or +Inf")
		} else if math.IsInf(upper, 1) {
			set(&to.n, s.n)
		} else {
			to.bars = append(to.bars, edge{upper * unit, s.n})
		}
	case "sum":
		set(&to.sum, s.n*unit)
	default:
		set(&to.n, s.n)
		if part == "" && s.bars != nil {
			to.sum, to.bars = s.sum*unit, make([]edge, len(s.bars))
			for j, b := range s.bars {
				to.bars[j] = edge{b.upper * unit, b.n}
			}
		}
	}
}

// finish makes the series of the data.
func (m *metrics) finish(r *reader) error {
	groups := map[seriesOf][]*metric{}
	var times, between []int64
	for _, key := range slices.Sorted(maps.Keys(m.all)) {
		one := m.all[key]
		groups[one.who] = append(groups[one.who], one)
		for i, s := range one.samples {
			if times = append(times, s.at); i > 0 {
				between = append(between, s.at-one.samples[i-1].at)
			}
			if s.start != 0 && s.start < s.at {
				times = append(times, s.start)
			}
		}
		one.samples = slices.DeleteFunc(one.samples, func(s sample) bool { return !s.usable(r) })
	}
	slices.Sort(times)
	times = slices.Compact(times)
	if len(between) == 0 {
		return fmt.Errorf("no metric has samples of two times: want two dumps, or one with timestamps")
	}
	slices.Sort(between)
	interval := time.Duration(between[len(between)/2])
	step := max(r.Step, interval.Round(time.Second), time.Second)
	if r.Step != 0 && step > r.Step {
		r.problem("step", fmt.Sprintf("step is %v: metrics have %v, since their samples are that far apart", r.Step, step))
	}
	if span := time.Duration(times[len(times)-1] - times[0]); span/step > 20*maxPoints {
		return fmt.Errorf("the samples last %v, too long for steps of %v: want longer steps, or a part of the time (from, to)", span.Round(time.Second), step)
	}
	for _, who := range slices.SortedFunc(maps.Keys(groups), func(a, b seriesOf) int {
		return cmp.Or(cmp.Compare(a.side, b.side), cmp.Compare(a.service, b.service))
	}) {
		g := group{reader: r, all: groups[who], interval: int64(interval), s: &observed.Series{Side: who.side, Service: who.service, Source: m.kind,
			Start: time.Unix(0, times[0]).UTC().Truncate(step), Step: step, Resolution: interval}}
		if g.make(times) {
			r.data.Series = append(r.data.Series, g.s)
		}
	}
	return nil
}

// usable sorts the edges of a sample, and reports whether the sample makes sense.
func (s *sample) usable(r *reader) bool {
	slices.SortFunc(s.bars, func(a, b edge) int { return cmp.Compare(a.upper, b.upper) })
	s.bars = slices.Compact(s.bars)
	last := edge{-1, 0}
	for _, b := range s.bars {
		if b.n < last.n || b.upper == last.upper {
			r.problem("sorted", "the buckets of a histogram do not grow with le: it is not used at this time")
			return false
		}
		last = b
	}
	if math.IsNaN(s.n) || s.n < last.n {
		r.problem("count", "a histogram lacks its count, or has a lower one than its buckets: it is not used at this time")
		return false
	}
	return true
}

// A group makes one Series.
type group struct {
	*reader
	all      []*metric
	interval int64
	s        *observed.Series
	has      [inFlight + 1]bool
}

// together is the outcome of times that are known of all outcomes together, until they are divided.
const together = "?"

func (g *group) make(times []int64) bool {
	g.s.Points = make([]observed.Point, int((times[len(times)-1]-g.s.Start.UnixNano()-1)/int64(g.s.Step))+1)
	for i := range g.s.Points {
		g.s.Points[i] = observed.Point{Began: -1, Retries: -1, InFlight: -1, Ended: map[string]*observed.Bars{}}
	}
	processes := map[string]bool{}
	for _, m := range g.all {
		g.has[m.rule.role] = true
		processes[m.process] = true
	}
	if !g.has[timed] && !g.has[untimed] && !g.has[mixed] && !g.has[counted] {
		return false
	}
	if !processes["\x00\x00"] {
		g.s.Processes = len(processes)
	}
	g.setEdges()
	for _, m := range g.all {
		for i := range m.samples {
			g.use(m, i)
		}
	}
	for i := range g.s.Points {
		g.divide(&g.s.Points[i])
		if !covered(times, g.s.At(i).UnixNano(), g.s.At(i+1).UnixNano(), g.interval*7/2) {
			g.s.Points[i] = observed.Point{Missing: true, Began: -1, Retries: -1, InFlight: -1}
		}
	}
	return true
}

// covered reports whether there are times before from, at to or after it, and between them with no gap that is longer than most.
func covered(times []int64, from, to, most int64) bool {
	i, _ := slices.BinarySearch(times, from+1) // the first after from
	if i == 0 || to > times[len(times)-1] {
		return false
	}
	for ; times[i-1] < to; i++ {
		if times[i]-times[i-1] > most {
			return false
		}
	}
	return true
}

// setEdges sets the edges that all classic histograms have, or any of native ones, which leave out what is empty.
func (g *group) setEdges() {
	count, histograms := map[float64]int{}, 0
	native := false
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
	if m.rule.role == inFlight {
		if p := (s.at - g.s.Start.UnixNano()) / int64(g.s.Step); p < int64(len(g.s.Points)) {
			g.s.Points[p].InFlight = max(0, g.s.Points[p].InFlight) + s.n
		}
		return
	}
	if m.rule.role == counted && (g.has[timed] || g.has[untimed] || g.has[mixed]) {
		return
	}
	from, grown := s.at-g.interval, g.bars(s)
	switch {
	case s.delta && s.start != 0:
		from = s.start
	case i > 0 && s.delta:
		from = m.samples[i-1].at
	case i > 0:
		before := &m.samples[i-1]
		if from = before.at; s.n >= before.n && (s.start == before.start || s.start < before.at) {
			subtract(grown, g.bars(before))
			break
		}
		g.problem("restart", "a counter began at 0 again: a process was started anew, and what it counted between the last sample and that is not known")
		from = max(from, s.start)
	case s.start != 0 && s.start >= g.metrics.started[m.process]-g.interval: // it began at 0
		from = s.start
	case s.at > g.metrics.started[m.process]: // it was 0 when the process was seen before
	default:
		return
	}
	if grown.N == 0 && m.rule.role != retried {
		return
	}
	g.spread(m, grown, from, s.at)
}

// bars returns what a sample counts, over the edges of the series.
func (g *group) bars(s *sample) *observed.Bars {
	b := &observed.Bars{N: s.n, Sum: s.sum}
	if len(s.bars) == 0 {
		return b
	}
	b.Counts = make([]float64, len(g.s.Edges)+1)
	below, j, last := 0., 0, edge{}
	for i, e := range g.s.Edges {
		for j < len(s.bars) && s.bars[j].upper <= e {
			last = s.bars[j]
			j++
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

func subtract(b, before *observed.Bars) {
	b.N -= before.N
	b.Sum -= before.Sum
	for i := range min(len(b.Counts), len(before.Counts)) {
		b.Counts[i] = max(0, b.Counts[i]-before.Counts[i])
	}
}

// spread adds what was counted between two times to the steps between them.
func (g *group) spread(m *metric, grown *observed.Bars, from, to int64) {
	start, step := g.s.Start.UnixNano(), int64(g.s.Step)
	for j := max(0, (from-start)/step); j < int64(len(g.s.Points)) && start+j*step < to && from < to; j++ {
		share := float64(min(to, start+(j+1)*step)-max(from, start+j*step)) / float64(to-from)
		switch p := &g.s.Points[j]; m.rule.role {
		case retried:
			p.Retries = max(0, p.Retries) + share*grown.N
		case mixed:
			addShare(p, together, grown, share)
		default:
			addShare(p, m.outcome, grown, share)
		}
	}
}

func addShare(p *observed.Point, outcome string, more *observed.Bars, share float64) {
	b := p.Ended[outcome]
	if b == nil {
		b = &observed.Bars{Sum: math.NaN()}
		p.Ended[outcome] = b
	}
	b.N += share * more.N
	if more.Counts == nil {
		return
	}
	if b.Counts == nil {
		b.Counts, b.Sum = make([]float64, len(more.Counts)), 0
	}
	for i, n := range more.Counts {
		b.Counts[i] += share * n
	}
	b.Sum += share * more.Sum
}

// divide gives each outcome its share of the times that are known of all together.
func (g *group) divide(p *observed.Point) {
	all := p.Ended[together]
	if delete(p.Ended, together); all == nil || all.N <= 0 {
		return
	}
	if len(p.Ended) == 0 {
		g.problem("codes", "times are known, but not the codes: all count as 200")
		p.Ended["200"] = all
		return
	}
	g.problem("shares", "times are known of all codes together: each code gets its share of them")
	for outcome, b := range p.Ended {
		more := b.N
		for _, n := range b.Counts {
			more -= n
		}
		if more > 1e-9 {
			b.N -= more
			addShare(p, outcome, all, more/all.N)
		}
	}
}
