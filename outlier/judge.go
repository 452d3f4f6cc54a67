package outlier

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/choice"
)

// normal is 1/Φ⁻¹(3/4), the standard deviation of a normal distribution over its median
// absolute deviation.
const normal = 1.4826

// A set finds at most one false outlier by chance in so many intervals.
const falseAlarmEvery = 1e3

// A sample is the data of one endpoint when it is judged.
type sample struct {
	h *host
	counts
	rate float64
}

// A finding is the evidence against an endpoint.
type finding struct {
	reason ChangeReason
	counts
	usual, threshold float64
}

// judge ejects outliers. The lock is held.
func (s *Set) judge(at time.Duration, random func() uint64) {
	if !s.unconditional {
		for _, h := range s.hosts {
			if h.streaks.Load() != 0 {
				for row := range rows {
					s.judgeRow(at, h, row, random)
				}
			}
		}
	}
	s.judgeRates(at, false, random)
	if s.split {
		s.judgeRates(at, true, random)
	}
	for _, h := range s.hosts {
		if h.forgetResults {
			s.forget(h)
		}
	}
}

// others returns the results of all other endpoints. The lock is held.
func (s *Set) others(h *host, local bool) counts {
	for _, g := range s.hosts {
		s.collect(g)
	}
	t := s.total
	t.sub(h.total)
	return t.of(local)
}

// judgeRow ejects an endpoint if its row of failures is long enough, and the results of the
// others meanwhile show that it is not by chance. The lock is held.
func (s *Set) judgeRow(at time.Duration, h *host, row int, random func() uint64) {
	n := streaks(h.streaks.Load()).of(row)
	if h.ejected || s.inARow[row] == 0 || n < s.inARow[row] {
		return
	}
	others := s.others(h, row == localFailure)
	before := h.before[row]
	others.calls -= before.others.calls
	others.failures = min(others.failures-before.others.failures, others.calls)
	if others.calls <= 0 {
		return
	}
	var calls int64
	for _, g := range s.hosts {
		calls += g.sum.calls + g.sinceSweep.calls
	}
	own := counts{int64(n), int64(n)}.with(h.allLoad() - before.load)
	usual := others.rate()
	// Every call may begin a row.
	if own.rate() >= usual-s.floor || evidence(own, others) < math.Log(falseAlarmEvery*float64(max(1, calls))*float64(len(s.hosts))) {
		return
	}
	s.ejectOrSpare(h, finding{ChangeReason(row), counts{int64(n), int64(n)}, usual, 0}, at, random)
	if h.forgetResults {
		s.forget(h)
	}
}

// judgeRates compares the success rates. The lock is held.
func (s *Set) judgeRates(at time.Duration, local bool, random func() uint64) {
	t, failures := s.table[:0], int64(0)
	for _, h := range s.hosts {
		if o := h.sum.of(local); !h.ejected && o.calls > 0 {
			t = append(t, sample{h, o, o.rate()})
			failures += o.failures
		}
	}
	s.table = t
	if failures == 0 {
		return
	}
	slices.SortStableFunc(t, func(a, b sample) int { return cmp.Compare(a.rate, b.rate) }) // the worst first
	reason := choice.Either(local, LocalSuccessRate, SuccessRate)
	switch e := s.enough(s.minCalls); {
	case s.statistic == NoStatistic, len(e) < s.minHosts:
	case s.statistic == MeanDeviation:
		s.judgeByMean(e, reason, at, random)
	case len(e) > 1:
		s.judgeByMedian(e, reason, at, random)
	}
	if s.failurePercent > 0 {
		if e := s.enough(s.failureMinCalls); len(e) >= s.failureMinHosts {
			s.judgeByPercent(e, reason+FailurePercent-SuccessRate, at, random)
		}
	}
}

// enough returns the samples with at least so many calls.
func (s *Set) enough(calls int64) []sample {
	e := s.judged[:0]
	for _, c := range s.table {
		if c.calls >= calls {
			e = append(e, c)
		}
	}
	s.judged = e
	return e
}

