package sim

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
	"github.com/lullgo/lull/lab/sim/internal/latency"
)

// A recorder counts what happens in a run.
type recorder struct {
	s         *Scenario
	width     time.Duration // of a step
	window    time.Duration
	warmupEnd time.Duration

	steps []counts // by step
	loads []load   // by service

	inStep, inBin       cursor // now
	beganStep, beganBin cursor // of calls that end

	callTally                           // of all fleets and topics
	fleets     []*callTally             // none if there is one fleet
	firstCalls map[uint32]time.Duration // when users who came back called first, by flight
	conns      ConnectionTotals
	links      LinkTotals
	dropped    float64 // of links
	degradable uint64  // calls that have failed, and might have had another answer

	disturbedFrom, disturbedTo time.Duration // of the disturbance; to is 0 if there is none
	stopAfter                  time.Duration // end the run once things have been normal for so long
	inTime                     time.Duration // Options.InTime
}

type counts struct {
	calls, goodput, succeeded, failed, wasted int64
	queue, busy, open, held                   int
	refused                                   *[reasons]int64 // by lull.Reason; nil: none
	latency                                   latency.Histogram
}

// bin is what began within one window, and how it ended.
type bin struct{ calls, ended, succeeded int64 }

// load is what one service gets.
type load struct {
	first, retries          []int64 // by step
	attempts                []int64 // by window
	counted, countedRetries int64   // after the warm-up
}

// reasons is room for every lull.Reason.
const reasons = 32

// A callTally counts the calls of one fleet, or all calls.
type callTally struct {
	name    string // of the fleet
	totals  Totals
	reasons [reasons]int64
	bins    []bin // by window
	latency latency.Histogram
	held    heldTally
}

