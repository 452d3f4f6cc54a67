package estimate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// A fault is one of the simulator's, with what is known of it. Times are from the beginning of the series.
type fault struct {
	sim.Fault
	at, to, share, cold, warmup span
	why                         string
}

// faults learns what went wrong in each incident. If there are series by host and only some of the hosts have incidents, it looks at these alone.
func (e *estimator) faults() {
	s, hosts := e.ill, e.sickHosts
	var known []run                                             // in steps of s
	if a := e.sum[observed.Attempts]; a != nil && a != e.main { // a server that is down does not log it
		for _, r := range a.incidents {
			f, ok := e.explain(a, r)
			if ok && f.Kind == sim.Crash && e.inFrame(a, r) && s.sees(&f, a.Start) {
				e.warm(s, &f)
				e.write(s, f)
				known = append(known, run{s.step(a.At(r.from)), s.step(a.At(r.to))})
			}
		}
	}
	for _, r := range s.incidents {
		if !e.inFrame(s, r) || slices.ContainsFunc(known, func(k run) bool { return k.from < r.to && r.from < k.to }) {
			continue
		}
		since := s.Start.Sub(e.zero).Seconds()
		from, to := e.clock(s.at(r.from)+since), e.clock(s.at(r.to)+since)
		if hosts == 0 && e.grew(s, r) {
			most := 1.0
			for _, p := range e.fleet().Arrivals.Ramp {
				most = max(most, p.Factor)
			}
			e.happen("more calls came, up to %s times as many, and it was slow or failed from %s to %s", number(digits(most, 2), 0), from, to)
			continue
		}
		f, ok := e.explain(s, r)
		if !ok {
			e.happen("from %s to %s it was slow or failed, and the data do not show by which fault", from, to)
			e.ask("faults", "", "finer steps, or measurements of the server", "What happened from %s to %s? No fault of the simulator fits.", from, to)
			continue
		}
		f.Hosts = hosts
		if e.workedOff(s, r, &f); f.Kind == sim.Crash {
			e.warm(s, &f)
		}
		e.write(s, f)
	}
}

// sees moves a crash, of a series that started then, to the time of s, and to the steps of s in which nothing began. It reports false if s saw the failures itself.
func (s *steps) sees(f *fault, start time.Time) bool {
	since := start.Sub(s.Start).Seconds()
	f.At += seconds(since, 9)
	f.at, f.to = span{f.at.low + since, f.at.high + since}, span{f.to.low + since, f.to.high + since}
	r := run{max(int(f.at.low/s.length), 1), min(int(f.to.high/s.length)+1, len(s.all))}
	from := r.from
	for from < r.to && s.began[from] != 0 {
		from++
	}
	to := from
	for to < r.to && s.began[to] == 0 {
		to++
	}
	if float64(to-from)*s.rate > 10 {
		f.at, f.to = span{s.at(from - 1), s.at(from + 1)}, span{s.at(to - 1), s.at(to + 1)}
		f.At, f.For = seconds(s.at(from), 9), seconds(s.at(to-from), 9)
	}
	return sum(s.failed, r) <= sum(s.ok, r)
}

func (e *estimator) inFrame(s *steps, r run) bool {
	return s.At(r.to).After(e.zero) && s.At(r.from).Before(e.zero.Add(e.w.Scenario.Horizon))
}

func (e *estimator) happen(text string, args ...any) {
	text = fmt.Sprintf(text, args...)
	if e.i > 0 {
		text = e.service().Name + ": " + text
	}
	e.happened = append(e.happened, text)
}

// sick finds the series of the hosts that have incidents, if others have none, and how many they are; otherwise main.
func (e *estimator) sick(g *group) {
	byHost := g.hosts(observed.Served)
	if byHost == nil {
		byHost = g.hosts(observed.Attempts)
	}
	var parts []*observed.Series
	n := 0
	for _, of := range byHost {
		h := coarse(of)
		if h.findCalm(); len(h.incidents) > 0 {
			parts = append(parts, of...)
			n++
		}
	}
	if e.ill, e.sickHosts = e.main, 0; n > 0 && n < len(byHost) {
		e.ill, e.sickHosts = coarse(parts), n
		e.ill.findCalm()
	}
}

