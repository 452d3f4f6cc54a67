package sim

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/sim/internal/latency"
)

// A recorder counts what happens in a run.
type recorder struct {
	s      *Scenario
	width  time.Duration // of a step
	window time.Duration
	warm   time.Duration

	steps []counts // by step
	bins  []bin    // by window
	loads []load   // by service

	inStep, inBin       cursor // now
	beganStep, beganBin cursor // of calls that end

	t       Totals
	fleets  []*fleetTally            // none if there is one fleet
	users   map[uint32]time.Duration // when users who came back called first, by flight
	conns   ConnectionTotals
	links   LinkTotals
	dropped float64 // of links
	reasons [reasons]int64
	all     latency.Histogram

	from, to time.Duration // of the disturbance; to is 0 if there is none
	stop     time.Duration // end the run once things have been normal for so long
}

// counts of one step.
type counts struct {
	calls, goodput, succeeded, failed, wasted int64
	queue, busy, open                         int
	refused                                   *[reasons]int64 // by lull.Reason; nil: none
	latency                                   latency.Histogram
}

// any reports whether anything has happened.
func (c *counts) any() bool { return c.calls+c.goodput+c.failed+c.wasted > 0 }

// bin is what began within one window, and how it ended.
type bin struct{ calls, ended, succeeded int64 }

// load is what one service gets.
type load struct {
	first, retries []int64 // by step
	attempts       []int64 // by window
	all, again     int64   // after the warm-up
}

// reasons is room for every lull.Reason.
const reasons = 32

type rejection uint8

const (
	rejectedFull rejection = iota
	rejectedRateLimited
	rejectedError
	rejectedExpired
	rejectedShed
)

func newRecorder(s *Scenario) *recorder {
	r := &recorder{users: map[uint32]time.Duration{}, s: s, width: s.step(), window: s.window()}
	r.from, r.to = s.disturbance()
	r.warm = min(s.Warmup, r.from)
	r.steps = make([]counts, ceil(s.Horizon, r.width))
	r.bins = make([]bin, ceil(s.Horizon, r.window)+1)
	r.inStep = cursor{width: r.width, n: len(r.steps)}
	r.inBin = cursor{width: r.window, n: len(r.bins)}
	r.beganStep, r.beganBin = r.inStep, r.inBin
	r.loads = make([]load, len(s.Services))
	for i := range r.loads {
		r.loads[i] = load{make([]int64, len(r.steps)), make([]int64, len(r.steps)), make([]int64, len(r.bins)), 0, 0}
	}
	return r
}

func ceil(a, b time.Duration) int { return int((a + b - 1) / b) }

// A cursor is the place in a row of equal spans of time that was asked for last.
// Most questions are about the same again, and need no division.
type cursor struct {
	width    time.Duration
	n        int // spans; the last takes all that comes after
	i        int
	from, to time.Duration // of span i
}

func (c *cursor) at(now time.Duration) int {
	if now < c.from || now >= c.to {
		i := now / c.width
		c.from, c.to = i*c.width, (i+1)*c.width
		c.i = min(int(i), c.n-1)
	}
	return c.i
}

func (r *recorder) step(now time.Duration) *counts { return &r.steps[r.inStep.at(now)] }
func (r *recorder) bin(now time.Duration) *bin     { return &r.bins[r.inBin.at(now)] }

// begin counts a call that begins; those that services make are not counted.
func (r *recorder) begin(now time.Duration, counted bool) {
	if !counted {
		return
	}
	r.step(now).calls++
	r.bin(now).calls++
	if now >= r.warm {
		r.t.Calls++
	}
}

// hedge counts an attempt that begins beside another.
func (r *recorder) hedge(now time.Duration) {
	if now >= r.warm {
		r.t.Hedges++
	}
}

// lost counts an attempt that was in flight when its call ended.
func (r *recorder) lost(now time.Duration) {
	if now >= r.warm {
		r.t.Lost++
	}
}

// attempt counts the nth attempt of a call.
func (r *recorder) attempt(now time.Duration, n int, service uint32) {
	l := &r.loads[service]
	i := r.inStep.at(now)
	if n == 1 {
		l.first[i]++
	} else {
		l.retries[i]++
	}
	l.attempts[r.inBin.at(now)]++
	if now >= r.warm {
		l.all++
		if n > 1 {
			l.again++
		}
	}
}

