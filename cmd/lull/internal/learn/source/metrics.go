package source

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// metrics are the samples of all sources of one kind. Only metrics that have a rule are kept.
type metrics struct {
	kind   string
	series map[string]*metric // by name and labels
	times  map[int64]bool     // of samples
}

// A metric is a counter, a gauge, a bucket of a classic histogram, or a histogram.
type metric struct {
	rule    *rule
	part    string // "bucket", "count" or "sum" of a classic histogram; "" otherwise
	edge    float64
	who     groupOf
	outcome string
	process string // which process measured
	whole   string // the labels without le: buckets of one histogram have the same
	unit    float64
	samples []sample
}

// A sample is what was read at one time.
type sample struct {
	at    int64
	start int64 // since when it is counted; 0: unknown
	delta bool  // counted since start alone, not since the sample before
	value float64
	bars  []bar // of a histogram; nil: it is none
	sum   float64
}

// A bar is how many were longer than lower, and at most upper.
type bar struct{ lower, upper, n float64 }

// A groupOf says which Series a metric belongs to.
type groupOf struct {
	side    observed.Side
	service string
}

// A role is what a metric tells of its group.
type role uint8

const (
	timed    role = iota // how long requests took, by outcome
	untimed              // how many ended, by outcome
	mixed                // how long requests took, whatever their outcome
	counted              // as untimed, if nothing else is known
	retried              // how many retries
	inFlight             // how many are in progress
)

// A rule says what a metric means.
type rule struct {
	role    role
	side    observed.Side
	service []string // labels: the first that is there has the name of the service
	address bool     // it is an address: it is not kept
	unit    float64  // seconds, if the name of the metric has none
	outcome func(labels map[string]string) (string, bool)
}

var (
	dependencyLabel = []string{"dependency"}
	clusterLabel    = []string{"envoy_cluster_name"}
	istioLabels     = []string{"destination_service_name", "destination_canonical_service", "destination_workload"}
	addressLabels   = []string{"peer_service", "service_peer_name", "server_address", "net_peer_name"}
)

// rules are by the name of the metric without its unit and the endings of Prometheus.
var rules = map[string][]*rule{
	// lullotel's. First attempts that succeed are in the duration of calls alone.
	"retry_call_duration": {
		{role: timed, side: observed.Calls, service: dependencyLabel, outcome: lullOutcome},
		{role: timed, side: observed.Attempts, service: dependencyLabel, outcome: onlyFirst},
	},
	"retry_calls":            {{role: counted, side: observed.Calls, service: dependencyLabel, outcome: lullOutcome}, {role: untimed, side: observed.Attempts, service: dependencyLabel, outcome: onlyRetried}},
	"retry_attempt_duration": {{role: mixed, side: observed.Attempts, service: dependencyLabel, outcome: anyOutcome}},
	"retry_attempt_failures": {{role: untimed, side: observed.Attempts, service: dependencyLabel, outcome: httpOutcome}},
	"retry_attempts":         {{role: retried, side: observed.Attempts, service: dependencyLabel, outcome: onlyResent}},
	"retry_limit_in_flight":  {{role: inFlight, side: observed.Attempts, service: dependencyLabel, outcome: anyOutcome}},

	// OpenTelemetry's semantic conventions, stable and before.
	"http_client_request_duration": {{role: timed, side: observed.Attempts, service: addressLabels, address: true, unit: 1, outcome: httpOutcome}},
	"http_client_duration":         {{role: timed, side: observed.Attempts, service: addressLabels, address: true, unit: .001, outcome: httpOutcome}},
	"http_client_active_requests":  {{role: inFlight, side: observed.Attempts, service: addressLabels, address: true, outcome: anyOutcome}},
	"http_server_request_duration": {{role: timed, side: observed.Served, unit: 1, outcome: httpOutcome}},
	"http_server_duration":         {{role: timed, side: observed.Served, unit: .001, outcome: httpOutcome}},
	"http_server_active_requests":  {{role: inFlight, side: observed.Served, outcome: anyOutcome}},

	"envoy_cluster_upstream_rq_time":   {{role: mixed, side: observed.Attempts, service: clusterLabel, unit: .001, outcome: anyOutcome}},
	"envoy_cluster_upstream_rq":        {{role: untimed, side: observed.Attempts, service: clusterLabel, outcome: httpOutcome}},
	"envoy_cluster_retry_upstream_rq":  {{role: untimed, side: observed.Attempts, service: clusterLabel, outcome: httpOutcome}},
	"envoy_cluster_upstream_rq_retry":  {{role: retried, side: observed.Attempts, service: clusterLabel, outcome: anyOutcome}},
	"envoy_cluster_upstream_rq_active": {{role: inFlight, side: observed.Attempts, service: clusterLabel, outcome: anyOutcome}},
	"istio_request_duration":           {{role: timed, side: observed.Calls, service: istioLabels, unit: .001, outcome: istioSource}, {role: timed, side: observed.Served, service: istioLabels, unit: .001, outcome: istioDestination}},
	"istio_requests":                   {{role: counted, side: observed.Calls, service: istioLabels, outcome: istioSource}, {role: counted, side: observed.Served, service: istioLabels, outcome: istioDestination}},
}

