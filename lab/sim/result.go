package sim

import (
	"slices"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lab/sim/internal/latency"
)

// A Result is that of one contender in one run.
type Result struct {
	Contender string
	Seed      uint64
	// Interrupted: the run was stopped at End, before the Horizon.
	Interrupted bool
	// Totals are of what began at WarmupEnd or later.
	WarmupEnd, End time.Duration

	Totals Totals
	// Recovery is how the goodput came back after the last fault; zero if the
	// scenario has none.
	Recovery Recovery
	Latency  Latency // of calls that succeeded, from the first attempt's start
	Series   Series
	// Connections are zero without pools.
	Connections ConnectionTotals
	// Links are zero without messages that wait for a [Link].
	Links  LinkTotals
	Fleets []FleetResult // one for each, in the order of the scenario; nil if it has only one
	Topics []TopicResult // one for each, in the order of the scenario; nil if it has none
}

// Totals count what happened after the warm-up. Calls are counted when they
// begin, and what became of them belongs to them.
type Totals struct {
	Calls     int64
	Succeeded int64
	// InTime calls succeeded within Options.InTime.
	InTime int64 `json:",omitempty"`
	// Degraded calls failed, and the caller had another answer (Fleet.Fallback).
	Degraded int64
	// Refused calls made no attempt.
	Refused int64
	// Unfinished calls had not ended when the run did.
	Unfinished int64
	// Reasons counts the ends of calls by lull.Reason.
	Reasons map[string]int64
	// Attempts of the service that got most of them, and how many were retries.
	Attempts, Retries int64
	// Hedges are attempts that began beside another of the same call. They are
	// retries as well. Lost are attempts that were in flight when their call ended.
	Hedges, Lost int64
	// AttemptsTimedOut ended by the attempt's timeout, AttemptsFailed by an answer.
	AttemptsTimedOut, AttemptsFailed int64
	// Wasted attempts were worked on for a caller that had gone.
	Wasted int64
	// Turned away by services: queue full, rate limit, fault, and dropped because
	// expired.
	QueueFull, RateLimited, Errors, Dropped int64
	// Shed is attempts that admission control refused, at once or after a wait.
	Shed int64
	// Effects is how often operations were carried out, Duplicates how many of
	// those were repetitions of one carried out before.
	Effects, Duplicates int64
	// Reloads are calls that users made because the one before had failed.
	Reloads int64
	// Hits is how often a cache had what was asked for, Misses how often not.
	Hits, Misses int64
	// Collections of garbage on all hosts took Paused together. OutOfMemory is crashes.
	Collections, OutOfMemory int64
	Paused                   time.Duration
	// Disconnects is how many connections of a [Link] were lost.
	Disconnects int64
	// Ejections is how often a process has left out a host.
	Ejections int64
	// Amplification is Attempts / Calls: below 1 where calls were refused.
	Amplification float64
	// PeakRate is the most attempts per second in any Window, PeakAt its end.
	// NormalRate is the mean before the first fault; PeakOverNormal their quotient
	// (zero if there is no normal).
	PeakRate, NormalRate, PeakOverNormal float64
	PeakAt                               time.Duration
	// WorstMinute is the most attempts per call begun over any minute (or over the
	// whole run if that is shorter).
	WorstMinute float64
	// WorstTenSeconds is the same over any ten seconds from the first fault on; without a fault, of the whole run.
	WorstTenSeconds float64
	// Held is what callers held.
	Held Held
	// Oldest is the longest time that a user waited: from the first call to the success, or to the
	// end of the last call that was made instead of it. Who was still there when the run ended
	// has waited until then, to the exactness of a Window. Messages are not counted.
	Oldest time.Duration
	// Last is when the last call ended.
	Last time.Duration
	// MeanCompletion is the mean time from the beginning of a call to its success.
	MeanCompletion time.Duration
	// Events is how many events the simulator worked off.
	Events int64
}

// Recovery is when things were normal again.
type Recovery struct {
	// Measured: the scenario has a fault, or a time in which more arrives than a service can do,
	// with time and calls after it.
	Measured bool
	// Few: so few calls were made after it that there is no verdict.
	Few bool
	// From is the end of the last fault.
	From time.Duration
	// Recovered: from Time after From on, of the calls of any five windows at least 95 % of
	// the share succeeded that did before the first fault, as far as chance allows to say; and
	// so it was to the end of the run.
	Recovered bool
	Time      time.Duration
	// First is when they did for the first time, and Relapses how often they did not afterwards.
	First    time.Duration
	Relapses int
	// Within is how exactly these times are known: five windows, or as long as it takes for
	// twenty calls to be made.
	Within time.Duration
	// Normal is the share of calls that succeeded before the first fault, Final
	// that in the last tenth of the run after the fault.
	Normal, Final float64
}

