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
		at := s.quantileSpan(times, n, q, e.clustering(s, q))
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

// clustering is how much the share of answers above a quantile varies from step to step, as a multiple of what independent times would: where requests wait, slow
// ones come together.
func (e *estimator) clustering(s *steps, q float64) float64 {
	good := e.normal(s)
	times, n := s.times(good, of(answered))
	bar, sum := 0, 0.0
	for ; bar < len(times) && sum < q*n; bar++ {
		sum += times[bar]
	}
	p := 1 - sum/n // above
	if p <= 0 {
		return 1
	}
	var above, means []float64
	for i := range s.Points {
		if !good(i) {
			continue
		}
		counts, all := s.times(only(i), of(answered))
		k := all
		for _, c := range counts[:bar] {
			k -= c
		}
		above, means = append(above, k/(1-p)), append(means, all*p/(1-p)) // so that the variance is that of the binomial distribution
	}
	_, batches := dispersion(above, means)
	return batches
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
	for _, i := range e.crowd() {
		full = append(full, s.ended[answered][i])
	}
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

// full returns what was answered in the steps in which requests waited: in five steps or more one after another, three quarters of what was answered took
// twice as long as normal, nearly nothing was lost, and the times grew while more arrived than was answered, or fell while more than usual was
// answered. Times that stay as they are, or fall by themselves, are those of work that takes longer.
func (e *estimator) full() (all []float64) {
	s, c := e.main, &e.calm
	medians := make([]float64, len(s.Points))
	waits := func(i int) bool {
		ok := s.ended[answered][i]
		if !c.bad[i] || !(ok > 0.9*c.rate) || s.ended[cut][i]+s.ended[failed][i] > 0.05*s.all[i] {
			return false
		}
		times, n := s.times(only(i), of(answered))
		medians[i] = s.quantile(times, n, 0.5)
		return n >= leastEach/2 && s.quantile(times, n, 0.25) > 2*c.p50
	}
	for from := 0; from < len(s.Points); from++ {
		to, top := from, from
		for ; to < len(s.Points) && waits(to); to++ {
			if medians[to] > medians[top] {
				top = to
			}
		}
		for _, part := range []run{{from, top}, {top, to}} {
			part.from, part.to = part.from+1, part.to-1 // the first and the last may be full in part
			n := part.to - part.from
			if n < 3 {
				continue
			}
			grows, falls, came, ok := 0, 0, 0.0, 0.0
			for i := part.from; i < part.to; i++ {
				ok += s.ended[answered][i]
				came += or(s.began[i], c.rate)
				if i > part.from && medians[i] > medians[i-1] {
					grows++
				} else if i > part.from {
					falls++
				}
			}
			first, last := medians[part.from], medians[part.to-1]
			usual := float64(n) * c.rate
			if last > 1.3*first && grows >= 4*falls && came > 1.05*ok && surprise(came, ok) > 3 ||
				first > 1.3*last && falls >= 4*grows && ok > 1.05*usual && surprise(ok, usual) > 3 {
				all = append(all, s.ended[answered][part.from:part.to]...)
			}
		}
		from = max(from, to-1)
	}
	return all
}

// crowd returns the steps in which the queue was full: of five or more one after another in which answers take longer, some are refused quickly, nearly none
// are cut off, and more are answered than usual. Only a service that gets more calls than usual answers more. The first and the last may be full in part.
func (e *estimator) crowd() (all []int) {
	s, c := e.main, &e.calm
	full := func(i int) bool {
		n, quick := s.all[i], s.ended[failed][i]
		if !c.bad[i] || !(quick > 0.05*n) || surprise(quick, c.failing*n) < 3 || s.ended[cut][i] > 0.05*n {
			return false
		}
		times, m := s.times(only(i), of(answered))
		return m >= leastEach/2 && s.quantile(times, m, 0.5) > 1.2*c.p50
	}
	for from := 0; from < len(s.Points); from++ {
		to, ok := from, 0.0
		for ; to < len(s.Points) && full(to); to++ {
			ok += s.ended[answered][to]
		}
		if n := to - from; n >= 5 && ok > 1.05*float64(n)*c.rate && surprise(ok, float64(n)*c.rate) > 3 {
			for i := from + 1; i < to-1; i++ {
				all = append(all, i)
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