func anyOutcome(map[string]string) (string, bool) { return "", true }

func onlyFirst(l map[string]string) (string, bool)   { return "200", l["outcome"] == "success_first" }
func onlyRetried(l map[string]string) (string, bool) { return "200", l["outcome"] == "success_retry" }
func onlyResent(l map[string]string) (string, bool)  { return "", l["resend"] == "true" }

func lullOutcome(l map[string]string) (string, bool) {
	switch o := l["outcome"]; o {
	case "":
		return "", false
	case "success_first", "success_retry":
		return "200", true
	case "failed_deadline":
		return "timeout", true
	case "canceled":
		return o, true
	}
	return "error", true
}

func httpOutcome(l map[string]string) (string, bool) {
	for _, label := range []string{"http_response_status_code", "http_status_code", "envoy_response_code", "error_type"} {
		if v := l[label]; v != "" {
			return outcomeWord(v), true
		}
	}
	_, envoy := l["envoy_cluster_name"]
	_, lull := l["dependency"]
	return "error", !envoy && !lull
}

func istioSource(l map[string]string) (string, bool) {
	return istioOutcome(l), l["reporter"] == "source"
}
func istioDestination(l map[string]string) (string, bool) {
	return istioOutcome(l), l["reporter"] == "destination"
}

func istioOutcome(l map[string]string) string {
	for flag, word := range map[string]string{"DC": "canceled", "UT": "timeout", "UF": "refused", "UC": "reset"} {
		if slices.Contains(strings.Split(l["response_flags"], ","), flag) {
			return word
		}
	}
	return outcomeWord(l["response_code"])
}

// outcomeWord returns the outcome of a code or of an error's type, which may be the name of a type of a program.
func outcomeWord(s string) string {
	if o, ok := outcomeOf([]byte(s)); ok {
		return outcomeName(o)
	}
	s = strings.ToLower(s)
	for _, w := range []struct{ part, word string }{{"timeout", "timeout"}, {"deadline", "timeout"}, {"refused", "refused"}, {"reset", "reset"}, {"eof", "reset"}, {"cancel", "canceled"}} {
		if strings.Contains(s, w.part) {
			return w.word
		}
	}
	return "error"
}

// ruleName returns the name of a metric without endings, which of them it had, and the seconds of its unit, 0 if it has none.
func ruleName(name string) (base, part string, unit float64) {
	base = plainName(name)
	for _, ending := range []string{"bucket", "count", "sum", "total"} {
		if cut, ok := strings.CutSuffix(base, "_"+ending); ok {
			if base = cut; ending != "total" {
				part = ending
			}
			break
		}
	}
	for ending, seconds := range map[string]float64{"_seconds": 1, "_milliseconds": .001} {
		if cut, ok := strings.CutSuffix(base, ending); ok {
			return cut, part, seconds
		}
	}
	return base, part, 0
}

// plainName returns a name of OpenTelemetry as Prometheus writes it.
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, name)
}

func (r *reader) metricsOf(kind string) *metrics {
	m := r.metrics[kind]
	if m == nil {
		m = &metrics{kind: kind, series: map[string]*metric{}, times: map[int64]bool{}}
		r.metrics[kind] = m
		r.kinds = append(r.kinds, kind)
	}
	return m
}