// Latency of successful calls.
type Latency struct {
	Count                          int64
	Mean, P50, P90, P99, P999, Max time.Duration
}

// Series are figures through time, one for each Step. Rates are per second.
type Series struct {
	Step time.Duration
	// Calls that began, and attempts: the first ones, and retries.
	Calls, First, Retries []float64
	// Goodput is calls that succeeded, by the time at which they did; Good is the
	// share of the calls that began in the step and succeeded in the end.
	Goodput, Good []float64
	// Failed is calls that ended otherwise, refused ones included.
	Failed []float64
	// Wasted is work finished for callers that had gone.
	Wasted []float64
	// Queue is how many attempts waited at the end of the step, Busy how many
	// were being worked on, over all services.
	Queue, Busy []float64
	// Open is how many processes had an open (or half-open) breaker at the end of
	// the step.
	Open []float64
	// Held is how many calls were in progress at the end of the step.
	Held []float64
	// Refused is calls that ended for each reason but success, by reason.
	Refused map[string][]float64
	// P50 and P99 are latencies of calls that succeeded in the step; 0 if none.
	P50, P99 []time.Duration
}

// ConnectionTotals count what happened to connections after the warm-up, over all pools.
type ConnectionTotals struct {
	// Dials that began, and those of them that came to nothing: refused, given up, or without a
	// port.
	Dials, Failed int64
	// NoPort is attempts that failed for want of a local port.
	NoPort int64
	// Waits is attempts that had to wait for a connection, because none was free. Waited is how
	// long all of them waited together, those that got none included.
	Waits  int64
	Waited time.Duration
	// Broken is connections that were closed under an attempt, by its timeout or by the service.
	Broken int64
	// Refused is connections that the service refused, and Dropped those that found no place in
	// the backlog and were not answered.
	Refused, Dropped int64
	// Most is how many connections were open at one host at most.
	Most int
}

// LinkTotals count what happened to the messages of fleets with a [Link], in bytes. What happened
// in the warm-up counts, too.
type LinkTotals struct {
	// Most is how many waited at one host at most.
	Most int64
	// Dropped came while the buffer of their connection was full.
	Dropped int64
	// Lost were in the memory of a host that crashed.
	Lost int64
}

// A FleetResult is what became of the calls of one fleet.
type FleetResult struct {
	Name string
	// Totals are those that belong to a fleet: Calls, Succeeded, Refused, Unfinished, Reasons,
	// Attempts and Retries (those of the fleet itself, of whichever service), Disconnects, Held,
	// and Amplification.
	Totals   Totals
	Recovery Recovery
	Latency  Latency
}

// A TopicResult is the result of one topic. It counts all messages that were sent, also in
// the warm-up.
type TopicResult struct {
	Name string
	// Sent = Handled + Dead + Left.
	Sent, Handled, Dead int64
	// Left is how many were still in the queue, or in the hands of consumers, at the end.
	Left int64
	// Reasons counts dead letters by lull.Reason.
	Reasons map[string]int64
	// Attempts is how often a handler ran, Disturbed how often from the first fault to the
	// end of the last.
	Attempts, Disturbed int64
	// Deferred is how often a message was given back without an attempt, Lapsed how often
	// one came back because its consumer had fallen silent.
	Deferred, Lapsed int64
	// Caught: after CaughtUp from the end of the last fault on, none of the messages that
	// were sent before it was left.
	Caught   bool
	CaughtUp time.Duration
	// Latency is from the sending of a message to the end of its handling.
	Latency Latency
	// Backlog is how many messages there were at the end of each step.
	Backlog []float64
}

// A MessageEnd is the end of a message.
type MessageEnd struct {
	Topic    string
	Number   int64         // in the order in which they were sent, from 1
	Sent, At time.Duration // At is when it was handled or dead
	Attempts int           // the number of the last
	Reason   engine.Reason // of a dead letter; Success: it was handled
}

func (r *recorder) result(end time.Duration) Result {
	busiest := 0
	for i := range r.loads {
		if r.loads[i].counted > r.loads[busiest].counted {
			busiest = i
		}
	}
	l := &r.loads[busiest]
	t := r.totals
	t.Attempts, t.Retries = l.counted, l.countedRetries
	t.ends(&r.reasons)
	t.MeanCompletion = r.latency.Mean()
	t.Held = r.held.result()
	t.Oldest = max(t.Oldest, r.oldestWait(end))
	r.rates(&t, l, end)
	res := Result{WarmupEnd: r.warmupEnd, End: end, Totals: t, Latency: latencyOf(&r.latency), Connections: r.conns, Links: r.links, Series: r.series(l, end)}
	res.Links.Dropped = int64(r.dropped)
	for _, f := range r.fleets {
		res.Fleets = append(res.Fleets, f.result(r, end))
	}
	res.Recovery = r.recovery(end)
	return res
}

