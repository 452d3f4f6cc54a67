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

// serviceTimes learns how long the work takes while all is normal, from the server if it was measured.
func (e *estimator) serviceTimes() {
	s := e.main
	times, n := s.times(e.normal(s), of(answered))
	d := &e.service().Time
	d.Kind = sim.Histogram
	where := [...]string{"calls with all their attempts", "attempts, as the caller saw them", "requests, as the server saw them"}[s.Side]
	e.value(e.inService("time"), "", "", "%s %s while all was normal", whole(n), where)
	tail := 0.0
	add := func(upTo, weight float64) {
		d.Bars = append(d.Bars, sim.Bar{UpTo: seconds(upTo, 4), Weight: math.Round(weight)})
	}
	sum, done := 0.0, 0.0
	for i, c := range times[:len(s.Edges)] {
		if c == 0 && sum == 0 {
			if done == 0 && i+1 < len(times) && times[i+1] > 0 { // nothing is shorter
				add(s.Edges[i], 0)
			}
			continue
		}
		sum += c
		left := n - done - sum // the bars are finer where fewer are left
		if sum >= n/mostBars || sum >= left/4 || !s.Exact || left < 0.5 {
			add(s.Edges[i], sum)
			done, sum = done+sum, 0
		}
	}
	if tail = times[len(s.Edges)]; tail > 0 {
		last := s.Edges[len(s.Edges)-1]
		add(2*last, tail)
		e.ask(e.inService("time"), "", fmt.Sprintf("How long do the slowest take? %s took longer than the last bucket, %s. Assumed: at most twice as long.", whole(tail), duration(last, 0)),
			"a bucket above it")
	}
	// Those that were cut off would have taken longer.
	if gone, k := s.times(e.normal(s), of(cut)); k > 0 && s.Side != observed.Calls {
		at := s.quantile(gone, k, 0.5)
		if last := d.Bars[len(d.Bars)-1].UpTo.Seconds(); at < last {
			at = last
		}
		add(2*at, k)
		e.ask(e.inService("time"), "", fmt.Sprintf("How long would those have taken that were cut off? %s of %s were, while all was normal. Assumed: at most twice as long.", whole(k), whole(n+k)),
			"measurements of the server")
	}
	t := &e.told[e.i]
	t.p50, t.p99 = s.quantile(times, n, 0.5), s.quantile(times, n, 0.99)
	for _, q := range []float64{0.5, 0.99} {
		at := s.quantileSpan(times, n, q, e.spreadAbove(s, times, n, q))
		high := at.high
		if math.IsInf(high, 1) {
			high = 2 * s.Edges[len(s.Edges)-1]
		}
		e.seen(e.of(fmt.Sprintf("service time p%g", q*100)), duration(at.low, -1), duration(high, 1), "order statistics of %s %s", whole(n), where)
	}
	if s.Side == observed.Calls {
		e.ask(e.inService("time"), "", "How long does a single attempt take? Known is how long calls take with all their attempts.", "measurements of attempts, or of the server")
	}
	e.network()
}