// wants reports whether a metric has a rule.
func wants(name string) bool {
	base, _, _ := ruleName(name)
	return rules[base] != nil || name == "envoy_cluster_upstream_rq_total"
}

// add adds a sample. It is counted, too, if no rule has a use for its labels.
func (m *metrics) add(r *reader, name string, labels map[string]string, s sample) {
	base, part, unit := ruleName(name)
	if strings.HasSuffix(name, "_rq_total") || math.IsNaN(s.value) || s.value < 0 || math.IsInf(s.value, 0) {
		if !strings.HasSuffix(name, "_rq_total") {
			r.wrong("value", fmt.Append(nil, s.value), "a number that is not negative")
		}
		return
	}
	if at := time.Unix(0, s.at); !r.From.IsZero() && at.Before(r.From) || !r.To.IsZero() && at.After(r.To) {
		r.note("samples before or after the chosen time are left out")
		return
	}
	m.times[s.at] = true
	if r.src.From.IsZero() || s.at < r.src.From.UnixNano() {
		r.src.From = time.Unix(0, s.at).UTC()
	}
	if s.at > r.src.To.UnixNano() {
		r.src.To = time.Unix(0, s.at).UTC()
	}
	r.src.Used++
	le := labels["le"]
	delete(labels, "le")
	whole := fmt.Sprint(labels) // in the order of the names
	for i, rule := range rules[base] {
		key := fmt.Sprint(name, "\x00", le, "\x00", i, whole)
		one := m.series[key]
		if one == nil {
			outcome, ok := rule.outcome(labels)
			if !ok {
				continue
			}
			one = &metric{rule: rule, part: part, outcome: outcome, whole: fmt.Sprint(base, "\x00", i, whole), unit: cmp.Or(unit, rule.unit, 1),
				process: labels["job"] + "\x00" + labels["instance"] + "\x00" + labels["pod"]}
			if part == "bucket" {
				edge, ok := parseEdge(le)
				if !ok {
					r.wrong("le", []byte(le), "a number or +Inf")
					return
				}
				one.edge = edge
			}
			service := ""
			for _, label := range rule.service {
				if service = labels[label]; service != "" {
					break
				}
			}
			if r.Service != "" && service != "" && service != r.Service {
				r.note("other services are left out")
				continue
			}
			one.who = groupOf{rule.side, m.serviceName(r, service, rule.address)}
			m.series[key] = one
		}
		if n := len(one.samples); n > 0 && one.samples[n-1].at >= s.at {
			r.problem(r.line, "order", "a sample is not later than the one before, and is not used: want sources in the order of their time")
			continue
		}
		one.samples = append(one.samples, s)
	}
}

// serviceName returns the name of a service; of an address one that tells nothing, but that the user has given.
func (m *metrics) serviceName(r *reader, service string, address bool) string {
	if service == "" || !address {
		return cmp.Or(service, r.Service)
	}
	if service == r.Service {
		return service
	}
	if _, ok := r.addresses[service]; !ok {
		r.addresses[service] = fmt.Sprintf("service-%d", len(r.addresses)+1)
	}
	return r.addresses[service]
}

// A curve is counts that grow over time, of one histogram or counter of one process. Those of a histogram are cumulative over its
// edges, then the number of all, then the sum.
type curve struct {
	*metric
	at      []int64
	from    []int64 // when the count of at was begun; 0: with the one before
	v       [][]float64
	process string
}