// ends fills in what follows from why calls ended.
func (t *Totals) ends(why *[reasons]int64) {
	t.Unfinished = t.Calls
	t.Reasons = map[string]int64{}
	for i, n := range why {
		t.Unfinished -= n
		if n > 0 {
			t.Reasons[lull.Reason(i).String()] = n
		}
	}
	if t.Calls > 0 {
		t.Amplification = float64(t.Attempts) / float64(t.Calls)
	}
}

// oldestWait returns the longest time that a user has waited who is still there at the end: the call has not ended, or the
// user is about to come back.
func (r *recorder) oldestWait(end time.Duration) time.Duration {
	began := end
	for _, at := range r.firstCalls {
		if at >= r.warmupEnd {
			began = min(began, at)
		}
	}
	for i, b := range r.bins {
		if len(r.s.Topics) > 0 {
			break // messages are among them
		}
		if at := time.Duration(i) * r.window; b.ended < b.calls && at >= r.warmupEnd {
			began = min(began, at)
			break
		}
	}
	return end - began
}

func (r *recorder) rates(t *Totals, l *load, end time.Duration) {
	normalTo := min(end, r.disturbedFrom)
	var normal int64
	normalBins := 0
	for i := range r.bins {
		at := time.Duration(i) * r.window
		if at+r.window > end {
			break
		}
		n := l.attempts[i]
		if at >= r.warmupEnd && at+r.window <= normalTo {
			normal += n
			normalBins++
		}
		if rate := float64(n) / r.window.Seconds(); at >= r.warmupEnd && rate > t.PeakRate {
			t.PeakRate, t.PeakAt = rate, at+r.window
		}
	}
	t.WorstMinute = r.mostPerCall(l, time.Minute, 0, end)
	from := r.disturbedFrom
	if r.disturbedTo == 0 {
		from = 0
	}
	t.WorstTenSeconds = r.mostPerCall(l, 10*time.Second, from, end)
	if normalBins > 0 {
		t.NormalRate = float64(normal) / (float64(normalBins) * r.window.Seconds())
	}
	if t.NormalRate > 0 {
		t.PeakOverNormal = t.PeakRate / t.NormalRate
	}
}

// mostPerCall returns the most attempts for each call over any span between the two times, or over all of it if that is
// shorter.
func (r *recorder) mostPerCall(l *load, span, from, to time.Duration) (most float64) {
	first, end := int(from/r.window), min(int(to/r.window), len(r.bins))
	wide := max(int(span/r.window), 1)
	var calls, attempts int64
	for i := first; i < end; i++ {
		calls += r.bins[i].calls
		attempts += l.attempts[i]
		if i >= first+wide {
			calls -= r.bins[i-wide].calls
			attempts -= l.attempts[i-wide]
		}
		if (i >= first+wide-1 || i == end-1) && calls > 0 {
			most = max(most, float64(attempts)/float64(calls))
		}
	}
	return most
}

func latencyOf(h *latency.Histogram) Latency {
	return Latency{
		Count: int64(h.Count()), Mean: h.Mean(), P50: h.Quantile(0.5), P90: h.Quantile(0.9),
		P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max(),
	}
}

func (t *callTally) result(r *recorder, end time.Duration) FleetResult {
	f := FleetResult{Name: t.name, Totals: t.totals, Latency: latencyOf(&t.latency)}
	f.Totals.ends(&t.reasons)
	f.Totals.Held = t.held.result()
	alone := *r // what the fleet's recovery is judged by
	alone.callTally = *t
	f.Recovery = alone.recovery(end)
	return f
}

func (r *recorder) series(l *load, end time.Duration) Series {
	n := min(ceil(end, r.width), len(r.steps))
	if n < len(r.steps) {
		if c := &r.steps[n]; c.calls+c.goodput+c.failed+c.wasted > 0 {
			n++ // a run that was stopped at the end of a step has begun the next
		}
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
		s.Held = append(s.Held, float64(c.held))
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

func (t *topicTally) result(end time.Duration) TopicResult {
	r := t.TopicResult
	r.Backlog = slices.Clone(r.Backlog)
	r.Left = r.Sent - r.Handled - r.Dead
	r.Reasons = map[string]int64{}
	for i, n := range t.reasons {
		if n > 0 {
			r.Reasons[engine.Reason(i).String()] = n
		}
	}
	r.Caught = t.disturbedTo > 0 && end > t.disturbedTo && t.unfinishedBefore == 0
	if !r.Caught {
		r.CaughtUp = 0
	}
	r.Latency = latencyOf(&t.latency)
	return r
}

// SuccessRate is the share of calls that succeeded, of those that ended; 0 if
// none did.
func (t *Totals) SuccessRate() float64 {
	ended := int64(0)
	for _, n := range t.Reasons {
		ended += n
	}
	if ended == 0 {
		return 0
	}
	return float64(t.Succeeded) / float64(ended)
}
