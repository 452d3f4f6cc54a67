package estimate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/lab/sim"
)

// A fault is one of the simulator's, with what is known of it.
type fault struct {
	sim.Fault
	at, to span // seconds from the beginning of the series
	share  span // none if 0, 0
	why    string
}

// faults learns what went wrong in each incident. If there are series by host and only some of the hosts have incidents, it looks at these alone.
func (e *estimator) faults(g *group) {
	s, c := e.main, e.calm
	hosts := 0
	if sick, calm, n := e.sick(g); n > 0 {
		s, c, hosts = sick, calm, n
	}
	for _, r := range c.incident {
		if s.At(r.to).Before(e.zero) || !s.At(r.from).Before(e.zero.Add(e.w.Scenario.Horizon)) {
			continue
		}
		from, to := moment(e.since(s, s.at(r.from))), moment(e.since(s, s.at(r.to)))
		if s == e.main && e.grew(s, &c, r) {
			most := slices.Max(s.arrived()[r.from:r.to])
			e.happened("more requests came, up to %s times as many, and it was slow or failed from %s to %s", number(rounded(most/c.rate, 2, 0), 0), from, to)
			continue
		}
		f, ok := e.explain(s, &c, r)
		if !ok {
			e.happened("from %s to %s it was slow or failed, and the data do not show by which fault", from, to)
			e.ask(e.inService("faults"), "", fmt.Sprintf("What happened from %s to %s? No fault of the simulator fits.", from, to), "finer steps, or measurements of the server")
			continue
		}
		f.Hosts = hosts
		e.addFault(s, f)
	}
}

func (e *estimator) happened(text string, args ...any) {
	e.told[e.i].happened = append(e.told[e.i].happened, fmt.Sprintf(text, args...))
}

// since turns seconds from the beginning of s into seconds of the world.
func (e *estimator) since(s *steps, at float64) float64 {
	return at - e.zero.Sub(s.Start).Seconds()
}

// moment writes a time of the world, exact to a millisecond.
func moment(at float64) string {
	return pretty.Duration(time.Duration(math.Round(max(at, 0)*1e3)) * time.Millisecond)
}

func (e *estimator) addFault(s *steps, f fault) {
	horizon := e.w.Scenario.Horizon.Seconds()
	clamp := func(at float64) float64 { return min(max(e.since(s, at), 0), horizon) }
	blur := 0.0 // in which step a request ended is certain, if steps are whole units of the clock
	if s.Resolution > 0 && s.Step%s.Resolution != 0 {
		blur = s.Resolution.Seconds()
	}
	at := span{clamp(f.at.low - blur), clamp(f.at.high + blur)}
	to := span{max(clamp(f.to.low-blur), at.low), clamp(f.to.high + blur)}
	f.At -= e.zero.Sub(s.Start)
	if f.At < 0 {
		f.For += f.At
		f.At = 0
	}
	f.At, f.For = f.At.Round(time.Millisecond), max(f.For.Round(time.Millisecond), time.Millisecond)
	if f.At.Seconds() >= horizon {
		return
	}
	all := &e.service().Faults
	path := e.inService(fmt.Sprintf("faults.%d.", len(*all)))
	e.value(path+"at", moment(at.low), moment(at.high), "%s", f.why)
	e.value(path+"for", moment(max(to.low-at.high, 0.001)), moment(max(to.high-at.low, 0.001)), "from the interval of its beginning to that of its end")
	what := f.Kind.String()
	if f.Share > 0 {
		e.value(path+"share", share(f.share.low, -1), share(f.share.high, 1), "%s", map[sim.FaultKind]string{
			sim.Errors: "what failed, of what arrived", sim.BrownOut: "what was answered, of what it can do", sim.SlowDown: "normal times over those of the fault"}[f.Kind])
		what += " (" + share(f.Share, 0) + ")"
	}
	if f.Hosts > 0 {
		what += fmt.Sprintf(" of %d of %d hosts", f.Hosts, e.service().Hosts)
	}
	*all = append(*all, f.Fault)
	e.happened("a fault like the simulator's %s for %s, from %s on (%s)", what, duration(f.For.Seconds(), 0), moment(f.At.Seconds()), f.why)
}

