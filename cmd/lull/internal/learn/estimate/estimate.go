// Package estimate makes a world of what was measured: a scenario for the simulator, with an interval for each value that the
// measurements support, and a question for each that they do not. docs/learn.md has the methods.
package estimate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// A World is what was learned.
type World struct {
	Scenario sim.Scenario
	Learned  scenario.Learned
	// Normal, Happened and Unknown are a sentence each, for people.
	Normal, Happened, Unknown string
	// Problems are where measurements contradict each other.
	Problems []observed.Problem
}

// Limits of a world: a simulation of one should take seconds.
const (
	longest   = 2 * time.Hour
	mostCalls = 5e6
	mostSteps = 5000 // that are looked at
	leastEach = 20.0 // requests in a step, by the median: with fewer, steps are put together
	mostShown = 600  // steps in Learned.Observed
)

// Make makes a world of data. The error says what is missing.
func Make(data *observed.Data) (World, error) {
	e := &estimator{}
	groups := grouped(data)
	if len(groups) == 0 {
		return World{}, errors.New("nothing was measured: no source has a request with a time")
	}
	for i, g := range groups {
		if err := e.learnService(i, g); err != nil {
			return World{}, err
		}
	}
	e.tell()
	for _, s := range data.Sources {
		e.w.Learned.From = append(e.w.Learned.From, fmt.Sprintf("%s: %s of %s used, from %s to %s", s.Kind, whole(float64(s.Used)), whole(float64(s.Lines)),
			s.From.UTC().Format(time.RFC3339), s.To.UTC().Format(time.RFC3339)))
	}
	return e.w, nil
}

// A group is what was measured of one service.
type group struct {
	name string
	side [3][]*observed.Series // by observed.Side
}

func grouped(data *observed.Data) (groups []*group) {
	var unnamed []*observed.Series
	add := func(s *observed.Series, name string) {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.name == name })
		if i < 0 {
			groups = append(groups, &group{name: name})
			i = len(groups) - 1
		}
		groups[i].side[s.Side] = append(groups[i].side[s.Side], s)
	}
	for _, s := range data.Series {
		switch {
		case len(s.Points) == 0:
		case s.Service == "":
			unnamed = append(unnamed, s)
		default:
			add(s, s.Service)
		}
	}
	for _, s := range unnamed { // of the only service that has a name, if there is one
		name := "service"
		if len(groups) == 1 {
			name = groups[0].name
		}
		add(s, name)
	}
	return groups
}

// hosts returns how many hosts have a series of their own; 0: none.
func (g *group) hosts(side observed.Side) int {
	names := map[string]bool{}
	for _, p := range g.side[side] {
		names[p.Host] = true
	}
	delete(names, "")
	return len(names)
}

// An estimator learns one service after the other.
type estimator struct {
	w    World
	i    int // of the service, and of its fleet
	sum  [3]*steps
	main *steps // of the server, or else as near to it as there is
	calm calm
	from int // the first step of main in the world, and the one after the last
	to   int
	zero time.Time
	// hidden: what arrived during the incident is not known.
	hidden bool
	told   []told
}

// told is what the sentences need of one service.
type told struct {
	name     string
	rate     float64
	p50, p99 float64
	failing  float64
	happened []string
}

func (e *estimator) learnService(i int, g *group) error {
	e.i, e.sum, e.main = i, [3]*steps{}, nil
	for side, parts := range g.side {
		if parts = e.alike(parts); len(parts) > 0 {
			e.sum[side] = coarse(parts)
			e.main = e.sum[side] // Served is the last
		}
	}
	if n := len(e.main.Points); n < 10 {
		return fmt.Errorf("%s: %d steps of %v were measured: want at least 10", g.name, n, e.main.Step)
	}
	e.calm = e.main.findCalm()
	if e.calm.n < 100 {
		return fmt.Errorf("%s: %s requests with a time were answered while all was normal: want at least 100", g.name, whole(e.calm.n))
	}
	if i == 0 {
		e.frame()
	} else {
		e.from = clampStep(e.main, e.zero)
		e.to = clampStep(e.main, e.zero.Add(e.w.Scenario.Horizon))
	}
	if e.to-e.from < 5 {
		return fmt.Errorf("%s: it was measured at another time than %s", g.name, e.w.Scenario.Services[0].Name)
	}
	e.w.Scenario.Services = append(e.w.Scenario.Services, sim.Service{Name: g.name, Hosts: g.hosts(e.main.Side)})
	e.w.Scenario.Fleets = append(e.w.Scenario.Fleets, sim.Fleet{Name: "callers of " + g.name, Calls: g.name})
	e.told = append(e.told, told{name: g.name})
	e.arrivals()
	e.serviceTimes()
	e.errors()
	e.capacity()
	e.faults(g)
	e.callers()
	e.compare()
	if i == 0 {
		e.observe()
	}
	return nil
}

