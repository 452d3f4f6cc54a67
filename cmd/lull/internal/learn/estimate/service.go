package estimate

import (
	"cmp"
	"fmt"
	"math"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/lab/sim"
)

// mostBars is how many bars a histogram of service times has.
const mostBars = 40

// times learns how long the work takes while all is normal, from the server if it was measured.
func (e *estimator) times() error {
	s := e.main
	h := e.calmTimes(s, answered)
	if h.n < 100 {
		return fmt.Errorf("%s requests with a time were answered while all was normal: want at least 100", whole(h.n))
	}
	d := &e.service().Time
	d.Kind = sim.Histogram
	e.value("time", "", "", "%s %s, while all was normal", whole(h.n), e.what)
	add := func(upTo, weight float64) {
		d.Bars = append(d.Bars, sim.Bar{UpTo: seconds(upTo, 4), Weight: math.Round(weight)})
	}
	bar, done := 0.0, 0.0
	for i, edge := range s.Edges {
		bar += h.counts[i]
		left := h.n - done - bar // the bars are finer where fewer are left
		switch {
		case bar == 0 && done == 0 && h.counts[i+1] > 0: // nothing is shorter
			add(edge, 0)
		case bar > 0 && (bar >= h.n/mostBars || bar >= left/4 || !s.Exact):
			add(edge, bar)
			bar, done = 0, done+bar
		}
	}
	last := s.Edges[len(s.Edges)-1]
	if tail := h.n - done; tail > 0.5 {
		add(2*last, tail)
		e.ask("time", "", "a bucket above it", "How long do the slowest take? %s took longer than the last bucket, %s. Assumed: at most twice as long.", whole(tail), duration(last, 0))
	}
	if gone := e.calmTimes(s, cut); gone.n > 0 && s.Side != observed.Calls {
		add(2*max(gone.quantile(0.5), d.Bars[len(d.Bars)-1].UpTo.Seconds()), gone.n)
		e.ask("time", "", "measurements of the server", "How long would those have taken that were cut off? %s of %s were, while all was normal. Assumed: at most twice as long.", whole(gone.n), whole(h.n+gone.n))
	}
	for _, q := range []float64{0.5, 0.99} {
		late := s.tail(h, 1-q)
		_, spread := dispersion(only(late.in, e.calmIn(s)), s.ok, late.share) // waits come in bursts
		at := h.around(q, spread)
		e.seen(fmt.Sprintf("service time p%g", 100*q), duration(at.low, -1), duration(min(at.high, 2*last), 1), "order statistics of %s %s", whole(h.n), e.what)
	}
	if s.Side == observed.Calls {
		e.ask("time", "", "measurements of attempts, or of the server", "How long does a single attempt take? Known is how long calls take with all their attempts.")
	}
	// Half of the difference of the medians is the way between callers and server, if both were measured.
	a := e.sum[observed.Attempts]
	if a == nil || s.Side != observed.Served || !a.Exact || !s.Exact {
		return nil
	}
	ours := e.calmTimes(a, answered)
	x, y := ours.around(0.5, 1), h.around(0.5, 1)
	if ours.n >= 100 && x.low > y.high {
		e.fleet().Network.Latency.Mean = seconds((ours.quantile(0.5)-h.quantile(0.5))/2, 2)
		e.value(".network.latency", duration((x.low-y.high)/2, -1), duration((x.high-y.low)/2, 1), "half of the difference of the medians at the callers and at the server")
	}
	return nil
}

// capacity learns how much the service can do: what it answers while requests wait, if that is known well enough, and is not less than it answers at other
// times. By Little's law its workers are capacity × service time.
func (e *estimator) capacity() {
	s := e.ill
	peak, mean := or(s.peak, 0), s.usual.mean()
	full := s.full()
	all := run{0, len(full)}
	level, varies := sum(full, all)/max(float64(len(full)), 1), 0.0
	for _, ok := range full {
		varies += (ok - level) * (ok - level) / float64(max(len(full)-1, 1))
	}
	half := z95 * math.Sqrt(max(varies, level)/float64(len(full)))
	if len(full) < 3 || half > 0.15*level || level < peak-3*math.Sqrt(peak) || sum(full, all) < 100 {
		e.seen("capacity, at least", number(peak/s.length, -1), number(peak/s.length, -1), "answers a second in the busiest step in which all was normal")
		e.ask("workers", "", "the service's own log, of a time in which more arrives than it can do, or a load test",
			"How many requests can it work on at a time? It can answer at least %s a second, which takes %s workers. Assumed: as many as it takes.", number(peak/s.length, -1), whole(math.Ceil(peak/s.length*mean)))
		return
	}
	at := span{max(level-half, peak-3*math.Sqrt(peak), 0), level + half}.over(s.length)
	sv := e.service()
	sv.Workers = int(max(1, math.Round(level/s.length*mean/e.hosts())))
	e.seen("capacity", number(at.low, -1), number(at.high, 1), "answers a second in %d steps in which requests waited", len(full))
	e.value("workers", number(max(1, math.Floor(at.low*mean/e.hosts())), 0), number(max(1, math.Ceil(at.high*mean/e.hosts())), 0),
		"Little's law: %s answers a second while requests waited, times %s for each", number(level/s.length, 0), duration(mean, 0))
	if can := float64(sv.Workers) * e.hosts() / mean; math.Abs(can*s.length/level-1) > 0.05 {
		e.ask("workers", "", "the service's configuration", "How many requests does it work on at a time? %d workers could answer %s a second, and it answered %s.", sv.Workers, number(can, 0), number(level/s.length, 0))
	}
	e.queue(level)
}