// explain finds the fault of an incident: one. No answers at all, soon after it began, are a stall, or an outage if all that came failed quickly. If some
// failed quickly, and the others were answered as quickly as ever, it is errors. If answers were slow, it is a slow-down or a brown-out.
func (e *estimator) explain(s *steps, c *calm, r run) (fault, bool) {
	arrive := make([]float64, len(s.Points))
	var down, failing run
	for i := r.from; i < r.to; i++ {
		arrive[i] = or(s.began[i], max(or(s.all[i], 0), c.rate))
		ok, quick := s.ended[answered][i], s.ended[failed][i]
		if ok < max(arrive[i], c.rate/2)/10 && (down.to == 0 || i <= down.to+2) {
			if down.to == 0 {
				down.from = i
			}
			down.to = i + 1
		}
		if quick > (2*c.failing+0.02)*s.all[i] && surprise(quick, c.failing*s.all[i]) > 3 {
			if failing.to == 0 {
				failing.from = i
			}
			failing.to = i + 1
		}
	}
	sum := func(of []float64, r run) (sum float64) {
		for i := r.from; i < r.to; i++ {
			sum += or(of[i], 0)
		}
		return sum
	}
	late := func(r run) bool {
		times, n := s.times(func(i int) bool { return i >= r.from && i < r.to }, of(answered))
		above := sumOf(times[min(c.slowBar, len(times)):])
		return surprise(above, c.slow*n) > certain && above > 1.5*c.slow*n
	}
	if down.to > 0 && down.from <= r.from+1 {
		all := sum(s.all, down)
		gone, quick := sum(s.ended[cut], down), sum(s.ended[failed], down)
		if quick > 0.9*all && quick > 0.8*sum(arrive, down) {
			f, ok := e.refused(s, c, r, down)
			// In a stall some wait, until they are cut off or answered late.
			if waited := gone >= 5 && surprise(gone, c.failing*all) > certain || late(run{down.to, min(down.to+2, len(s.Points))}); f.Kind == sim.Crash || !waited {
				return f, ok
			}
		}
		return e.stalled(s, c, down, arrive), true
	}
	if failing.to > 0 && !late(failing) {
		if f, ok := e.refused(s, c, r, failing); ok {
			return f, true
		}
	}
	if f, ok := e.slowed(s, c, r, arrive); ok || down.to == 0 {
		return f, ok
	}
	return e.stalled(s, c, down, arrive), true
}

// grew reports whether more came in the incident than retries explain: each of them follows a failure.
func (e *estimator) grew(s *steps, c *calm, r run) bool {
	arrived := s.arrived()
	usual := c.rate / (1 - c.failing)
	extra, lost := 0.0, 0.0
	for i := max(r.from-3, 0); i < min(r.to, r.from+20); i++ {
		extra += or(arrived[i], usual) - usual
		lost += or(s.all[i]-s.ended[answered][i], 0)
		if n := float64(i - r.from + 4); extra-lost > 5*math.Sqrt(usual*n) && extra-lost > 0.3*usual*min(n-3, 3) && i >= r.from {
			return true
		}
	}
	return false
}

// edges returns the intervals in which answers stopped before step d.from, and came back after step d.to-1.
func (s *steps) edges(d run, expected float64) (at, to span) {
	ok := s.ended[answered]
	expected = max(expected, 1)
	stop := d.from
	if d.from > 0 && ok[d.from-1] < expected-3*math.Sqrt(expected) { // it stopped in the midst of the one before
		stop--
	}
	part := min((ok[stop]+3*math.Sqrt(ok[stop]+1))/max(expected-2*math.Sqrt(expected), 1), 1)
	at = span{s.at(stop) - s.length, s.at(stop) + part*s.length}
	if stop < d.from {
		at.low = s.at(stop)
	}
	return at, span{s.at(d.to - 1), s.at(d.to + 1)}
}

func (e *estimator) stalled(s *steps, c *calm, d run, arrive []float64) fault {
	at, to := s.edges(d, c.rate)
	// By the mean rate: the part of a step in which there were no answers.
	ok := s.ended[answered]
	begin, end := s.at(d.from), s.at(d.to)
	if d.from > 0 && arrive[d.from] > 0 && c.bad[d.from-1] {
		begin -= s.length * max(0, 1-ok[d.from-1]/arrive[d.from])
	}
	end -= s.length * min(ok[d.to-1]/max(c.rate, 1), 1)
	f := fault{Fault: sim.Fault{Kind: sim.Stall, At: seconds(min(max(begin, at.low), at.high), 9)}, at: at, to: to}
	f.For = seconds(min(max(end, to.low), to.high), 9) - f.At
	var gone, all, came float64
	for i := d.from; i < d.to; i++ {
		gone, all, came = gone+s.ended[cut][i], all+s.all[i], came+arrive[i]
	}
	f.why = fmt.Sprintf("%s came and %s were answered", whole(came), whole(all-gone))
	if all > 0 && gone > all/2 { // it may have worked for those that had gone, for as long as that takes
		peak, known := c.rate, e.service().Workers > 0
		for i, ok := range s.ended[answered] {
			if !c.bad[i] {
				peak = max(peak, ok)
			}
		}
		if known {
			peak = float64(e.service().Workers*max(e.service().Hosts, 1)) / s.mean(c.times) * s.length
			f.For = max(f.For-seconds(came/peak*s.length, 9), seconds(s.length, 9))
		}
		f.to.low = min(to.low, at.high+max(to.low-at.high-1.1*came/peak*s.length, 0))
		f.why += ", and the others were cut off; it may have ended earlier, and worked for callers that had gone"
	}
	return f
}