// workedOff learns from callers that see no answer what the service did. When its line is full it refuses as many as it cannot do. When it recovers it works off the line,
// and what comes, also for callers that have gone, until the first is answered in time.
func (e *estimator) workedOff(s *steps, r run, f *fault) {
	refused := func(i int) bool {
		return i < r.to && s.failed[i] > 0.05*s.all[i] && surprise(s.failed[i], s.failing*s.all[i]) > certain
	}
	taken := func(from, to int) float64 { return max(sum(s.began, run{from, to})-sum(s.failed, run{from, to}), 0) }
	full := r.from
	for full < r.to && !refused(full) {
		full++
	}
	rate, last := 0.0, full // that it does, in a step, while the line is full
	for ; refused(last+1) && !(s.began[last+1]-s.failed[last+1] > rate+3*math.Sqrt(rate+1) && last > full+1); last++ {
		rate = taken(full+1, last+1) / max(float64(last-full), 1)
	}
	rate = taken(full+1, last) / max(float64(last-full-1), 1)
	if refused(last + 1) {
		last++
	}
	answer := last + 1 // the first in time
	for answer < r.to && s.ok[answer] < 4 {
		answer++
	}
	if !s.Exact || !s.begins() || last == full || answer >= r.to || answer-last < 4 || sum(s.cut, run{last + 1, answer}) < 20 || f.Kind == sim.Crash || f.Kind == sim.Errors {
		return
	}
	line := s.rate / s.length * s.usual.mean()
	for i := r.from; i <= full; i++ {
		line += s.began[i] - s.failed[i] - max(s.ok[i], rate)
	}
	end := s.at(last) + s.length*min(s.failed[last]/max(s.began[last]-rate, 1), 1)
	long := s.at(answer) + s.length/2 - end
	done := line + taken(last, int((s.at(answer)+s.length/2-s.p[1][answer])/s.length))
	can, at := done/long, counted(done, 1)
	at = span{at.low / (long + s.length), at.high / (long - s.length)}
	if at.high < s.rate/s.length || rate > 0.8*can*s.length { // callers that go leave the line
		return
	}
	if f.Kind, f.Share = sim.Stall, 0; rate > 0.05*can*s.length {
		n := max(float64(last-full-1), 1)
		share := counted(rate*n, 1).over(s.length * n)
		f.Kind, f.Share, f.share = sim.BrownOut, digits(min(rate/s.length/can, 1), 3), span{share.low / at.high, min(share.high/at.low, 1)}
	}
	f.to, f.For = span{s.at(last), s.at(last + 1)}, seconds(end, 9)-f.At
	f.why = fmt.Sprintf("until then it refused %s; then it worked off %s, among them those that were cut off", whole(sum(s.failed, r)), whole(done))
	answered := func(path string) bool { // there was a question
		n, asked := len(e.w.Learned.Unknown), func(q scenario.Question) bool { return q.Path == e.path(path) }
		e.w.Learned.Unknown = slices.DeleteFunc(e.w.Learned.Unknown, asked)
		return len(e.w.Learned.Unknown) < n
	}
	sv, mean := e.service(), s.usual.mean()/e.hosts()
	unknown := sv.Workers == 0
	if unknown && answered("workers") {
		sv.Workers = int(max(math.Round(can*mean), 1))
		e.value("workers", number(max(math.Floor(at.low*mean), 1), 0), number(math.Ceil(at.high*mean), 0), "Little's law: it worked off %s in %s, times %s for each", whole(done), duration(long, 0), duration(s.usual.mean(), 0))
	}
	if answered("queue.limit") || unknown {
		waited := max(line/e.hosts()-float64(sv.Workers), 1)
		sv.Queue.Limit = int(digits(waited, 3))
		e.value("queue.limit", number(math.Floor(0.85*waited), 0), number(math.Ceil(1.15*waited), 0), "%s had come when it began to refuse", whole(line))
	}
	if answered("cancel_work") || unknown {
		e.value("cancel_work", "false", "false", "nothing was answered in time for %s after it refused no more", duration(long, 0))
	}
}

