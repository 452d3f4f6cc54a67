package throttle

import (
	"sync/atomic"
	"time"
)

// A Throttle decides for one client of one backend whether an attempt may be sent. Make one
// with New or with a Plan; nil and the zero Throttle are off. Its methods may be called
// concurrently. It must not be copied after its first use.
type Throttle struct {
	rules *rules // shared by all throttles of a plan; nil: off
	// The state of one of the modes, made at its first use.
	shares atomic.Pointer[shares]
	rate   atomic.Pointer[rate]
}

// Start reports whether an attempt may be sent, be it a first one or a retry. If ok, send
// it after the wait, and report it once with Done; if it is not sent after all, as Unsent.
// If not ok, there is nothing to report.
//
// Under Adaptive the wait is zero. One number is drawn from random (64 uniform bits), only
// if the attempt might be refused; nil stands for the middle. Under Cubic nothing is drawn,
// and attempts wait in the order in which they ask. If one is refused, wait is the wait
// that was too long.
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

// Done records how an attempt ended that Start had let pass.
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

// Snapshot is the state of a throttle, for metrics and logs.
type Snapshot struct {
	// Requests and Accepts, under Adaptive, are those in the window, without calls in
	// flight.
	Requests, Accepts int64
	// Refusal, under Adaptive, is the probability that the next attempt is refused, if no
	// probe is due.
	Refusal float64

	// Limiting, under Cubic, reports whether attempts are held to a rate.
	Limiting bool
	// Rate is that rate, in attempts per second; zero if not Limiting.
	Rate float64
	// Wait, under Cubic, is how long an attempt would wait that starts now.
	Wait time.Duration
	// Sent, under Cubic, is the measured rate of attempts that ended, per second.
	Sent float64
}

// State returns the state at now, and changes nothing.
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