func clampStep(s *steps, at time.Time) int {
	return min(max(int(at.Sub(s.Start)/s.Step), 0), len(s.Points))
}

// alike returns the parts with the edges of the most; others cannot be added to them.
func (e *estimator) alike(parts []*observed.Series) []*observed.Series {
	var best []*observed.Series
	for _, p := range parts {
		var same []*observed.Series
		for _, q := range parts {
			if slices.Equal(p.Edges, q.Edges) {
				same = append(same, q)
			}
		}
		if len(same) > len(best) {
			best = same
		}
	}
	if n := len(parts) - len(best); n > 0 {
		e.problem(best[0].Source, fmt.Sprintf("%d series have other buckets than the rest, and are left out", n))
	}
	return best
}

func (e *estimator) problem(source, text string) {
	e.w.Problems = append(e.w.Problems, observed.Problem{Source: source, Text: text, Count: 1})
}

// coarse puts parts together, in steps that have enough requests.
func coarse(parts []*observed.Series) *steps {
	s := newSteps(parts, 0)
	var all []float64
	for _, n := range s.all {
		if !math.IsNaN(n) {
			all = append(all, n)
		}
	}
	factor := max(1, (len(s.Points)+mostSteps-1)/mostSteps)
	if m := median(all); m < leastEach {
		factor = max(factor, min(int(math.Ceil(leastEach/max(m, 0.1))), len(s.Points)/30))
	}
	if factor == 1 {
		return s
	}
	return newSteps([]*observed.Series{s.Series}, time.Duration(factor)*s.Step)
}

// frame chooses the part of the time that becomes the world: all of it, if that can be simulated in seconds, and otherwise what lies around
// the incident in which the most requests did not succeed, or else the busiest time. The first and the last step may be cut off, and are left out.
func (e *estimator) frame() {
	s := e.main
	from, to := 1, len(s.Points)-1
	if s.Exact { // of requests that ended after the log did, nothing is known
		to -= int(math.Ceil(e.calm.longest(s) / s.length))
	}
	to = max(to, from+1)
	most := int(min(longest.Seconds(), mostCalls/max(e.calm.rate/s.length, 0.01)) / s.length)
	if most = max(most, 20); to-from > most {
		middle, worst := 0, -1.0
		for _, r := range e.calm.incident {
			lost := 0.0
			for i := r.from; i < r.to; i++ {
				lost += s.all[i] - s.ended[answered][i]
			}
			if lost > worst {
				worst, middle = lost, r.from+(r.to-r.from)/2
			}
		}
		if worst < 0 {
			best := 0.0
			for i := range s.all {
				sum := 0.0
				for k := i; k < min(i+most, len(s.all)); k++ {
					sum += s.all[k]
				}
				if i+most <= to && sum > best {
					best, middle = sum, i+most/2
				}
			}
		}
		from = min(max(middle-most/2, from), to-most)
		to = from + most
	}
	e.from, e.to = from, to
	e.zero = s.At(from)
	sc := &e.w.Scenario
	sc.Horizon = time.Duration(to-from) * s.Step
	sc.Title = "Learned from measurements"
	sc.Source = "lull learn"
	e.w.Learned.Zero = e.zero.UTC().Format(time.RFC3339Nano)
}

// normal reports whether step k of s lies in the time of the world, or before or after it, and outside of all incidents.
func (e *estimator) normal(s *steps) func(k int) bool {
	return func(k int) bool {
		if k == 0 || k >= len(s.Points)-1 || s.Points[k].Missing {
			return false
		}
		return !e.disturbed(s.At(k), s.At(k+1))
	}
}

// disturbed reports whether an incident touches the time, or the step before or after it, which may have a part of it.
func (e *estimator) disturbed(from, to time.Time) bool {
	m := e.main
	return slices.ContainsFunc(e.calm.incident, func(r run) bool { return m.At(r.from-1).Before(to) && m.At(r.to+1).After(from) })
}

func (e *estimator) service() *sim.Service { return &e.w.Scenario.Services[e.i] }
func (e *estimator) fleet() *sim.Fleet     { return &e.w.Scenario.Fleets[e.i] }

// value, ask and seen note what is known.
func (e *estimator) value(path, low, high, by string, args ...any) {
	e.w.Learned.Values = append(e.w.Learned.Values, scenario.Interval{Path: path, Low: low, High: high, By: fmt.Sprintf(by, args...)})
}