// write adds a fault to the scenario.
func (e *estimator) write(s *steps, f fault) {
	horizon := e.w.Scenario.Horizon.Seconds()
	// In which step a request ended is certain, if steps are whole units of the clock.
	blur := choice.Either(s.Step%max(s.Resolution, 1) != 0, s.Resolution.Seconds(), 0)
	inWorld := func(at float64) float64 { return min(max(at+s.Start.Sub(e.zero).Seconds(), 0), horizon) }
	at := span{inWorld(f.at.low - blur), inWorld(f.at.high + blur)}
	to := span{max(inWorld(f.to.low-blur), at.low), inWorld(f.to.high + blur)}
	end := inWorld((f.At + f.For).Seconds())
	f.At = seconds(inWorld(f.At.Seconds()), 9).Round(time.Millisecond)
	f.For = max(seconds(end-f.At.Seconds(), 9).Round(time.Millisecond), time.Millisecond)
	all := &e.service().Faults
	path := fmt.Sprintf("faults.%d.", len(*all))
	*all = append(*all, f.Fault)
	e.value(path+"at", moment(at.low), moment(at.high), "%s", f.why)
	e.value(path+"for", moment(max(to.low-at.high, 0.001)), moment(max(to.high-at.low, 0.001)), "from the interval of its beginning to that of its end")
	if f.Cold > 0 {
		e.value(path+"cold", number(f.cold.low, -1), number(f.cold.high, 1), "a quarter of the first answers")
		e.value(path+"warmup", duration(f.warmup.low, -1), duration(f.warmup.high, 1), "how long it did less than came, and until all was normal")
	}
	what := choice.Either(f.Kind == sim.Errors, "", "a ") + f.Kind.String()
	if f.Share > 0 {
		by := map[sim.FaultKind]string{sim.Errors: "what failed, of what arrived", sim.BrownOut: "what was answered, of what it can do", sim.SlowDown: "how much slower it was"}
		e.value(path+"share", share(f.share.low, -1), share(f.share.high, 1), "%s", by[f.Kind])
		what += " (" + share(f.Share, 0) + ")"
	}
	if f.Hosts > 0 {
		what += fmt.Sprintf(" of %d of %d hosts", f.Hosts, e.service().Hosts)
	}
	e.happen("what looks like %s for %s, from %s on (%s)", what, duration(f.For.Seconds(), 0), e.clock(f.At.Seconds()), f.why)
}