// refused makes a fault of a stretch of quick failures. Where it begins and ends is found by the likelihood of the failures
// in each step of the incident r, and of 20 steps around it.
func (e *estimator) refused(s *steps, c *calm, r, q run) (f fault, ok bool) {
	k, n := s.ended[failed], s.all
	usual := max(c.failing, 0.5/max(c.n, 1))
	var bad, all, p float64
	var inside run
	pool := func() {
		bad, all = 0, 0
		if inside = q; q.to-q.from > 2 { // the first and the last step are concerned in part
			inside = run{q.from + 1, q.to - 1}
		}
		for i := inside.from; i < inside.to; i++ {
			bad, all = bad+or(k[i], 0), all+or(n[i], 0)
		}
		p = bad / max(all, 1)
	}
	pool()
	if p < 2*usual {
		return f, false
	}
	middle := (q.from + q.to) / 2
	from, first, last := edge(k, n, usual, p, max(r.from-20, 0), middle)
	to, soonest, latest := edge(k, n, p, usual, middle+1, min(r.to+20, len(n)))
	q = run{from, to}
	pool()
	part := func(i int) float64 { // of a step at the edge
		if i < 0 || i >= len(n) || !(n[i] > 0) {
			return 0
		}
		return min(max(k[i]/n[i]-usual, 0)/p, 1) * s.length
	}
	f = fault{at: span{s.at(first - 1), s.at(last + 1)}, to: span{s.at(soonest - 1), s.at(latest + 1)}}
	f.At = seconds(max(s.at(from+1)-part(from)-part(from-1), 0), 9)
	f.For = seconds(s.at(to-1)+part(to-1)+part(to), 9) - f.At

	codes := map[string]float64{}
	for i := inside.from; i < inside.to; i++ {
		for code, b := range s.Points[i].Ended {
			if endingOf(code) == failed {
				codes[code] += b.N
			}
		}
	}
	names := sorted(codes)
	slices.SortStableFunc(names, func(a, b string) int { return int(codes[b] - codes[a]) })
	f.why = fmt.Sprintf("%s of %s failed, with %s", whole(bad), whole(all), strings.Join(names[:min(3, len(names))], ", "))
	if p > 0.9 && codes["refused"]+codes["reset"]+codes["502"] > 0.8*bad {
		f.Kind = sim.Crash
		e.warm(s, c, &f, r)
		return f, true
	}
	var mu []float64
	for i := inside.from; i < inside.to; i++ {
		mu = append(mu, n[i]*p)
	}
	_, spread := dispersion(k[inside.from:inside.to], mu)
	f.Kind, f.Share, f.share = sim.Errors, digits(p, 3), wilson(bad, all, spread)
	times, m := s.times(func(i int) bool { return i >= inside.from && i < inside.to }, of(failed))
	if m >= 5 {
		f.After = seconds(s.quantile(times, m, 0.5), 3)
	}
	return f, true
}