func (e *estimator) ask(path, least, question, needs string) {
	e.w.Learned.Unknown = append(e.w.Learned.Unknown, scenario.Question{Path: path, Least: least, Ask: question, Needs: needs})
}

func (e *estimator) seen(what, low, high, by string, args ...any) {
	e.w.Learned.Seen = append(e.w.Learned.Seen, scenario.Fact{What: what, Low: low, High: high, By: fmt.Sprintf(by, args...)})
}

func (e *estimator) inService(field string) string { return fmt.Sprintf("services.%d.%s", e.i, field) }
func (e *estimator) inFleet(field string) string   { return fmt.Sprintf("fleets.%d.%s", e.i, field) }

// of names a fact of a service; the only one needs no name.
func (e *estimator) of(what string) string {
	if e.i == 0 {
		return what
	}
	return what + " of " + e.service().Name
}

// errors learns the share of attempts that fail while all is normal, and how.
func (e *estimator) errors() {
	s := cmp.Or(e.sum[observed.Attempts], e.main)
	good := e.normal(s)
	byCode := map[string]float64{}
	var all, bad float64
	var fails, means []float64
	for i := range s.Points {
		if !good(i) {
			continue
		}
		all += s.all[i]
		bad += s.ended[failed][i]
		for code, b := range s.Points[i].Ended {
			if endingOf(code) != answered || code[0] == '4' {
				byCode[code] += b.N
			}
		}
	}
	for i := range s.Points {
		if good(i) {
			fails, means = append(fails, s.ended[failed][i]), append(means, s.all[i]*bad/max(all, 1))
		}
	}
	_, spread := dispersion(fails, means)
	at := wilson(bad, all, spread)
	e.service().Errors = digits(bad/max(all, 1), 4)
	e.told[e.i].failing = bad / max(all, 1)
	what := [...]string{"calls", "attempts", "requests"}[s.Side]
	e.value(e.inService("errors"), share(at.low, -1), share(at.high, 1), "%s of %s %s failed while all was normal", whole(bad), whole(all), what)
	if s.Side == observed.Calls && bad > 0 {
		e.ask(e.inService("errors"), "", "What share of single attempts fails? Known is what failed with all its attempts.", "measurements of attempts, or of the server")
	}
	for _, code := range sorted(byCode) {
		if n := byCode[code]; n > 0 {
			at := wilson(n, all, spread)
			e.seen(e.of("ended as "+code), share(at.low, -1), share(at.high, 1), "%s of %s %s while all was normal", whole(n), whole(all), what)
		}
	}
	times, n := s.times(good, of(failed))
	if n >= 5 {
		e.service().ErrorTime = seconds(s.quantile(times, n, 0.5), 3)
		at := s.quantileSpan(times, n, 0.5, 1)
		e.value(e.inService("error_time"), duration(at.low, -1), duration(at.high, 1), "the median of %s failures", whole(n))
	}
}

func sorted(m map[string]float64) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// compare reports where two sides disagree about the same requests.
func (e *estimator) compare() {
	a, s := e.sum[observed.Attempts], e.sum[observed.Served]
	if a == nil || s == nil {
		return
	}
	var made, got float64
	within := func(x *steps, other *steps, i int) bool {
		return e.normal(x)(i) && !x.At(i).Before(other.At(1)) && !x.At(i+1).After(other.At(len(other.Points)-1))
	}
	for i, n := range a.arrived() {
		if within(a, s, i) && !math.IsNaN(n) {
			made += n / a.length
		}
	}
	for i, n := range s.arrived() {
		if within(s, a, i) && !math.IsNaN(n) {
			got += n / s.length
		}
	}
	if made == 0 || got == 0 {
		return
	}
	made, got = made*a.length, got*s.length
	if ratio := got / made; math.Abs(ratio-1) > 0.05 && math.Abs(got-made) > 6*math.Sqrt(got+made) {
		e.problem(s.Source, fmt.Sprintf("the server had %s requests while all was normal, and the callers made %s attempts: one of them does not see all", whole(got), whole(made)))
		e.seen(e.of("requests at the server for each attempt"), number(ratio, -1), number(ratio, 1), "%s requests and %s attempts while all was normal", whole(got), whole(made))
	}
}