// explain finds the fault of an incident: one. No answers at all, soon after it began, are a stall, or an outage if all that came failed quickly. If some
// failed quickly, and the others were answered as quickly as ever, it is errors. If answers were slow, it is a slow-down or a brown-out.
func (e *estimator) explain(s *steps, r run) (fault, bool) {
	came := make([]float64, len(s.all))
	var down, failing run
	reach := func(r *run, i int) {
		if r.to == 0 {
			r.from = i
		}
		r.to = i + 1
	}
	for i := r.from; i < r.to; i++ {
		came[i] = or(s.began[i], max(or(s.all[i], 0), s.rate))
		if s.ok[i] < max(came[i], s.rate/2)/10 && (down.to == 0 || i <= down.to+2 && (s.cut[i] <= s.failed[i] || s.failed[down.from] <= s.cut[down.from])) {
			reach(&down, i)
		}
		if s.failed[i] > (2*s.failing+0.02)*s.all[i] && surprise(s.failed[i], s.failing*s.all[i]) > 3 {
			reach(&failing, i)
		}
	}
	inside := down.inside()
	silent := sum(s.ok, inside) <= 0.02*s.rate*float64(inside.to-inside.from)
	sudden := func(at int) bool { // before it all is well, but for the step in which it begins
		for i := r.from; i < at-1; i++ {
			if s.p[1][i] > 2.5*s.median || s.lost[i] > 0.1*s.all[i] {
				return false
			}
		}
		return true
	}
	if down.to > 0 && sudden(down.from) {
		if quick := sum(s.failed, down); quick > 0.9*sum(s.all, down) && quick > 0.8*sum(came, down) {
			f, ok := s.refused(down, down)
			// In a stall some wait, until they are cut off or answered late.
			gone := sum(s.cut, down)
			if waited := gone >= 5 && surprise(gone, s.failing*sum(s.all, down)) > certain || s.late(run{down.to, down.to + 2}, 1.5); f.Kind == sim.Crash || !waited || !silent {
				return f, ok
			}
		}
		if silent {
			return e.stalled(s, down, came), true
		}
	}
	// Others than those that failed are answered. If they are cut off, a full queue refuses.
	if failing.to > 0 && sudden(failing.from) && !s.late(failing, 1.5) && sum(s.cut, failing) < 0.1*sum(s.all, failing)+s.failing*sum(s.all, failing) {
		if f, ok := s.refused(r, failing); ok {
			return f, true
		}
	}
	if f, ok := e.slowed(s, r, came); ok || down.to == 0 {
		return f, ok
	}
	return e.stalled(s, down, came), true
}

// stalled makes a fault of steps without answers.
func (e *estimator) stalled(s *steps, d run, came []float64) fault {
	stop := d.from
	usual := max(s.rate, 1)
	if d.from > 0 && s.ok[d.from-1] < usual-3*math.Sqrt(usual) { // it stopped in the midst of the one before
		stop--
	}
	part := min((s.ok[stop]+3*math.Sqrt(s.ok[stop]+1))/max(usual-2*math.Sqrt(usual), 1), 1)
	first := choice.Either(stop < d.from, stop, stop-1)
	f := fault{at: span{s.at(first), s.at(stop) + part*s.length}, to: span{s.at(d.to - 1), s.at(d.to + 1)}}
	f.Kind = sim.Stall
	begin, end := s.at(stop)+s.length*min(s.ok[stop]/usual, 1), s.at(d.to)-s.length*min(s.ok[d.to-1]/usual, 1)
	f.At = seconds(min(max(begin, f.at.low), f.at.high), 9)
	f.For = seconds(min(max(end, f.to.low), f.to.high), 9) - f.At
	gone, all, n := sum(s.cut, d), sum(s.all, d), sum(came, d)
	f.why = fmt.Sprintf("%s came and %s were answered", whole(n), whole(all-gone))
	if all > 0 && gone > all/2 { // it may have worked for those that had gone, for as long as that takes
		peak := s.peak
		if w := float64(e.service().Workers); w > 0 {
			peak = w * e.hosts() / s.usual.mean() * s.length
			f.For = max(f.For-seconds(n/peak*s.length, 9), s.Step)
		}
		f.to.low = min(f.to.low, f.at.high+max(f.to.low-f.at.high-1.1*n/peak*s.length, 0))
		f.why += ", and the others were cut off; it may have ended earlier, and worked for callers that had gone"
	}
	return f
}

