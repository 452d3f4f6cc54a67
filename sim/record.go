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

	totals  Totals
	fleets  []*fleetTally            // none if there is one fleet
	users   map[uint32]time.Duration // when users who came back called first, by flight
	conns   ConnectionTotals
	links   LinkTotals
	dropped float64 // of links
	reasons [reasons]int64
	latency latency.Histogram

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

// tallyOf returns a fleetTally for a fleet, if there are several: a single one has the totals.
func (r *recorder) tallyOf(f *Fleet) *fleetTally {
	if len(r.s.Fleets) < 2 {
		return nil
	}
	t := &fleetTally{name: f.Name, bins: make([]bin, len(r.bins))}
	r.fleets = append(r.fleets, t)
	return t
}

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

func (r *recorder) bin(now time.Duration) *bin { return &r.bins[r.inBin.at(now)] }

func (r *recorder) afterWarmup(now time.Duration) int64 {
	if now >= r.warm {
		return 1
	}
	return 0
}

// callBegins counts a call of o that begins.
func (w *world) callBegins(o *origin) {
	w.rec.begin(w.now, o.fleet != nil)
	if o.tally != nil {
		o.tally.begin(w.rec, w.now)
	}
}

// begin counts a call that begins; those that services make are not counted.
func (r *recorder) begin(now time.Duration, counted bool) {
	if !counted {
		return
	}
	r.step(now).calls++
	r.bin(now).calls++
	if now >= r.warm {
		r.totals.Calls++
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

// hedge counts an attempt that begins beside another.
func (r *recorder) hedge(now time.Duration) {
	if now >= r.warm {
		r.totals.Hedges++
	}
}

// lost counts an attempt that was in flight when its call ended.
func (r *recorder) lost(now time.Duration) {
	if now >= r.warm {
		r.totals.Lost++
	}
}

// callEnds counts the end of a call of o.
func (w *world) callEnds(o *origin, began time.Duration, why lull.Reason, attempts int) {
	w.rec.end(w.now, began, why, attempts, o.fleet != nil)
	if o.tally != nil {
		o.tally.end(w.rec, w.now, began, why, attempts)
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
	r.totals.Last = max(r.totals.Last, now)
	if began < r.warm {
		return
	}
	r.reasons[why]++
	if ok {
		r.totals.Succeeded++
		r.latency.Record(now - began)
	}
	if attempts == 0 {
		r.totals.Refused++
	}
}

// userLeft records that a user who began to call at the given time has what they wanted, or has given up.
func (r *recorder) userLeft(now, began time.Duration) {
	if began >= r.warm {
		r.totals.Oldest = max(r.totals.Oldest, now-began)
	}
}

func (r *recorder) timedOut(now time.Duration) { r.totals.AttemptsTimedOut += r.afterWarmup(now) }

func (r *recorder) refusal(now time.Duration) { r.totals.AttemptsFailed += r.afterWarmup(now) }

func (r *recorder) reload(now time.Duration) { r.totals.Reloads += r.afterWarmup(now) }

func (r *recorder) wasted(now time.Duration) {
	r.step(now).wasted++
	r.totals.Wasted += r.afterWarmup(now)
}

func (r *recorder) effect(now time.Duration, again bool) {
	r.totals.Effects += r.afterWarmup(now)
	if again {
		r.totals.Duplicates += r.afterWarmup(now)
	}
}

func (r *recorder) rejected(now time.Duration, why rejection) {
	n := r.afterWarmup(now)
	switch why {
	case rejectedFull:
		r.totals.QueueFull += n
	case rejectedRateLimited:
		r.totals.RateLimited += n
	case rejectedError:
		r.totals.Errors += n
	case rejectedExpired:
		r.totals.Dropped += n
	case rejectedShed:
		r.totals.Shed += n
	}
}

func (r *recorder) dial(now time.Duration) { r.conns.Dials += r.afterWarmup(now) }

func (r *recorder) dialFailed(now time.Duration) { r.conns.Failed += r.afterWarmup(now) }

func (r *recorder) noPort(now time.Duration) { r.conns.NoPort += r.afterWarmup(now) }

func (r *recorder) connWait(now time.Duration) { r.conns.Waits += r.afterWarmup(now) }

func (r *recorder) broken(now time.Duration) { r.conns.Broken += r.afterWarmup(now) }

func (r *recorder) waited(now, d time.Duration) {
	r.conns.Waited += d * time.Duration(r.afterWarmup(now))
}

func (r *recorder) outOfMemory(now time.Duration) { r.totals.OutOfMemory += r.afterWarmup(now) }

func (r *recorder) ejection(now time.Duration) { r.totals.Ejections += r.afterWarmup(now) }

func (r *recorder) collected(now, pause time.Duration) {
	r.totals.Collections += r.afterWarmup(now)
	r.totals.Paused += pause * time.Duration(r.afterWarmup(now))
}

func (r *recorder) looked(now time.Duration, hit bool) {
	if hit {
		r.totals.Hits += r.afterWarmup(now)
	} else {
		r.totals.Misses += r.afterWarmup(now)
	}
}

func (r *recorder) connRefused(now time.Duration) { r.conns.Refused += r.afterWarmup(now) }

func (r *recorder) connDropped(now time.Duration) { r.conns.Dropped += r.afterWarmup(now) }

func (r *recorder) connOpen(n int) { r.conns.Most = max(r.conns.Most, n) }

// endStep ends a step.
func (r *recorder) endStep(now time.Duration, queue, busy, open int) {
	s := &r.steps[min(int((now-1)/r.width), len(r.steps)-1)]
	s.queue, s.busy, s.open = queue, busy, open
}

// moreToSee reports whether the run has more to show.
func (r *recorder) moreToSee(now time.Duration) bool {
	if r.stop <= 0 || r.to == 0 || now < saturating.Add(r.to, r.stop) {
		return true
	}
	c := r.course(r.standard(), now)
	return !c.ok || now < saturating.Add(r.since(c.settled), r.stop)
}

// A fleetTally counts the calls of one fleet.
type fleetTally struct {
	name    string
	totals  Totals
	reasons [reasons]int64
	bins    []bin
	latency latency.Histogram
}

func (t *fleetTally) begin(r *recorder, now time.Duration) {
	t.bins[r.inBin.at(now)].calls++
	t.totals.Calls += r.afterWarmup(now)
}

func (t *fleetTally) attempt(r *recorder, now time.Duration, n int) {
	t.totals.Attempts += r.afterWarmup(now)
	if n > 1 {
		t.totals.Retries += r.afterWarmup(now)
	}
}

func (t *fleetTally) end(r *recorder, now, began time.Duration, why lull.Reason, attempts int) {
	b := &t.bins[r.beganBin.at(began)]
	b.ended++
	if why == engine.Success {
		b.succeeded++
	}
	if began < r.warm {
		return
	}
	t.reasons[why]++
	if why == engine.Success {
		t.totals.Succeeded++
		t.latency.Record(now - began)
	}
	if attempts == 0 {
		t.totals.Refused++
	}
}

// tally counts what happens to the messages of a topic.
type tally struct {
	TopicResult
	from, to time.Duration // of the disturbance
	before   int64         // messages that were sent before its end, and are not gone
	reasons  [reasons]int64
	latency  latency.Histogram
}

func (t *tally) sent(now time.Duration) {
	t.Sent++
	if now < t.to {
		t.before++
	}
}

func (t *tally) ran(now time.Duration) {
	t.Attempts++
	if now >= t.from && now < t.to {
		t.Disturbed++
	}
}

func (t *tally) ended(now time.Duration, m *message, why engine.Reason) {
	if why == engine.Success {
		t.Handled++
		t.latency.Record(now - m.sent)
	} else {
		t.Dead++
		t.reasons[why]++
	}
	if m.sent < t.to {
		if t.before--; t.before == 0 {
			t.CaughtUp = max(now-t.to, 0)
		}
	}
}

func (t *tally) tick() { t.Backlog = append(t.Backlog, float64(t.Sent-t.Handled-t.Dead)) }