// slowed makes a fault of a stretch of slow answers. If as much is answered as arrives, each takes longer. Otherwise it can do less than arrives, until the
// number in hand is the greatest.
func (e *estimator) slowed(s *steps, c *calm, r run, arrive []float64) (fault, bool) {
	if r.to-r.from < 3 {
		return fault{}, false
	}
	ends := func(r run) fault {
		f := fault{at: span{s.at(r.from - 1), s.at(r.from + 1)}, to: span{s.at(r.to - 1), s.at(r.to + 1)}}
		f.At, f.For = seconds(s.at(r.from), 9), seconds(s.at(r.to)-s.at(r.from), 9)
		return f
	}
	inside := func(i int) bool { return i > r.from && i < r.to-1 }
	var came, ok float64
	held, most, full := 0.0, 0.0, r.from
	for i := r.from; i < r.to; i++ {
		came, ok = came+arrive[i], ok+s.ended[answered][i]
		if held += arrive[i] - s.ended[answered][i]; held > most {
			most, full = held, i+1
		}
	}
	times, k := s.times(inside, of(answered))
	ratio := s.quantile(times, k, 0.5) / c.p50
	least, longest := math.Inf(1), 0.0 // medians of quarters
	for quarter := range 4 {
		part, n := s.times(func(i int) bool { return inside(i) && (i-r.from)*4/(r.to-r.from) == quarter }, of(answered))
		if m := s.quantile(part, n, 0.5); n > 0 {
			least, longest = min(least, m), max(longest, m)
		}
	}
	if k >= 10 && ok > 0.9*came && longest < 1.7*least {
		f := ends(r)
		f.Kind = sim.SlowDown
		f.Share = digits(1/ratio, 3)
		x, y := s.quantileSpan(times, k, 0.5, 1), s.quantileSpan(c.times, c.n, 0.5, 1)
		f.share = span{min(y.low/x.high, f.Share), min(max(y.high/x.low, f.Share), 1)}
		f.why = fmt.Sprintf("answers took %s times as long, and as many were answered as arrived", number(rounded(ratio, 3, 0), 0))
		return f, ratio > 1.2
	}
	r.to = full
	if r.to-r.from < 3 {
		return fault{}, false
	}
	came, ok = 0, 0
	for i := r.from + 1; i < r.to-1; i++ {
		ok, came = ok+s.ended[answered][i], came+arrive[i]
	}
	n := float64(r.to - r.from - 2)
	can := c.rate
	w := float64(e.service().Workers * max(e.service().Hosts, 1))
	if w > 0 {
		can = w / s.mean(c.times) * s.length
	}
	f := ends(r)
	f.Kind = sim.BrownOut
	// While all wait equally long, times differ by the work alone. If they differ more than usual, each takes longer.
	// Steps in which the wait changes by more than that show nothing.
	var spreads []float64
	middle := func(i int) float64 {
		counts, n := s.times(only(i), of(answered))
		return s.quantile(counts, n, 0.5)
	}
	width := func(counts []float64, n float64) float64 {
		return s.quantile(counts, n, 0.75) - s.quantile(counts, n, 0.25)
	}
	for i := r.from + 1; i < r.to-1; i++ {
		drift := math.Abs(middle(i+1)-middle(i-1)) / 4
		if counts, n := s.times(only(i), of(answered)); n >= 4 && drift < width(counts, n)/2 {
			spreads = append(spreads, width(counts, n))
		}
	}
	if median(spreads) > 2*width(c.times, c.n) {
		f.Kind = sim.SlowDown
	}
	f.Share = digits(min(max(ok/n, 0.1)/can, 1), 3)
	around := counted(ok, 2)
	f.share = span{min(around.low/n/can/1.1, f.Share), max(min(around.high/n/can*1.1, 1), f.Share)}
	e.ask(e.inService("faults"), "", fmt.Sprintf("Had it fewer workers, or did each request take longer? Both look alike while requests wait. Assumed: %s.", f.Kind), "times of the work without the wait")
	if w == 0 {
		f.share.low = min(0.001, f.Share) // of a capacity that is not known
	}
	f.why = fmt.Sprintf("%s came and %s were answered, late", whole(came), whole(ok))
	return f, true
}

// warm gives a crash a cold cache, if answers were slow after it and became quicker while little was lost.
func (e *estimator) warm(s *steps, c *calm, f *fault, r run) {
	from := int(f.to.high / s.length)
	first, last := 0.0, from
	for i := from; i < r.to; i++ {
		times, n := s.times(only(i), of(answered))
		ratio := s.quantile(times, n, 0.5) / c.p50
		if n < 5 || !(ratio > 1.2) || s.all[i]-s.ended[answered][i] > 0.05*s.all[i]+3 {
			continue
		}
		if first == 0 {
			first = ratio
		}
		last = i + 1
	}
	if first > 1.5 && last-from >= 3 {
		f.Cold = digits(first, 2)
		f.Warmup = seconds(float64(last-from+1)*s.length, 3)
		f.why += fmt.Sprintf("; afterwards answers took %s times as long, and became quicker for %s", number(f.Cold, 0), duration(f.Warmup.Seconds(), 0))
	}
}

// sick returns the series of the hosts that have incidents, if others have none, and how many they are.
func (e *estimator) sick(g *group) (*steps, calm, int) {
	byHost := map[string][]*observed.Series{}
	var names []string
	for _, p := range g.side[e.main.Side] {
		if p.Host != "" && slices.Equal(p.Edges, e.main.Edges) {
			if byHost[p.Host] == nil {
				names = append(names, p.Host)
			}
			byHost[p.Host] = append(byHost[p.Host], p)
		}
	}
	if len(names) < 2 {
		return nil, calm{}, 0
	}
	var parts []*observed.Series
	n := 0
	for _, name := range names {
		if h := coarse(byHost[name]); len(h.findCalm().incident) > 0 {
			parts = append(parts, byHost[name]...)
			n++
		}
	}
	if n == 0 || n == len(names) {
		return nil, calm{}, 0
	}
	s := coarse(parts)
	return s, s.findCalm(), n
}