// refused makes a fault of a stretch of quick failures. Where it begins and ends is found by the likelihood of the failures in each step of the incident, and of 20
// steps around it.
func (s *steps) refused(r, q run) (f fault, ok bool) {
	usual := max(s.failing, 0.5/max(s.usual.n, 1))
	p := sum(s.failed, q.inside()) / max(sum(s.all, q.inside()), 1)
	if p < 2*usual {
		return f, false
	}
	middle := (q.from + q.to) / 2
	from, first, last := edge(s.failed, s.all, usual, p, max(r.from-20, 0), middle)
	over := r.to // what is refused after callers were cut off has waited
	for over < min(r.to+20, len(s.all)) && !(s.cut[over] > 0.5*s.all[over]) {
		over++
	}
	to, soonest, latest := edge(s.failed, s.all, p, usual, middle+1, over)
	q = run{from, to}
	bad, all := sum(s.failed, q.inside()), sum(s.all, q.inside())
	p = bad / max(all, 1)
	part := func(i int) float64 { // of a step at the edge
		if i < 0 || i >= len(s.all) || !(s.all[i] > 0) {
			return 0
		}
		return min(max(s.failed[i]/s.all[i]-usual, 0)/p, 1) * s.length
	}
	f = fault{at: span{s.at(first - 1), s.at(last + 1)}, to: span{s.at(soonest - 1), s.at(latest + 1)}}
	f.At = seconds(max(s.at(from+1)-part(from)-part(from-1), 0), 9)
	f.For = seconds(s.at(to-1)+part(to-1)+part(to), 9) - f.At
	h := s.times(q.inside(), nil, failed)
	names := sorted(h.codes)
	f.why = fmt.Sprintf("%s of %s failed, with %s", whole(bad), whole(all), strings.Join(names[:min(3, len(names))], ", "))
	if p > 0.9 && h.codes["refused"]+h.codes["reset"]+h.codes["502"] > 0.8*bad {
		f.Kind = sim.Crash
		return f, true
	}
	_, spread := dispersion(s.failed[q.inside().from:q.inside().to], s.all[q.inside().from:q.inside().to], p)
	f.Kind, f.Share, f.share = sim.Errors, digits(p, 3), wilson(bad, all, spread)
	if h.n >= 5 {
		f.After = seconds(h.quantile(0.5), 3)
	}
	return f, true
}

// inside is r without the first and the last step, which are concerned in part.
func (r run) inside() run {
	if r.to-r.from > 2 {
		return run{r.from + 1, r.to - 1}
	}
	return r
}

// warm gives a crash a cold cache, if the first answers after it took longer: then nothing waited yet. A quarter of them shows by how much. If work waited, as much was
// done until all was normal as came: n = capacity × (long - warmup + warmup × ln cold / (cold - 1)).
func (e *estimator) warm(s *steps, f *fault) {
	first := max(int(f.to.low/s.length)-1, 0)
	for first < len(s.all) && s.ok[first] < 4 {
		first++
	}
	k := slices.IndexFunc(s.incidents, func(r run) bool { return r.from <= first && first+3 <= r.to })
	if k < 0 {
		return
	}
	r, usual := run{first, s.incidents[k].to}, s.usual.quantile(0.25)
	cold := s.times(run{first, first + 1}, nil, answered).around(0.25, 1).over(usual)
	ratio := s.p[0][first] / usual
	if ratio < 1.5 {
		return
	}
	long := s.at(r.to) - (f.At + f.For).Seconds()
	warmup := func(cold float64) float64 {
		if w := float64(e.service().Workers) * e.hosts(); w > 0 {
			n := sum(s.came, r) - sum(s.failed, r)
			return min((long-n*s.usual.mean()/w)/(1-math.Log(cold)/(cold-1)), long)
		}
		return long
	}
	f.Cold, f.Warmup = digits(ratio, 2), seconds(warmup(ratio), 3)
	f.cold, f.warmup = span{max(0.7*cold.low, 1.1), min(cold.high, 2*ratio)}, span{warmup(min(cold.high, 2*ratio)), long}
	f.why += fmt.Sprintf("; the first answers afterwards took %s times as long", number(f.Cold, 0))
	e.ask("faults", "", "times of the work without the wait", "How long was the cache cold after the crash? Assumed: %s; all was normal after %s.", duration(f.Warmup.Seconds(), 0), duration(long, 0))
}

