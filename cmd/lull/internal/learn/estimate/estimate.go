// Package estimate makes a world of what was measured: a scenario for the simulator, with an interval for each value that the
// measurements support, and a question for each that they do not. docs/learn.md has the methods.
package estimate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/internal/choice"
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
		e.i = i
		if err := e.learn(g); err != nil {
			return World{}, fmt.Errorf("%s: %w", g.name, err)
		}
	}
	for _, s := range data.Sources {
		e.w.Learned.From = append(e.w.Learned.From, fmt.Sprintf("%s: %s of %s used, from %s to %s", s.Kind, whole(float64(s.Used)), whole(float64(s.Lines)),
			s.From.UTC().Format(time.RFC3339), s.To.UTC().Format(time.RFC3339)))
	}
	e.w.Normal = "Normal was: " + strings.Join(e.normal, "; ") + "."
	happened := "This happened: " + strings.Join(e.happened, "; ") + "."
	e.w.Happened = choice.Either(len(e.happened) > 0, happened, "Nothing happened that is not normal.")
	e.w.Unknown = e.w.Open()
	return e.w, nil
}

// A group is what was measured of one service.
type group struct {
	name string
	side [3][]*observed.Series // by observed.Side
}

func grouped(data *observed.Data) (groups []*group) {
	all := slices.Clone(data.Series)
	slices.SortStableFunc(all, func(a, b *observed.Series) int { return min(len(b.Service), 1) - min(len(a.Service), 1) }) // those with names first
	for _, s := range all {
		if len(s.Points) == 0 {
			continue
		}
		name := cmp.Or(s.Service, "service")
		if s.Service == "" && len(groups) == 1 { // of the only service that has a name
			name = groups[0].name
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.name == name })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{name: name})
		}
		groups[i].side[s.Side] = append(groups[i].side[s.Side], s)
	}
	return groups
}