// observe fills Learned.Observed: of calls what the callers say, of attempts what is nearest to the server.
func (e *estimator) observe() {
	o := &e.w.Learned.Observed
	n := e.to - e.from
	each := (n + mostShown - 1) / mostShown
	o.Step = time.Duration(each) * e.main.Step
	n = int((e.w.Scenario.Horizon + o.Step - 1) / o.Step)
	calls, attempts := e.sum[observed.Calls], cmp.Or(e.sum[observed.Served], e.sum[observed.Attempts])
	best := cmp.Or(calls, e.main)
	for k := range n {
		from, to := e.zero.Add(time.Duration(k)*o.Step), e.zero.Add(time.Duration(k+1)*o.Step)
		o.Calls = append(o.Calls, rateIn(calls, from, to))
		o.Attempts = append(o.Attempts, rateIn(attempts, from, to))
		sum := observed.Point{Missing: true}
		for i := clampStep(best, from); i < len(best.Points) && best.At(i).Before(to); i++ {
			addPoint(&sum, &best.Points[i], false)
		}
		one := *best.Series
		one.Points = []observed.Point{sum}
		s := countSteps(&one)
		lost, p50, p99 := -1.0, -1.0, -1.0
		if s.all[0] > 0 {
			lost = digits(1-s.ended[answered][0]/s.all[0], 4)
		}
		if times, n := s.times(only(0), of(answered)); n > 0 {
			p50, p99 = digits(s.quantile(times, n, 0.5), 4), digits(s.quantile(times, n, 0.99), 4)
		}
		o.Failed, o.P50, o.P99 = append(o.Failed, lost), append(o.P50, p50), append(o.P99, p99)
	}
}

// rateIn returns what arrived between two times, for each second; -1: unknown. Steps of the series count as a whole, by where they begin, unless they
// are longer.
func rateIn(s *steps, from, to time.Time) float64 {
	if s == nil {
		return -1
	}
	arrived := s.arrived()
	sum, n := 0.0, 0
	for i := clampStep(s, from); i < len(arrived) && (n == 0 || s.At(i).Before(to)); i++ {
		if math.IsNaN(arrived[i]) {
			return -1
		}
		sum += arrived[i]
		n++
	}
	if n == 0 {
		return -1
	}
	return digits(sum/(float64(n)*s.length), 4)
}

// tell makes the sentences.
func (e *estimator) tell() {
	var normal, happened []string
	for _, t := range e.told {
		normal = append(normal, fmt.Sprintf("%s got %s requests a second, answered half of them within %s and 99 %% within %s, and %s failed",
			t.name, number(t.rate, 0), duration(t.p50, 0), duration(t.p99, 0), shareWords(t.failing)))
		for _, h := range t.happened {
			if len(e.told) > 1 {
				h = t.name + ": " + h
			}
			happened = append(happened, h)
		}
	}
	e.w.Normal = "Normal was: " + strings.Join(normal, "; ") + "."
	e.w.Happened = "Nothing happened that is not normal."
	if len(happened) > 0 {
		e.w.Happened = "This happened: " + strings.Join(happened, "; ") + "."
	}
	e.w.Unknown = "Everything that the simulator needs is known."
	var paths []string
	for _, q := range e.w.Learned.Unknown {
		paths = append(paths, q.Path)
	}
	if len(paths) > 0 {
		slices.Sort(paths)
		e.w.Unknown = fmt.Sprintf("Not known: %s (the file has the questions).", strings.Join(slices.Compact(paths), ", "))
	}
}

func shareWords(v float64) string {
	if v == 0 {
		return "none"
	}
	return share(v, 0)
}

// Answer sets the value that a question asks for. The error says why it cannot be that.
func (w *World) Answer(q scenario.Question, value string) error {
	s := w.Scenario
	if err := scenario.Set(&s, q.Path+"="+value); err != nil {
		return err
	}
	for i := range s.Services { // workers without a queue would refuse all that comes when they are busy
		if sv := &s.Services[i]; sv.Workers > 0 && w.Scenario.Services[i].Workers == 0 && sv.Queue.Limit == 0 {
			s.Services = slices.Clone(s.Services)
			s.Services[i].Queue.Limit = 1000
			path := fmt.Sprintf("services.%d.queue.limit", i)
			w.Learned.Unknown = append(w.Learned.Unknown, scenario.Question{Path: path, Ask: "How many requests can wait for a worker? Assumed: 1000.", Needs: "the service's configuration"})
		}
	}
	if err := s.Validate(); err != nil {
		return err
	}
	w.Scenario = s
	w.Learned.Unknown = slices.DeleteFunc(w.Learned.Unknown, func(other scenario.Question) bool { return other == q })
	if len(value) > 0 && !strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "[") {
		w.Learned.Values = append(w.Learned.Values, scenario.Interval{Path: q.Path, Low: value, High: value, By: "told by you"})
	} else {
		w.Learned.Values = append(w.Learned.Values, scenario.Interval{Path: q.Path, By: "told by you"})
	}
	return nil
}
