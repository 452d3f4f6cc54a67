package throttle

import (
	"sync/atomic"
	"time"
)

// A Throttle decides for one client of one backend whether an attempt may be sent.
// Make one with New, or with a Plan; a nil Throttle and a zero one are off. Its
// methods may be called concurrently. It must not be copied after its first use.
type Throttle struct {
	rules *rules // shared by all throttles of a plan; nil: off
	// What one of the modes remembers, made at its first use.
	shares atomic.Pointer[shares]
	rate   atomic.Pointer[rate]
}

// Ask asks whether an attempt may be sent, a first one or a retry. If ok, it is to
// be sent after the wait, without asking again, and to be reported with Learn,
// once, however it ends, or as Unsent if it is not sent after all. If not ok, it
// is refused: there is nothing to report, and a request that is refused has been
// counted.
//
// Under Adaptive the wait is zero. One number is drawn from random (64 uniform
// bits), only when the attempt might be refused; nil stands for the middle.
//
// Under Cubic the wait is for a place that is now taken, in the order in which
// callers ask. With a refusal, which takes nothing, the wait is the one that was
// too long. Nothing is drawn.
func (t *Throttle) Start(now time.Duration, random func() uint64) (wait time.Duration, ok bool) {
	if t == nil || t.rules == nil {
		return 0, true
	}
	if t.rules.mode == Adaptive {
		s := t.shares.Load()
		return 0, s == nil || s.start(t.rules, now, random)
	}
	r := t.rate.Load()
	if r == nil {
		r = t.begin(now)
	}
	return r.start(t.rules, now)
}

// Learn reports how an attempt ended that Ask had let pass.
func (t *Throttle) Done(now time.Duration, o Evidence) {
	if t == nil || t.rules == nil {
		return
	}
	if t.rules.mode == Adaptive {
		if o <= Unanswered {
			t.counters().count(t.rules, now, o == Accepted)
		}
		return
	}
	r := t.rate.Load()
	if r == nil {
		r = t.begin(now)
	}
	r.done(t.rules, now, o)
}

// learned returns the counters of an Adaptive throttle.
func (t *Throttle) counters() *shares {
	if s := t.shares.Load(); s != nil {
		return s
	}
	t.shares.CompareAndSwap(nil, newShares())
	return t.shares.Load()
}

// begin is the first use of a Cubic throttle, from which its curve is measured.
func (t *Throttle) begin(now time.Duration) *rate {
	t.rate.CompareAndSwap(nil, newRate(now))
	return t.rate.Load()
}

// Snapshot is a throttle's knowledge at a moment, for metrics and logs.
type Snapshot struct {
	// Requests and Accepts, under Adaptive, are those in the window. Calls in flight
	// are neither.
	Requests, Accepts int64
	// Refusal, under Adaptive, is the probability that the next Ask is refused, below
	// one; a probe that is due is not considered.
	Refusal float64

	// Limiting, under Cubic, reports whether attempts are held to a rate, which they
	// are not before the first rate-limited answer.
	Limiting bool
	// Rate is that rate, in attempts per second, and zero while not Limiting.
	Rate float64
	// Sent, under Cubic, is the measured rate of attempts that ended, per second.
	Sent float64
}

// State is the state at now. Reading it changes nothing.
func (t *Throttle) State(now time.Duration) Snapshot {
	if t == nil || t.rules == nil {
		return Snapshot{}
	}
	if s := t.shares.Load(); s != nil {
		return s.state(t.rules, now)
	}
	if r := t.rate.Load(); r != nil {
		return r.state(t.rules, now)
	}
	return Snapshot{}
}
