package sim

import (
	"time"

	"github.com/lullgo/lull/lab/sim/internal/latency"
)

// Held is what callers hold while their calls run or wait: a goroutine or a thread, a socket, memory, and somebody's
// patience. It is of the calls of fleets that began after the warm-up and have ended, and not of messages.
type Held struct {
	// Seconds is the sum of how long the calls took. In call-seconds a second it is the mean number of calls in
	// progress (Little's law): see [Result.HeldRate].
	Seconds float64
	// Attempts is the part of Seconds in which an attempt was in flight. The rest are waits: for a retry, for
	// room, and to see whether others are answered.
	Attempts float64
	// Disturbed is the part of Seconds of calls that began from the beginning of the first fault to the end of the
	// last.
	Disturbed float64
	// P50, P99 and Max are of the calls, whether they succeeded or not.
	P50, P99, Max time.Duration
	// Most is the greatest number of calls in progress at once, at MostAt.
	Most   int64
	MostAt time.Duration
}

// Waits is the part of Seconds in which no attempt was in flight.
func (h Held) Waits() float64 { return max(h.Seconds-h.Attempts, 0) }

// HeldRate is Totals.Held.Seconds for each second after the warm-up: the mean number of calls in progress.
func (r *Result) HeldRate() float64 {
	if r.End <= r.WarmupEnd {
		return 0
	}
	return r.Totals.Held.Seconds / (r.End - r.WarmupEnd).Seconds()
}

// heldTally counts what callers hold.
type heldTally struct {
	now, most                    int64 // calls in progress
	mostAt                       time.Duration
	seconds, attempts, disturbed float64
	times                        latency.Histogram
}

func (t *heldTally) begin(r *recorder, now time.Duration) {
	if t.now++; t.now > t.most && now >= r.warmupEnd {
		t.most, t.mostAt = t.now, now
	}
}

func (t *heldTally) end(r *recorder, now, began time.Duration) {
	t.now--
	if began < r.warmupEnd {
		return
	}
	t.times.Record(now - began)
	t.seconds += (now - began).Seconds()
	if began >= r.disturbedFrom && began < r.disturbedTo {
		t.disturbed += (now - began).Seconds()
	}
}

func (t *heldTally) result() Held {
	return Held{
		Seconds: t.seconds, Attempts: t.attempts, Disturbed: t.disturbed, Most: t.most, MostAt: t.mostAt,
		P50: t.times.Quantile(0.5), P99: t.times.Quantile(0.99), Max: t.times.Max(),
	}
}

// attemptHeld counts the time in which an attempt, or several beside one another, of a call of o were in flight.
func (r *recorder) attemptHeld(o *origin, called, began, ended time.Duration) {
	if o.fleet == nil || called < r.warmupEnd {
		return
	}
	r.held.attempts += (ended - began).Seconds()
	if o.tally != nil {
		o.tally.held.attempts += (ended - began).Seconds()
	}
}