// slowed makes a fault of slow answers. If as much is answered as comes, each takes longer. Otherwise it can do less than comes, until the number in hand is the
// greatest: it has fewer workers, or each takes longer.
func (e *estimator) slowed(s *steps, r run, came []float64) (f fault, ok bool) {
	times, width := s.times(run{r.from + 1, r.to - 1}, nil, answered), s.usual.quantile(0.75)-s.usual.quantile(0.25)
	least, longest := math.Inf(1), 0.0 // medians of quarters
	for q := range 4 {
		if m := s.times(run{r.from + 1 + q*(r.to-r.from-2)/4, r.from + 1 + (q+1)*(r.to-r.from-2)/4}, nil, answered).quantile(0.5); !math.IsNaN(m) {
			least, longest = min(least, m), max(longest, m)
		}
	}
	answers, held, most, full := sum(s.ok, r), 0.0, 0.0, r.from
	for i := r.from; i < r.to; i++ {
		if held += came[i] - s.ok[i]; held > most {
			most, full = held, i+1
		}
	}
	keepsUp := times.n >= 10 && answers > 0.9*sum(came, r) && longest < 1.7*least
	if !keepsUp {
		r.to = full
	}
	if r.to-r.from < 3 {
		return f, false
	}
	f = fault{at: span{s.at(r.from - 1), s.at(r.from + 1)}, to: span{s.at(r.to - 1), s.at(r.to + 1)}}
	f.At, f.For = seconds(s.at(r.from), 9), seconds(s.at(r.to)-s.at(r.from), 9)
	if keepsUp {
		ratio := times.quantile(0.5) / s.median
		x, y := times.around(0.5, 1), s.usual.around(0.5, 1)
		f.Kind, f.Share = sim.SlowDown, digits(1/ratio, 3)
		f.share = span{min(y.low/x.high, f.Share), min(max(y.high/x.low, f.Share), 1)}
		f.why = fmt.Sprintf("answers took %s times as long, and as many were answered as came", number(digits(ratio, 3), 0))
		return f, ratio > 1.2
	}
	// While all wait equally long, times differ by the work alone. If they differ more than usual, each takes longer. Steps in which the wait changes by more
	// than that show nothing.
	var spreads []float64
	for i := r.from + 1; i < r.to-1; i++ {
		if w := s.p[2][i] - s.p[0][i]; s.ok[i] >= 4 && math.Abs(s.p[1][i+1]-s.p[1][i-1])/4 < w/2 {
			spreads = append(spreads, w)
		}
	}
	f.Kind = choice.Either(quantileOf(spreads, 0.5) > 2*width, sim.SlowDown, sim.BrownOut)
	inside := r.inside() // and if many are cut off then, only what came before: later it works for callers that have gone
	for i := inside.from + 3; i < inside.to; i++ {
		if s.cut[i] > 0.1*s.all[i] && sum(s.ok, run{inside.from, i}) >= 50 {
			inside.to = i
		}
	}
	answers = sum(s.ok, inside)
	can := float64(inside.to-inside.from) * s.rate
	if w := float64(e.service().Workers); w > 0 {
		can *= w * e.hosts() / s.usual.mean() * s.length / s.rate
	}
	around := counted(answers, 2).over(can)
	f.Share = digits(min(max(answers, 0.1)/can, 1), 3)
	f.share = span{min(around.low/1.1, f.Share), max(min(around.high*1.1, 1), f.Share)}
	if e.service().Workers == 0 {
		f.share.low = min(0.001, f.Share) // of a capacity that is not known
	}
	e.ask("faults", "", "times of the work without the wait", "Had it fewer workers, or did each request take longer? Both look alike while requests wait. Assumed: %s.", f.Kind)
	f.why = fmt.Sprintf("%s came and %s were answered, late", whole(sum(came, inside)), whole(answers))
	return f, true
}