// finish makes the series of the data.
func (m *metrics) finish(r *reader) error {
	r.name, r.line = m.kind, 0
	times := slices.Sorted(maps.Keys(m.times))
	if len(times) < 2 {
		return fmt.Errorf("the metrics are of %d times: want at least two, such as two dumps or one with timestamps", len(times))
	}
	between := make([]int64, len(times)-1)
	for i := range between {
		between[i] = times[i+1] - times[i]
	}
	slices.Sort(between)
	// Processes are scraped at different times: what is usual for one process is the interval.
	interval := m.interval(between[len(between)/2])
	step := max(r.Step, interval.Round(time.Second), time.Second)
	if r.Step != 0 && step > r.Step {
		r.note(fmt.Sprintf("metrics have a step of %v, since they are that far apart", step))
	}
	groups := map[groupOf][]*metric{}
	for _, key := range slices.Sorted(maps.Keys(m.series)) {
		one := m.series[key]
		groups[one.who] = append(groups[one.who], one)
	}
	started := map[string]int64{}
	for _, one := range m.series {
		at := one.samples[0].at
		if first, ok := started[one.process]; !ok || at < first {
			started[one.process] = at
		}
	}
	order := slices.SortedFunc(maps.Keys(groups), func(a, b groupOf) int { return cmp.Or(cmp.Compare(a.side, b.side), cmp.Compare(a.service, b.service)) })
	for _, who := range order {
		g := group{reader: r, m: m, all: groups[who], started: started, interval: interval}
		if s := g.series(times, step); s != nil {
			s.Side, s.Service, s.Source = who.side, who.service, m.kind
			r.data.Series = append(r.data.Series, s)
		}
	}
	return nil
}

// interval is the median time between the samples of a metric.
func (m *metrics) interval(otherwise int64) time.Duration {
	var all []int64
	for _, one := range m.series {
		for i := 1; i < len(one.samples) && len(all) < 1e6; i++ {
			all = append(all, one.samples[i].at-one.samples[i-1].at)
		}
	}
	if len(all) == 0 {
		return time.Duration(otherwise)
	}
	slices.Sort(all)
	return time.Duration(all[len(all)/2])
}

// A group makes one Series.
type group struct {
	*reader
	m        *metrics
	all      []*metric
	started  map[string]int64 // of each process: its first sample
	interval time.Duration
	s        *observed.Series
}

func (g *group) series(times []int64, step time.Duration) *observed.Series {
	first := times[0] / int64(step) * int64(step)
	g.s = &observed.Series{Start: time.Unix(0, first).UTC(), Step: step, Resolution: g.interval}
	n := (times[len(times)-1] - first + int64(step) - 1) / int64(step)
	if n > 20*maxPoints {
		g.problem(0, "points", fmt.Sprintf("the samples last %v, too long for steps of %v: they are not used", time.Duration(times[len(times)-1]-times[0]), step))
		return nil
	}
	g.s.Points = make([]observed.Point, n)
	for i := range g.s.Points {
		g.s.Points[i] = observed.Point{Began: -1, Retries: -1, InFlight: -1, Ended: map[string]*observed.Bars{}}
	}
	g.setEdges()
	curves := g.curves()
	has := map[role]bool{}
	processes := map[string]bool{}
	for _, c := range curves {
		has[c.rule.role] = true
		processes[c.process] = true
	}
	if !has[timed] && !has[untimed] && !has[mixed] && !has[counted] {
		return nil
	}
	g.s.Processes = len(processes)
	if len(processes) == 1 && processes["\x00\x00"] {
		g.s.Processes = 0
	}
	shares := make([][]float64, n) // of mixed: cumulative counts, all, and sum
	for _, c := range curves {
		g.spread(c, has, shares)
	}
	g.divide(shares)
	g.markMissing(times)
	return g.s
}

// setEdges sets the edges that all histograms of the group have.
func (g *group) setEdges() {
	common := map[float64]int{} // how many histograms have it
	layouts := map[string]map[float64]bool{}
	var native map[float64]bool
	for _, one := range g.all {
		if one.part == "bucket" && !math.IsInf(one.edge, 1) {
			l := layouts[one.whole]
			if l == nil {
				l = map[float64]bool{}
				layouts[one.whole] = l
			}
			l[one.edge*one.unit] = true
		}
		for _, s := range one.samples {
			if s.bars == nil {
				continue
			}
			if native == nil {
				native = map[float64]bool{}
			}
			for _, b := range s.bars {
				if b.n > 0 {
					native[b.upper*one.unit], native[b.lower*one.unit] = true, true
				}
			}
		}
	}
	for _, l := range layouts {
		for e := range l {
			common[e]++
		}
	}
	for e, n := range common {
		if n == len(layouts) && e > 0 {
			g.s.Edges = append(g.s.Edges, e)
		}
	}
	if len(layouts) == 0 {
		for e := range native {
			if e > 0 && !math.IsInf(e, 1) {
				g.s.Edges = append(g.s.Edges, e)
			}
		}
	}
	slices.Sort(g.s.Edges)
}