// end counts the end of a call that began at the given time.
func (r *recorder) end(now, began time.Duration, why lull.Reason, attempts int, counted bool) {
	if !counted {
		return
	}
	s, b := r.step(now), &r.bins[r.beganBin.at(began)]
	b.ended++
	ok := why == engine.Success
	if ok {
		s.goodput++
		r.steps[r.beganStep.at(began)].succeeded++
		b.succeeded++
		s.latency.Record(now - began)
	} else {
		s.failed++
		if s.refused == nil {
			s.refused = new([reasons]int64)
		}
		s.refused[why]++
	}
	r.t.Last = max(r.t.Last, now)
	if began < r.warm {
		return
	}
	r.reasons[why]++
	if ok {
		r.t.Succeeded++
		r.all.Record(now - began)
	}
	if attempts == 0 {
		r.t.Refused++
	}
}

func (r *recorder) afterWarmup(now time.Duration) int64 {
	if now >= r.warm {
		return 1
	}
	return 0
}

func (r *recorder) timedOut(now time.Duration) { r.t.AttemptsTimedOut += r.afterWarmup(now) }
func (r *recorder) refusal(now time.Duration)  { r.t.AttemptsFailed += r.afterWarmup(now) }
func (r *recorder) reload(now time.Duration)   { r.t.Reloads += r.afterWarmup(now) }

func (r *recorder) wasted(now time.Duration) {
	r.step(now).wasted++
	r.t.Wasted += r.afterWarmup(now)
}

func (r *recorder) effect(now time.Duration, again bool) {
	r.t.Effects += r.afterWarmup(now)
	if again {
		r.t.Duplicates += r.afterWarmup(now)
	}
}

func (r *recorder) rejected(now time.Duration, why rejection) {
	n := r.afterWarmup(now)
	switch why {
	case rejectedFull:
		r.t.QueueFull += n
	case rejectedRateLimited:
		r.t.RateLimited += n
	case rejectedError:
		r.t.Errors += n
	case rejectedExpired:
		r.t.Dropped += n
	case rejectedShed:
		r.t.Shed += n
	}
}

func (r *recorder) dial(now time.Duration)       { r.conns.Dials += r.afterWarmup(now) }
func (r *recorder) dialFailed(now time.Duration) { r.conns.Failed += r.afterWarmup(now) }
func (r *recorder) noPort(now time.Duration)     { r.conns.NoPort += r.afterWarmup(now) }
func (r *recorder) connWait(now time.Duration)   { r.conns.Waits += r.afterWarmup(now) }
func (r *recorder) broken(now time.Duration)     { r.conns.Broken += r.afterWarmup(now) }

func (r *recorder) waited(now, d time.Duration) {
	r.conns.Waited += d * time.Duration(r.afterWarmup(now))
}

func (r *recorder) outOfMemory(now time.Duration) { r.t.OutOfMemory += r.afterWarmup(now) }
func (r *recorder) ejection(now time.Duration)    { r.t.Ejections += r.afterWarmup(now) }

func (r *recorder) collected(now, pause time.Duration) {
	r.t.Collections += r.afterWarmup(now)
	r.t.Paused += pause * time.Duration(r.afterWarmup(now))
}

func (r *recorder) looked(now time.Duration, hit bool) {
	if hit {
		r.t.Hits += r.afterWarmup(now)
	} else {
		r.t.Misses += r.afterWarmup(now)
	}
}

func (r *recorder) connRefused(now time.Duration) { r.conns.Refused += r.afterWarmup(now) }
func (r *recorder) connDropped(now time.Duration) { r.conns.Dropped += r.afterWarmup(now) }
func (r *recorder) connOpen(n int)                { r.conns.Most = max(r.conns.Most, n) }

// tick ends a step.
func (r *recorder) tick(now time.Duration, queue, busy, open int) {
	s := &r.steps[min(int((now-1)/r.width), len(r.steps)-1)]
	s.queue, s.busy, s.open = queue, busy, open
}

// more reports whether the run has more to show.
func (r *recorder) more(now time.Duration) bool {
	if r.stop <= 0 || r.to == 0 || now < saturating.Add(r.to, r.stop) {
		return true
	}
	c := r.course(r.standard(), now)
	return !c.ok || now < saturating.Add(r.since(c.settled), r.stop)
}