// hosts returns the series of each host, if there are several.
func (g *group) hosts(side observed.Side) map[string][]*observed.Series {
	all, edges := map[string][]*observed.Series{}, []float64(nil)
	for _, p := range g.side[side] {
		if p.Host != "" && (edges == nil || slices.Equal(p.Edges, edges)) {
			all[p.Host], edges = append(all[p.Host], p), p.Edges
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// An estimator learns one service after the other.
type estimator struct {
	w         World
	i         int       // of the service, and of its fleet
	sum       [3]*steps // by observed.Side; nil: none
	main      *steps    // of the server, or else as near to it as there is
	what      string    // main counts
	ill       *steps    // of the hosts that have incidents, if others have none; otherwise main
	sickHosts int       // how many they are; 0: all
	zero      time.Time
	hidden    bool // what arrived during the incident is not known
	// For the sentences.
	rate     float64
	normal   []string
	happened []string
}

func (e *estimator) learn(g *group) error {
	e.sum, e.hidden = [3]*steps{}, false
	for side, parts := range g.side {
		var places []*steps // that measured, the innermost first: it does not see that callers go
		// A proxy that logs its own attempts, too, is no caller: those who call it repeat what it cannot tell from calls. (Metrics of all have one source.)
		parts = slices.DeleteFunc(slices.Clone(parts), func(p *observed.Series) bool {
			proxy := func(s *observed.Series) bool { return s.Source == p.Source }
			return p.Exact && p.Side == observed.Attempts && slices.ContainsFunc(g.side[observed.Served], proxy)
		})
		for len(parts) > 0 {
			first, rest := parts[0], []*observed.Series(nil)
			alike := slices.DeleteFunc(slices.Clone(parts), func(p *observed.Series) bool {
				other := p.Source != first.Source || !slices.Equal(p.Edges, first.Edges)
				if other && p.Source == first.Source {
					e.problem(p, "a series has other buckets than the rest, and is left out")
				} else if other {
					rest = append(rest, p)
				}
				return other
			})
			places, parts = append(places, coarse(alike)), rest
		}
		slices.SortStableFunc(places, func(a, b *steps) int {
			return cmp.Compare(sum(a.cut, a.whole())/sum(a.all, a.whole()), sum(b.cut, b.whole())/sum(b.all, b.whole()))
		})
		if len(places) == 0 {
			continue
		}
		e.sum[side] = places[0]
		e.main = places[0] // Served is the last
		if last := places[len(places)-1]; len(places) > 1 && last.Side == observed.Served && e.sum[observed.Attempts] == nil {
			e.sum[observed.Attempts] = last // it saw what the callers made
		}
	}
	m := e.main
	e.what = [...]string{"calls with all their attempts", "attempts, as the caller saw them", "requests, as the server saw them"}[m.Side]
	if n := len(m.Points); n < 10 {
		return fmt.Errorf("%d steps of %v were measured: want at least 10", n, m.Step)
	}
	m.findCalm()
	if a := e.sum[observed.Attempts]; a != nil && a != m { // a server that is down does not log it
		a.findCalm()
	}
	sc := &e.w.Scenario
	if e.i == 0 {
		e.frame()
	}
	for side, s := range e.sum {
		if s == nil {
			continue
		}
		if w := e.world(s); w.to-w.from < 5 && s == m {
			return fmt.Errorf("%d steps of %v are left, in the time of the first service and without those at the end: want at least 5", w.to-w.from, s.Step)
		} else if w.to-w.from < 5 {
			e.problem(s.Series, "it was measured at another time than the rest, and is left out")
			e.sum[side] = nil
		}
	}
	sc.Services = append(sc.Services, sim.Service{Name: g.name, Hosts: max(len(g.hosts(observed.Served)), len(g.hosts(observed.Attempts)))})
	sc.Fleets = append(sc.Fleets, sim.Fleet{Name: "callers of " + g.name, Calls: g.name})
	if err := e.arrivals(); err != nil {
		return err
	}
	if err := e.times(); err != nil {
		return err
	}
	e.errors()
	e.sick(g)
	e.capacity()
	e.faults()
	e.callers()
	e.compare()
	if e.i == 0 {
		e.observe()
	}
	return nil
}

// coarse puts parts together, in steps that have enough requests.
func coarse(parts []*observed.Series) *steps {
	s := newSteps(parts, 0)
	factor := max(1, (len(s.all)+mostSteps-1)/mostSteps)
	if m := quantileOf(s.all, 0.5); m < leastEach {
		factor = max(factor, min(int(math.Ceil(leastEach/max(m, 0.1))), len(s.all)/30))
	}
	return newSteps([]*observed.Series{s.Series}, time.Duration(factor)*s.Step)
}

// frame chooses the part of the time that becomes the world: all of it, if that can be simulated in seconds, and otherwise what lies around the incident in which
// the most requests did not succeed, or else the end. The first and the last step may be cut off, and are left out.
func (e *estimator) frame() {
	s := e.main
	from, to := 1, len(s.all)-1
	if s.Exact { // of requests that ended after the log did, nothing is known
		to -= int(math.Ceil(s.usual.quantile(0.99) / s.length))
	}
	most := max(20, int(min(longest.Seconds(), mostCalls*s.length/max(s.rate, 0.01))/s.length))
	if to-from > most {
		middle, worst := to, -1.0
		for _, r := range s.incidents {
			if lost := sum(s.lost, r); lost > worst {
				worst, middle = lost, (r.from+r.to)/2
			}
		}
		from = min(max(middle-most/2, from), to-most)
		to = from + most
	}
	e.zero = s.At(from)
	e.w.Learned.Zero = e.zero.UTC().Format(time.RFC3339Nano)
	e.w.Scenario.Title, e.w.Scenario.Source = "Learned from measurements", "lull learn"
	e.w.Scenario.Horizon = time.Duration(max(to-from, 1)) * s.Step
}

// world is the steps of s in the time of the world.
func (e *estimator) world(s *steps) run {
	return run{s.step(e.zero), s.step(e.zero.Add(e.w.Scenario.Horizon))}
}

// shown is s in the time of the world, in few steps.
func (e *estimator) shown(s *steps) *steps {
	w := e.world(s)
	part := *s.Series
	part.Start, part.Points = s.At(w.from), s.Points[w.from:w.to]
	return newSteps([]*observed.Series{&part}, time.Duration((w.to-w.from+mostShown-1)/mostShown)*s.Step)
}

// disturbed returns the incident that touches the time, or the step before or after it, which may have a part of it; false: none does.
func (e *estimator) disturbed(from, to time.Time) (*steps, run, bool) {
	for _, s := range e.sum {
		if s == nil {
			continue
		}
		for _, r := range s.incidents {
			if s.At(r.from-1).Before(to) && s.At(r.to+1).After(from) {
				return s, r, true
			}
		}
	}
	return nil, run{}, false
}

// calmIn reports whether a step of s lies outside of all incidents, at whatever time.
func (e *estimator) calmIn(s *steps) func(i int) bool {
	return func(i int) bool {
		_, _, disturbed := e.disturbed(s.At(i), s.At(i+1))
		return i > 0 && i < len(s.Points)-1 && !s.Points[i].Missing && !disturbed
	}
}

// calmTimes returns how long what ended in some way took outside of incidents.
func (e *estimator) calmTimes(s *steps, ended func(string) bool) hist {
	return s.times(s.whole(), e.calmIn(s), ended)
}

func (e *estimator) service() *sim.Service { return &e.w.Scenario.Services[e.i] }
func (e *estimator) fleet() *sim.Fleet     { return &e.w.Scenario.Fleets[e.i] }

// hosts is how many hosts ill is of.
func (e *estimator) hosts() float64 { return float64(max(cmp.Or(e.sickHosts, e.service().Hosts), 1)) }

// value, ask, seen and problem note what is known of a field of the service, or (with a dot before it) of its fleet.
func (e *estimator) value(field, low, high, by string, args ...any) {
	e.w.Learned.Values = append(e.w.Learned.Values, scenario.Interval{Path: e.path(field), Low: low, High: high, By: fmt.Sprintf(by, args...)})
}

func (e *estimator) ask(field, least, needs, question string, args ...any) {
	e.w.Learned.Unknown = append(e.w.Learned.Unknown, scenario.Question{Path: e.path(field), Least: least, Ask: fmt.Sprintf(question, args...), Needs: needs})
}

func (e *estimator) seen(what, low, high, by string, args ...any) {
	if e.i > 0 {
		what += " of " + e.service().Name
	}
	e.w.Learned.Seen = append(e.w.Learned.Seen, scenario.Fact{What: what, Low: low, High: high, By: fmt.Sprintf(by, args...)})
}

func (e *estimator) problem(s *observed.Series, text string, args ...any) {
	e.w.Problems = append(e.w.Problems, observed.Problem{Source: s.Source, Text: fmt.Sprintf(text, args...), Count: 1})
}

func (e *estimator) path(field string) string {
	if of, ok := strings.CutPrefix(field, "."); ok {
		return fmt.Sprintf("fleets.%d.%s", e.i, of)
	}
	return fmt.Sprintf("services.%d.%s", e.i, field)
}

// errors learns the share of attempts that fail while all is normal, and how: from the callers if they measured attempts, since a server does not see all.
func (e *estimator) errors() {
	s := cmp.Or(e.sum[observed.Attempts], e.main)
	isCalm, more := e.calmIn(s), 0.0
	use, quiet := isCalm, func(i int) bool { return isCalm(i) && s.p[1][i] <= s.median }
	count := func(use func(int) bool) (all, bad float64) {
		return sum(only(s.all, use), s.whole()), sum(only(s.failed, use), s.whole())
	}
	all, bad := count(use)
	if n, k := count(quiet); surprise(bad-k, bad*(1-n/all)) > 2*math.Sqrt(n/all) { // in the other steps some that wait are refused
		use, all, bad, more = quiet, n, k, (bad-k)/(all-n)-k/n // and as many more in these
	}
	byCode := s.times(s.whole(), use, func(code string) bool { return !answered(code) || code[0] == '4' }).codes
	_, spread := dispersion(only(s.failed, use), s.all, bad/max(all, 1))
	at := wilson(bad, all, spread)
	at.low = max(at.low-more, 0)
	e.service().Errors = digits(bad/max(all, 1), 4)
	e.value("errors", share(at.low, -1), share(at.high, 1), "%s of %s failed while all was normal", whole(bad), whole(all))
	if s.Side == observed.Calls && bad > 0 {
		e.ask("errors", "", "measurements of attempts, or of the server", "What share of single attempts fails? Known is what failed with all its attempts.")
	}
	for _, code := range sorted(byCode) {
		at := wilson(byCode[code], all, spread)
		e.seen("ended as "+code, share(at.low, -1), share(at.high, 1), "%s of %s while all was normal", whole(byCode[code]), whole(all))
	}
	if h := e.calmTimes(s, failed); h.n >= 5 {
		e.service().ErrorTime = seconds(h.quantile(0.5), 3)
		at := h.around(0.5, 1)
		e.value("error_time", duration(at.low, -1), duration(at.high, 1), "the median of %s failures", whole(h.n))
	}
	failures := choice.Either(bad > 0, share(bad/max(all, 1), 0), "none")
	e.normal = append(e.normal, fmt.Sprintf("%s got %s, answered half of them within %s and 99 %% within %s, and %s failed", e.service().Name,
		rate(e.rate), duration(e.main.usual.quantile(0.5), 0), duration(e.main.usual.quantile(0.99), 0), failures))
}

// sorted returns the keys of m, those with the most first.
func sorted(m map[string]float64) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), strings.Compare(a, b)) })
	return keys
}