func newRecorder(s *Scenario) *recorder {
	r := &recorder{firstCalls: map[uint32]time.Duration{}, s: s, width: s.step(), window: s.window()}
	r.disturbedFrom, r.disturbedTo = s.Disturbance()
	r.warmupEnd = min(s.Warmup, r.disturbedFrom)
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

// tallyOf returns the tally of a fleet, if there are several. One that is alone needs none beside that of all calls.
func (r *recorder) tallyOf(f *Fleet) *callTally {
	if len(r.s.Fleets) < 2 {
		return nil
	}
	t := &callTally{name: f.Name, bins: make([]bin, len(r.bins))}
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

// count adds one to n after the warm-up.
func (r *recorder) count(now time.Duration, n *int64) {
	if now >= r.warmupEnd {
		*n++
	}
}

// addTime adds d to sum after the warm-up.
func (r *recorder) addTime(now time.Duration, sum *time.Duration, d time.Duration) {
	if now >= r.warmupEnd {
		*sum += d
	}
}

// callBegins counts a call of o that begins.
func (r *recorder) callBegins(now time.Duration, o *origin) {
	r.begins(now, o.tally)
	r.held.begin(r, now)
	if o.tally != nil {
		o.tally.held.begin(r, now)
	}
}

// begins counts a call or a message. The tally of its fleet is nil where it has none.
func (r *recorder) begins(now time.Duration, fleet *callTally) {
	r.step(now).calls++
	r.callTally.begin(r, now)
	if fleet != nil {
		fleet.begin(r, now)
	}
}

func (t *callTally) begin(r *recorder, now time.Duration) {
	t.bins[r.inBin.at(now)].calls++
	r.count(now, &t.totals.Calls)
}

func (r *recorder) attempt(now time.Duration, n int, service uint32, fleet *callTally) {
	l := &r.loads[service]
	i := r.inStep.at(now)
	if n == 1 {
		l.first[i]++
	} else {
		l.retries[i]++
	}
	l.attempts[r.inBin.at(now)]++
	if now < r.warmupEnd {
		return
	}
	l.counted++
	if n > 1 {
		l.countedRetries++
	}
	if fleet != nil {
		fleet.totals.Attempts++
		if n > 1 {
			fleet.totals.Retries++
		}
	}
}

// wasted counts work that was done for a caller that had gone.
func (r *recorder) wasted(now time.Duration) {
	r.step(now).wasted++
	r.count(now, &r.totals.Wasted)
}

// callEnds counts the end of a call of o that began at the given time. It reports whether it failed, and the caller had
// another answer (Fleet.Fallback).
func (r *recorder) callEnds(now, began time.Duration, why lull.Reason, attempts int, o *origin) (degraded bool) {
	if o.fleet.Fallback > 0 && (engine.Result{Reason: why}).Degrades() {
		r.degradable++
		degraded = draw.Unit(draw.Mix(uint64(o.index), r.degradable)) < o.fleet.Fallback
	}
	if degraded && began >= r.warmupEnd {
		r.totals.Degraded++
		if o.tally != nil {
			o.tally.totals.Degraded++
		}
	}
	r.ends(now, began, why, attempts, o.tally)
	r.held.end(r, now, began)
	if o.tally != nil {
		o.tally.held.end(r, now, began)
	}
	return degraded
}

// ends counts the end of a call or a message.
func (r *recorder) ends(now, began time.Duration, why lull.Reason, attempts int, fleet *callTally) {
	s := r.step(now)
	if why == engine.Success {
		s.goodput++
		r.steps[r.beganStep.at(began)].succeeded++
		s.latency.Record(now - began)
	} else {
		s.failed++
		if s.refused == nil {
			s.refused = new([reasons]int64)
		}
		s.refused[why]++
	}
	r.totals.Last = max(r.totals.Last, now)
	r.callTally.end(r, now, began, why, attempts)
	if fleet != nil {
		fleet.end(r, now, began, why, attempts)
	}
}

func (t *callTally) end(r *recorder, now, began time.Duration, why lull.Reason, attempts int) {
	b := &t.bins[r.beganBin.at(began)]
	b.ended++
	inTime := why == engine.Success && (r.inTime == 0 || now-began <= r.inTime)
	if inTime {
		b.succeeded++
	}
	if began < r.warmupEnd {
		return
	}
	t.reasons[why]++
	if why == engine.Success {
		t.totals.Succeeded++
		t.latency.Record(now - began)
		if r.inTime > 0 && inTime {
			t.totals.InTime++
		}
	}
	if attempts == 0 {
		t.totals.Refused++
	}
}

// userLeft records that a user who began to call at the given time has what they wanted, or has given up.
func (r *recorder) userLeft(now, began time.Duration) {
	if began >= r.warmupEnd {
		r.totals.Oldest = max(r.totals.Oldest, now-began)
	}
}

func (r *recorder) endStep(now time.Duration, queue, busy, open int) {
	s := &r.steps[min(int((now-1)/r.width), len(r.steps)-1)]
	s.queue, s.busy, s.open, s.held = queue, busy, open, int(r.held.now)
}

func (r *recorder) moreToSee(now time.Duration) bool {
	if r.stopAfter <= 0 || r.disturbedTo == 0 || now < saturating.Add(r.disturbedTo, r.stopAfter) {
		return true
	}
	c := r.course(r.standard(), now)
	return !c.ok || now < saturating.Add(r.since(c.settled), r.stopAfter)
}

// topicTally counts what happens to the messages of a topic.
type topicTally struct {
	TopicResult
	disturbedFrom, disturbedTo time.Duration // of the disturbance
	unfinishedBefore           int64         // messages that were sent before its end, and are not gone
	reasons                    [reasons]int64
	latency                    latency.Histogram
}

func (t *topicTally) sent(now time.Duration) {
	t.Sent++
	if now < t.disturbedTo {
		t.unfinishedBefore++
	}
}

func (t *topicTally) ran(now time.Duration) {
	t.Attempts++
	if now >= t.disturbedFrom && now < t.disturbedTo {
		t.Disturbed++
	}
}

func (t *topicTally) ended(now time.Duration, m *message, why engine.Reason) {
	if why == engine.Success {
		t.Handled++
		t.latency.Record(now - m.sent)
	} else {
		t.Dead++
		t.reasons[why]++
	}
	if m.sent < t.disturbedTo {
		if t.unfinishedBefore--; t.unfinishedBefore == 0 {
			t.CaughtUp = max(now-t.disturbedTo, 0)
		}
	}
}