// queue learns how many wait at most, and whether work goes on for callers that have gone, from times in which more came than the service can do, if some were
// refused or cut off then. Otherwise at least as many wait as were ever in hand.
func (e *estimator) queue(level float64) {
	s, sv := e.ill, e.service()
	most, held := 0.0, make([]float64, len(s.all)+1)
	for i := range s.all {
		held[i+1] = max(held[i]+or(s.began[i]-s.all[i], 0), 0)
		most = max(most, held[i+1])
	}
	coarse := s.Resolution >= s.Step
	if coarse { // each seems to be in hand until the next step
		most = 0
	}
	var then, otherwise float64 // refused while the most were in hand
	for i := range s.all {
		if refused := or(s.failed[i]-s.failing*s.all[i], 0); max(held[i], held[i+1]) > 0.9*most {
			then += refused
		} else {
			otherwise += max(refused, 0)
		}
	}
	var cut, ok, full float64
	var line span // how many waited when it began to refuse, before and after that step
	times := 0
	for _, r := range s.incidents {
		if !e.grew(s, r) {
			continue
		}
		waits := 0.0
		for i := r.from - 1; i < r.to; i++ {
			if s.cut[i] > 0.3*s.all[i] && s.began[i] > level {
				cut, ok, full = cut+s.cut[i], ok+s.ok[i], full+level
			}
			more := max(or(s.began[i]-level, 0), 0)
			if s.failed[i] > 0.05*s.all[i] && surprise(s.failed[i], s.failing*s.all[i]) > certain {
				if line, times = (span{waits, waits + more}).over(e.hosts()), times+1; coarse {
					line = span{0, line.high + more/e.hosts()}
				}
				break
			}
			waits += more
		}
	}
	if full > 0 && (ok > 0.7*full || ok < 0.2*full) {
		sv.CancelWork = ok > full/2
		text := fmt.Sprint(sv.CancelWork)
		e.value("cancel_work", text, text, "%s were cut off while more came than it can do, and it answered %s of the %s that it can", whole(cut), whole(ok), whole(full))
	} else {
		e.ask("cancel_work", "", "the service's code", "Does it stop to work for a caller that has gone? Assumed: no.")
	}
	waited := max(math.Ceil(most/e.hosts())-float64(sv.Workers), 0)
	if waited >= 10 && then > 20 && then > 10*otherwise {
		sv.Queue.Limit = int(waited)
		e.value("queue.limit", number(math.Floor(0.9*waited), 0), number(math.Ceil(1.1*waited), 0), "%s were refused while that many waited, and nearly none otherwise", whole(then))
		return
	}
	if times == 1 && line.high > waited && (full == 0 || !sv.CancelWork) {
		line.low = max(line.low, waited)
		sv.Queue.Limit = int(max(digits((line.low+line.high)/2, 2), 1))
		e.value("queue.limit", number(math.Floor(0.8*line.low), 0), number(math.Ceil(1.2*line.high), 0), "so many had come more than it can do when it began to refuse")
		return
	}
	sv.Queue.Limit = int(cmp.Or(digits(10*waited, 1), 1000))
	e.ask("queue.limit", number(waited, 0), "the service's configuration", "How many requests can wait for a worker? At least %s waited. Assumed: %d.", whole(waited), sv.Queue.Limit)
}

// full returns what was answered in the steps in which requests waited: in three steps or more one after another, slowly or beside refusals, more was answered
// than usual, few were cut off, and the number that came was another. Work that only takes longer answers as many as come.
func (s *steps) full() (all []float64) {
	waits := func(i int) bool {
		return s.bad[i] && (s.failed[i] > 0.05*s.all[i] || s.late(run{i, i + 1}, 3))
	}
	for from := 0; from < len(s.all); from++ {
		to, top, held, most := from, from, 0.0, 0.0
		for ; to < len(s.all) && waits(to); to++ {
			if held += or(s.came[to], s.rate) - s.ok[to]; held > most {
				top, most = to+1, held
			}
		}
		for _, part := range []run{{from, top}, {top, to}} { // more are in hand, and then fewer
			few := func(i int) bool { // it waited in a part of the step alone
				rest := float64(part.to - part.from - 1)
				return rest >= 3 && surprise(rest*s.ok[i], sum(s.ok, part)-s.ok[i]) < -certain*math.Sqrt(rest)
			}
			for few(part.from) { // it began in a part of the first, and ended in one of the last
				part.from++
			}
			for few(part.to - 1) {
				part.to--
			}
			came, ok, usual := sum(s.came, part), sum(s.ok, part), float64(part.to-part.from)*s.rate
			if part.to-part.from >= 3 && sum(s.cut, part) <= 0.05*sum(s.all, part) && ok > 1.05*usual && surprise(ok, usual) > certain &&
				math.Abs(surprise(came, ok)) > 3 && math.Abs(came-ok) > 0.05*ok {
				all = append(all, s.ok[part.from:part.to]...)
			}
		}
		from = max(from, to-1)
	}
	return all
}