// curves puts the buckets of classic histograms together.
func (g *group) curves() (all []*curve) {
	classic := map[string][]*metric{}
	for _, one := range g.all {
		switch {
		case one.rule.role == inFlight:
		case one.part != "":
			classic[one.whole] = append(classic[one.whole], one)
			continue
		}
		c := &curve{metric: one, process: one.process}
		for _, s := range one.samples {
			v := []float64{s.value, s.sum * one.unit}
			if s.bars != nil || one.rule.role == timed || one.rule.role == mixed {
				v = cumulative(g.s.Edges, s.bars, one.unit, s.value, s.sum)
			}
			from := s.start
			if !s.delta && s.start != 0 && len(c.at) > 0 && s.start < c.at[len(c.at)-1] {
				from = 0
			}
			if s.delta && from == 0 {
				from = -1 // nothing was counted before it
			}
			c.at, c.from, c.v = append(c.at, s.at), append(c.from, from), append(c.v, v)
		}
		all = append(all, c)
	}
	for _, whole := range slices.Sorted(maps.Keys(classic)) {
		if c := g.classicCurve(classic[whole]); c != nil {
			all = append(all, c)
		}
	}
	return all
}

// cumulative returns how many are at most each edge, all, and the sum.
func cumulative(edges []float64, bars []bar, unit, n, sum float64) []float64 {
	v := make([]float64, len(edges)+2)
	for i, e := range edges {
		for _, b := range bars {
			switch lower, upper := b.lower*unit, b.upper*unit; {
			case upper <= e*(1+1e-9):
				v[i] += b.n
			case lower < e && !math.IsInf(upper, 1):
				v[i] += b.n * (e - max(lower, 0)) / (upper - max(lower, 0))
			}
		}
	}
	v[len(edges)], v[len(edges)+1] = n, sum*unit
	return v
}