// spreadAbove returns the dispersion of how many take longer than a quantile in each step: waits come in bursts.
func (e *estimator) spreadAbove(s *steps, times []float64, n, q float64) float64 {
	limit, _ := s.barOf(times, q*n)
	var late, means []float64
	good := e.normal(s)
	for i := range s.Points {
		if good(i) {
			counts, all := s.times(only(i), of(answered))
			above := 0.0
			for k, c := range counts {
				if k > 0 && s.Edges[k-1] > limit {
					above += c
				}
			}
			late, means = append(late, above), append(means, all)
		}
	}
	share := sumOf(late) / max(sumOf(means), 1)
	for i := range means {
		means[i] *= share
	}
	_, spread := dispersion(late, means)
	return spread
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// network learns the way between callers and server, if both were measured: half of the difference of their medians.
func (e *estimator) network() {
	a, s := e.sum[observed.Attempts], e.sum[observed.Served]
	if a == nil || s == nil || !a.Exact || !s.Exact {
		return
	}
	ours, n := a.times(e.normal(a), of(answered))
	theirs, m := s.times(e.normal(s), of(answered))
	if n < 100 || m < 100 {
		return
	}
	x, y := a.quantileSpan(ours, n, 0.5, 1), s.quantileSpan(theirs, m, 0.5, 1)
	if x.low <= y.high {
		return
	}
	e.fleet().Network.Latency = sim.Distribution{Mean: seconds((a.quantile(ours, n, 0.5)-s.quantile(theirs, m, 0.5))/2, 2)}
	e.value(e.inFleet("network.latency"), duration((x.low-y.high)/2, -1), duration((x.high-y.low)/2, 1), "half of the difference of the medians at the callers and at the server")
}

// capacity learns how much the service can do: what is answered while requests wait. They do if what is answered in a step takes twice as long as normal,
// as many are in hand as that needs, and no fault explains it. If the answers of such steps do not vary more than by chance, or a tenth, that is
// a plateau. By Little's law the workers are capacity × service time.
func (e *estimator) capacity() {
	s, c := e.main, &e.calm
	peak := 0.0
	for i, ok := range s.ended[answered] {
		if !c.bad[i] && !math.IsNaN(ok) {
			peak = max(peak, ok)
		}
	}
	full := e.full() // answers in a step
	mean := s.mean(c.times)
	unknown := func() {
		most := peak / s.length
		e.seen(e.of("capacity, at least"), number(most, -1), number(most, -1), "answers a second in the busiest step in which all was normal")
		e.ask(e.inService("workers"), "", fmt.Sprintf("How many requests can it work on at a time? It can answer at least %s a second, which takes %s workers. Assumed: as many as it takes.",
			number(most, -1), whole(math.Ceil(most*mean))), "a time in which more arrives than it can do, or a load test")
	}
	if len(full) < 3 {
		unknown()
		return
	}
	total := 0.0
	for _, ok := range full {
		total += ok
	}
	level := total / float64(len(full))
	means := make([]float64, len(full))
	varies := 0.0
	for i := range full {
		means[i] = level
		varies += (full[i] - level) * (full[i] - level) / float64(len(full)-1)
	}
	// More than chance, and more than a tenth: no plateau. Less than what it does at other times: no limit.
	if varies > 4*level && varies > level*level/100 || level < peak-3*math.Sqrt(peak) || total < 100 {
		unknown()
		return
	}
	half := 2.2 * math.Sqrt(max(varies, level)/float64(len(full)))
	low, high := max(level-half, peak-3*math.Sqrt(peak), 0)/s.length, (level+half)/s.length
	rate := level / s.length
	hosts := float64(max(e.service().Hosts, 1))
	workers := max(1, math.Round(rate*mean/hosts))
	e.service().Workers = int(workers)
	e.seen(e.of("capacity"), number(low, -1), number(high, 1), "answers a second in %d steps in which requests waited", len(full))
	e.value(e.inService("workers"), number(max(1, math.Floor(low*mean/hosts)), 0), number(max(1, math.Ceil(high*mean/hosts)), 0),
		"Little's law: %s answers a second while requests waited, times %s for each", number(rate, 0), duration(mean, 0))
	if got := workers * hosts / mean; math.Abs(got/rate-1) > 0.05 {
		e.ask(e.inService("workers"), "", fmt.Sprintf("How many requests does it work on at a time? %s workers could answer %s a second, and it answered %s.", number(workers, 0), number(got, 0), number(rate, 0)), "the service's configuration")
	}
	e.queue()
}

// full returns what was answered in the steps in which requests waited: in five steps or more one after another, more was answered than usual, slowly or
// beside refusals, and the number that came was another. Work that only takes longer answers as many as come.
func (e *estimator) full() (all []float64) {
	s, c := e.main, &e.calm
	waits := func(i int) bool {
		ok, quick := s.ended[answered][i], s.ended[failed][i]
		if !c.bad[i] || !(ok > 0.9*c.rate) || s.ended[cut][i] > 0.05*s.all[i] {
			return false
		}
		return quick > 0.05*s.all[i] || c.slowAt(s, i)
	}
	for from := 0; from < len(s.Points); from++ {
		to, top, held, most := from, from, 0.0, 0.0
		for ; to < len(s.Points) && waits(to); to++ {
			if held += or(s.began[to], c.rate) - s.ended[answered][to]; held > most {
				top, most = to, held
			}
		}
		for _, part := range []run{{from + 1, top}, {max(from, top) + 1, to - 1}} { // while it grew, and while it fell; the ends may be full in part
			came, ok := 0.0, 0.0
			for i := part.from; i < part.to; i++ {
				ok += s.ended[answered][i]
				came += or(s.began[i], c.rate)
			}
			usual := float64(part.to-part.from) * c.rate
			if part.to-part.from >= 3 && ok > 1.05*usual && surprise(ok, usual) > certain && math.Abs(surprise(came, ok)) > 3 && math.Abs(came-ok) > 0.05*ok {
				all = append(all, s.ended[answered][part.from:part.to]...)
			}
		}
		from = max(from, to-1)
	}
	return all
}

// queue learns how many wait at most: at least as many as were ever in hand.
func (e *estimator) queue() {
	s := e.main
	most, sum := 0.0, 0.0
	for i := range s.Points {
		if !math.IsNaN(s.held[i]) {
			most = max(most, s.held[i])
		}
		if math.IsNaN(s.began[i]) || math.IsNaN(s.all[i]) {
			continue
		}
		sum = max(sum+s.began[i]-s.all[i], 0)
		most = max(most, sum)
	}
	hosts := float64(max(e.service().Hosts, 1))
	waited := max(math.Ceil(most/hosts)-float64(e.service().Workers), 0)
	limit := int(cmp.Or(digits(10*waited, 1), 1000))
	e.service().Queue.Limit = limit
	e.ask(e.inService("queue.limit"), number(waited, 0), fmt.Sprintf("How many requests can wait for a worker? At least %s waited. Assumed: %d.", whole(waited), limit), "the service's configuration")
	e.ask(e.inService("cancel_work"), "", "Does it stop to work for a caller that has gone? Assumed: no.", "the service's code")
}