// judgeByMedian compares each endpoint with the median and the median absolute deviation of
// the others, and with chance. e is sorted by rate.
func (s *Set) judgeByMedian(e []sample, reason ChangeReason, at time.Duration, random func() uint64) {
	best, enough := e[len(e)-1].rate, math.Log(falseAlarmEvery*float64(len(e))*float64(len(e)))
	for i, c := range e {
		if c.rate >= best-s.floor {
			return // nor are those that follow so far below any median
		}
		median, mad := without(e, i)
		threshold := median - max(s.factor*normal*mad, s.floor)
		if c.rate >= threshold {
			continue
		}
		var peers counts // all that are not so far below
		for j := len(e) - 1; e[j].rate >= threshold; j-- {
			peers.calls += e[j].calls
			peers.failures += e[j].failures
		}
		own := c.with(s.growth(c.h))
		if own.rate() < threshold && evidence(own, peers) >= enough {
			s.ejectOrSpare(c.h, finding{reason, c.counts, median, threshold}, at, random)
		}
	}
}

// growth returns how many more calls are in flight to h than at the start of the interval
// that is judged. The lock is held.
func (s *Set) growth(h *host) int64 {
	return h.allLoad() - h.began[(s.tick+1)%uint64(len(h.began))]
}

// judgeByMean is Envoy's success rate ejection. It computes in percent, to round as Envoy
// does.
func (s *Set) judgeByMean(e []sample, reason ChangeReason, at time.Duration, random func() uint64) {
	mean, threshold := meanThreshold(e, s.factor)
	for _, c := range e {
		if c.percent() < threshold {
			s.ejectOrSpare(c.h, finding{reason, c.counts, mean / 100, threshold / 100}, at, random)
		}
	}
}

func meanThreshold(e []sample, factor float64) (mean, threshold float64) {
	for _, c := range e {
		mean += c.percent()
	}
	mean /= float64(len(e))
	var variance float64
	for _, c := range e {
		variance += (c.percent() - mean) * (c.percent() - mean)
	}
	return mean, mean - factor*math.Sqrt(variance/float64(len(e)))
}

func (o counts) percent() float64 { return float64(o.calls-o.failures) * 100 / float64(o.calls) }

// judgeByPercent is Envoy's failure percentage ejection.
func (s *Set) judgeByPercent(e []sample, reason ChangeReason, at time.Duration, random func() uint64) {
	for _, c := range e {
		if c.percent() <= float64(100-s.failurePercent) {
			s.ejectOrSpare(c.h, finding{reason, c.counts, 0, float64(100-s.failurePercent) / 100}, at, random)
		}
	}
}

// without returns the median of all rates except the i-th, and their median absolute
// deviation. e is sorted by rate, and has at least two.
func without(e []sample, i int) (median, mad float64) {
	n := len(e) - 1
	at := func(j int) float64 {
		if j >= i {
			j++
		}
		return e[j].rate
	}
	median = (at((n-1)/2) + at(n/2)) / 2
	// The deviations grow from the middle to both sides.
	down, up := (n-1)/2, (n-1)/2+1
	var last, dev float64
	for range n/2 + 1 {
		last = dev
		if up >= n || down >= 0 && median-at(down) <= at(up)-median {
			dev = median - at(down)
			down--
		} else {
			dev = at(up) - median
			up++
		}
	}
	if n%2 == 0 {
		return median, (last + dev) / 2
	}
	return median, dev
}

// evidence returns the natural logarithm of a likelihood ratio (Wilks 1938): the likelihood
// of the results if the endpoint and its peers have different shares of failures, over that
// if they have the same. It is zero without results, and if the endpoint does not do worse.
// If the shares are the same, it exceeds x at most once in e^x times.
func evidence(own, peers counts) float64 {
	if own.rate() >= peers.rate() {
		return 0
	}
	both := counts{own.calls + peers.calls, own.failures + peers.failures}
	return own.likelihood() + peers.likelihood() - both.likelihood()
}

// likelihood returns the log-likelihood of these results, for the share of failures that
// they show.
func (o counts) likelihood() float64 {
	f, n := float64(o.failures), float64(o.calls)
	l := 0.0
	if f > 0 {
		l = f * math.Log(f/n)
	}
	if f < n {
		l += (n - f) * math.Log1p(-f/n)
	}
	return l
}

// mayEject draws whether an outlier is ejected for this reason.
func (s *Set) mayEject(why ChangeReason, random func() uint64) bool {
	percent := s.enforce[why]
	return percent >= 100 || percent > 0 && chance.UpTo(99, random) < percent
}

func (s *Set) spread(random func() uint64) time.Duration {
	if s.jitter == 0 {
		return 0
	}
	return time.Duration(chance.UpTo(uint64(s.jitter), random))
}