// result is everything, of a run that ended at the given time.
func (r *recorder) result(end time.Duration) Result {
	busiest := 0
	for i := range r.loads {
		if r.loads[i].all > r.loads[busiest].all {
			busiest = i
		}
	}
	l := &r.loads[busiest]
	t := r.t
	t.Attempts, t.Retries = l.all, l.again
	t.ends(&r.reasons)
	t.MeanCompletion = r.all.Mean()
	t.Oldest = max(t.Oldest, r.waiting(end))
	r.rates(&t, l, end)
	res := Result{End: end, Totals: t, Recovery: r.recovery(end), Latency: latencyOf(&r.all), Connections: r.conns, Links: r.links}
	res.Links.Dropped = int64(r.dropped)
	for _, f := range r.fleets {
		res.Fleets = append(res.Fleets, f.result(r, end))
	}
	res.Series = r.series(l, end)
	return res
}

func latencyOf(h *latency.Histogram) Latency {
	return Latency{
		Count: int64(h.Count()), Mean: h.Mean(), P50: h.Quantile(0.5), P90: h.Quantile(0.9),
		P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max(),
	}
}

// rates finds the peak, the normal rate and the worst minute.
func (r *recorder) rates(t *Totals, l *load, end time.Duration) {
	normalTo := min(end, r.from)
	var normal int64
	normalBins := 0
	var calls, attempts int64
	minute := max(int(time.Minute/r.window), 1)
	for i := range r.bins {
		at := time.Duration(i) * r.window
		if at+r.window > end {
			break
		}
		n := l.attempts[i]
		if at >= r.warm && at+r.window <= normalTo {
			normal += n
			normalBins++
		}
		if rate := float64(n) / r.window.Seconds(); at >= r.warm && rate > t.PeakRate {
			t.PeakRate, t.PeakAt = rate, at+r.window
		}
		calls += r.bins[i].calls
		attempts += n
		if i >= minute {
			calls -= r.bins[i-minute].calls
			attempts -= l.attempts[i-minute]
		}
		if (i >= minute-1 || at+2*r.window > end) && calls > 0 {
			t.WorstMinute = max(t.WorstMinute, float64(attempts)/float64(calls))
		}
	}
	if normalBins > 0 {
		t.NormalRate = float64(normal) / (float64(normalBins) * r.window.Seconds())
	}
	if t.NormalRate > 0 {
		t.PeakOverNormal = t.PeakRate / t.NormalRate
	}
}

func (r *recorder) series(l *load, end time.Duration) Series {
	n := min(ceil(end, r.width), len(r.steps))
	if n < len(r.steps) && r.steps[n].any() {
		n++ // a run that was stopped at the end of a step has begun the next
	}
	s := Series{Step: r.width, Refused: map[string][]float64{}}
	per := r.width.Seconds()
	for i := range n {
		c := &r.steps[i]
		s.Calls = append(s.Calls, float64(c.calls)/per)
		s.First = append(s.First, float64(l.first[i])/per)
		s.Retries = append(s.Retries, float64(l.retries[i])/per)
		s.Goodput = append(s.Goodput, float64(c.goodput)/per)
		share := 0.0
		if c.calls > 0 {
			share = float64(c.succeeded) / float64(c.calls)
		}
		s.Good = append(s.Good, share)
		s.Failed = append(s.Failed, float64(c.failed)/per)
		s.Wasted = append(s.Wasted, float64(c.wasted)/per)
		s.Queue = append(s.Queue, float64(c.queue))
		s.Busy = append(s.Busy, float64(c.busy))
		s.Open = append(s.Open, float64(c.open))
		s.P50 = append(s.P50, c.latency.Quantile(0.5))
		s.P99 = append(s.P99, c.latency.Quantile(0.99))
		if c.refused == nil {
			continue
		}
		for why, k := range c.refused {
			if k == 0 {
				continue
			}
			name := lull.Reason(why).String()
			if s.Refused[name] == nil {
				s.Refused[name] = make([]float64, n)
			}
			s.Refused[name][i] = float64(k) / per
		}
	}
	return s
}