func (g *group) classicCurve(parts []*metric) *curve {
	byTime := map[int64][]float64{}
	filled := map[int64]int{}
	c := &curve{metric: parts[0], process: parts[0].process}
	n := len(g.s.Edges)
	want := 0
	for _, one := range parts {
		at := -1
		switch {
		case one.part == "sum":
			at = n + 1
		case one.part == "count", math.IsInf(one.edge, 1):
			at = n
		default:
			i, ok := slices.BinarySearch(g.s.Edges, one.edge*one.unit)
			if !ok {
				continue
			}
			at = i
		}
		if at < n {
			want++
		}
		for _, s := range one.samples {
			v := byTime[s.at]
			if v == nil {
				v = make([]float64, n+2)
				v[n], v[n+1] = -1, math.NaN()
				byTime[s.at] = v
			}
			if at == n+1 {
				v[at] = s.value * one.unit
			} else {
				v[at] = s.value
			}
			if at < n {
				filled[s.at]++
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(byTime)) {
		v := byTime[at]
		if v[n] < 0 || filled[at] < want {
			g.problem(0, "buckets", "a histogram lacks buckets or its count at some time, and is not used there")
			continue
		}
		if !slices.IsSorted(v[:n+1]) {
			g.problem(0, "sorted", "the counts of a histogram's buckets do not grow with le, and are not used")
			continue
		}
		c.at, c.from, c.v = append(c.at, at), append(c.from, 0), append(c.v, v)
	}
	return c
}

// spread adds what a curve counted between two samples to the steps between them.
func (g *group) spread(c *curve, has map[role]bool, shares [][]float64) {
	for i := range c.at {
		if c.rule.role == inFlight {
			p := int((c.at[i] - g.s.Start.UnixNano()) / int64(g.s.Step))
			if p < len(g.s.Points) {
				g.s.Points[p].InFlight = max(0, g.s.Points[p].InFlight) + c.v[i][0]
			}
			continue
		}
		from, before := c.from[i], []float64(nil)
		switch {
		case from < 0: // a delta without a start
			if from = c.at[i] - int64(g.interval); i > 0 {
				from = c.at[i-1]
			}
		case from > 0: // a delta, or the first since a restart
		case i > 0:
			from, before = c.at[i-1], c.v[i-1]
			if n := len(c.v[i]) - 2; c.v[i][n] < before[n] {
				g.problem(0, "restart", "a counter began at 0 again: a process was started anew, and what it counted before, since the last sample, is not known")
				before = nil
			}
		case c.at[0] > g.started[c.process]: // it was 0 when the process was seen before
			from = c.at[0] - int64(g.interval)
		default:
			continue
		}
		g.add(c, from, c.at[i], c.v[i], before, has, shares)
	}
}

func (g *group) add(c *curve, from, to int64, v, before []float64, has map[role]bool, shares [][]float64) {
	start, step := g.s.Start.UnixNano(), int64(g.s.Step)
	grown := slices.Clone(v)
	for i := range before {
		grown[i] -= before[i]
	}
	if n := len(grown) - 2; grown[n] == 0 && c.rule.role != retried {
		return
	}
	for j := max(0, (from-start)/step); j < int64(len(g.s.Points)) && start+j*step < to; j++ {
		share := float64(min(to, start+(j+1)*step)-max(from, start+j*step)) / float64(to-from)
		if share <= 0 {
			continue
		}
		p := &g.s.Points[j]
		switch role := c.rule.role; {
		case role == retried:
			p.Retries = max(0, p.Retries) + share*grown[0]
		case role == mixed:
			if shares[j] == nil {
				shares[j] = make([]float64, len(grown))
			}
			for i := range grown {
				shares[j][i] += share * grown[i]
			}
		case role == timed || role == untimed || !has[timed] && !has[untimed] && !has[mixed]:
			addTo(p, c.outcome, grown, share, role == timed && len(g.s.Edges) > 0)
		}
	}
}

// addTo adds a share of cumulative counts to the bars of an outcome.
func addTo(p *observed.Point, outcome string, grown []float64, share float64, times bool) {
	b := p.Ended[outcome]
	if b == nil {
		b = &observed.Bars{Sum: math.NaN()}
		p.Ended[outcome] = b
	}
	n := len(grown) - 2
	b.N += share * grown[n]
	if !times {
		return
	}
	if b.Counts == nil {
		b.Counts, b.Sum = make([]float64, n+1), 0
	}
	below := 0.
	for i := range b.Counts {
		b.Counts[i] += share * max(0, grown[i]-below)
		below = grown[i]
	}
	b.Sum += share * grown[n+1]
}

// divide gives each outcome its share of the times that are known of all alone.
func (g *group) divide(shares [][]float64) {
	for j, all := range shares {
		n := len(all) - 2
		if all == nil || all[n] <= 0 || n == 0 {
			continue
		}
		p := &g.s.Points[j]
		counted := 0.
		for _, b := range p.Ended {
			counted += b.N - sumOf(b.Counts)
		}
		if counted <= 0 {
			if len(p.Ended) == 0 { // there are no counts by code
				addTo(p, "200", all, 1, true)
				g.note("no metric has the codes: all count as 200")
			}
			continue
		}
		g.note("times are known of all codes together: each code has its share of them")
		for _, b := range p.Ended {
			more := b.N - sumOf(b.Counts)
			if more <= 0 {
				continue
			}
			if b.Counts == nil {
				b.Counts, b.Sum = make([]float64, n+1), 0
			}
			below := 0.
			for i := range b.Counts {
				b.Counts[i] += more / all[n] * max(0, all[i]-below)
				below = all[i]
			}
			b.Sum += more / all[n] * all[n+1]
		}
	}
}

func sumOf(all []float64) (sum float64) {
	for _, v := range all {
		sum += v
	}
	return sum
}

// markMissing marks the steps that the samples do not cover.
func (g *group) markMissing(times []int64) {
	for j := range g.s.Points {
		from, to := g.s.At(j).UnixNano(), g.s.At(j+1).UnixNano()
		i, _ := slices.BinarySearch(times, from+1) // the first after from
		missing := i == 0 || to > times[len(times)-1]
		for ; !missing && i < len(times) && times[i-1] < to; i++ {
			missing = times[i]-times[i-1] > int64(g.interval)*7/2
		}
		if missing {
			g.s.Points[j] = observed.Point{Missing: true, Began: -1, Retries: -1, InFlight: -1}
		}
	}
}