// compare reports where callers and server disagree about how many requests there were while all was normal.
func (e *estimator) compare() {
	a, s := e.sum[observed.Attempts], e.sum[observed.Served]
	if a == nil || s == nil {
		return
	}
	in := func(x, other *steps) (n, seconds float64) {
		good := e.calmIn(x)
		for i, k := range x.came {
			if good(i) && !x.At(i).Before(other.At(1)) && !x.At(i+1).After(other.At(len(other.Points)-1)) && !math.IsNaN(k) {
				n, seconds = n+k, seconds+x.length
			}
		}
		return n, max(seconds, x.length)
	}
	made, took := in(a, s)
	got, long := in(s, a)
	ratio := got / long / (made / took)
	if made > 0 && got > 0 && math.Abs(ratio-1) > 0.05 && math.Abs(ratio-1) > 6*math.Sqrt(1/made+1/got) {
		e.problem(s.Series, "while all was normal the server had %s requests a second, and the callers made %s attempts: one of them does not see all", number(got/long, 0), number(made/took, 0))
		e.seen("requests at the server for each attempt", number(ratio, -1), number(ratio, 1), "%s requests in %s, and %s attempts in %s", whole(got), duration(long, 0), whole(made), duration(took, 0))
	}
}

// observe fills Learned.Observed, as the callers saw it.
func (e *estimator) observe() {
	o := &e.w.Learned.Observed
	s := e.shown(cmp.Or(e.sum[observed.Calls], e.sum[observed.Attempts], e.main))
	o.Step = s.Step
	for i := range s.all {
		known := func(v float64) float64 { return or(digits(v, 4), -1) }
		h := s.times(run{i, i + 1}, nil, answered)
		if !s.Exact && e.main.Exact { // the server knows the times better, of callers that were there
			h = hist{}
			if s.cut[i] == 0 {
				h = e.main.times(run{e.main.step(s.At(i)), max(e.main.step(s.At(i+1)), e.main.step(s.At(i))+1)}, nil, answered)
			}
		}
		o.Calls = append(o.Calls, known(rateIn(e.sum[observed.Calls], s.At(i), s.At(i+1))))
		o.Attempts = append(o.Attempts, known(rateIn(cmp.Or(e.sum[observed.Attempts], e.sum[observed.Served]), s.At(i), s.At(i+1))))
		o.Failed = append(o.Failed, known(s.lost[i]/s.all[i]))
		o.P50, o.P99 = append(o.P50, known(h.quantile(0.5))), append(o.P99, known(h.quantile(0.99)))
	}
}

// rateIn returns what arrived between two times, for each second, by the steps that begin there, or the one in which they are.
func rateIn(s *steps, from, to time.Time) float64 {
	if s == nil {
		return math.NaN()
	}
	r := run{min(s.step(from), len(s.all)-1), s.step(to)}
	r.to = max(r.to, r.from+1)
	if slices.ContainsFunc(s.came[r.from:r.to], math.IsNaN) {
		return math.NaN()
	}
	return sum(s.came, r) / (float64(r.to-r.from) * s.length)
}

// Open returns the sentence of what is not known.
func (w World) Open() string {
	var open []string
	for _, q := range w.Learned.Unknown {
		path := strings.Split(q.Path, ".")
		name := "the service"
		if all := w.Scenario.Services; len(all) > 1 {
			i, _ := strconv.Atoi(path[1])
			name = all[i].Name
		}
		text := strings.ReplaceAll(cmp.Or(plain[path[len(path)-1]], q.Path), "%s", name)
		if !slices.Contains(open, text) {
			open = append(open, text)
		}
	}
	unknown := "Not known: " + strings.Join(open, "; ") + "."
	return choice.Either(len(open) > 0, unknown, "Everything that the simulator needs is known.")
}
