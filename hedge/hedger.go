package hedge

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// A Hedger decides for the calls to one dependency when a second attempt may run beside the
// first. Make one with New or with a Plan; nil and the zero Hedger are off. Its methods may
// be called concurrently. It must not be copied.
type Hedger struct {
	*rules // shared by all of a plan; nil when hedging is off

	// learned is made when calls come often enough to learn from, recent at the first late
	// call.
	learned     atomic.Pointer[latencies]
	recent      atomic.Pointer[recent]
	gate        atomic.Uint64 // counts successes until then; see often
	inFlightNow atomic.Int64  // hedges in flight
}

// Start records that the first attempt of a call starts at now. Flight.Delay then returns
// when another may be sent beside it. Start only calls that are safe to carry out twice.
func (h *Hedger) Start(now time.Duration) Flight {
	if h == nil || h.rules == nil {
		return Flight{}
	}
	return h.start(now)
}

func (h *Hedger) start(now time.Duration) Flight {
	if r := h.recent.Load(); r != nil {
		r.started(now, h.earns)
	}
	d, why := h.delay, Granted
	if h.learns {
		if d = h.learnedDelay(now); d == 0 {
			why = Unlearned
		}
	}
	return Flight{start: now, delay: d, allowed: allowance{left: h.hedges, why: why, learn: h.learns}}
}

// Fire asks whether another attempt of the call may be sent at now, because none has
// succeeded for Flight.Delay. If the result is Granted, call Release once when the attempt
// has ended, also after a panic. Any other result stays the same for this call.
func (h *Hedger) Fire(now time.Duration, f *Flight) FireResult {
	switch {
	case h == nil || h.rules == nil:
		return Off
	case f.allowed.why != Granted:
		return f.allowed.why
	case !h.isTail(now):
		f.allowed.why = TooManyLate
	case !h.acquire():
		f.allowed.why = TooManyInFlight
	default:
		if f.allowed.left--; f.allowed.left == 0 {
			f.allowed.why = AttemptsInUse
		}
		return Granted
	}
	return f.allowed.why
}

// acquire counts one more hedge in flight, if that is allowed.
func (h *Hedger) acquire() bool {
	for {
		n := h.inFlightNow.Load()
		if n >= h.inFlight {
			return false
		}
		if h.inFlightNow.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release records that a granted hedge has ended. If none is in flight it does nothing.
func (h *Hedger) Release() {
	if h == nil {
		return
	}
	for {
		n := h.inFlightNow.Load()
		if n == 0 || h.inFlightNow.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// Done records that the first attempt of the call ended at now. succeeded is true if it ran
// to its own end and that was a success, even if a hedge was quicker. It is false if the
// attempt failed, timed out, or was cancelled; then a success would have taken longer.
// Nothing is learned from hedges.
//
// Only the first Done of a Flight counts. If slow calls have no Done, others are hedged too
// soon.
func (h *Hedger) Done(now time.Duration, f *Flight, succeeded bool) {
	if f.allowed.learn && h != nil && h.rules != nil {
		h.done(now, f, succeeded)
	}
}

func (h *Hedger) done(now time.Duration, f *Flight, succeeded bool) {
	f.allowed.learn = false
	if l := h.learned.Load(); l != nil {
		l.add(now, saturating.Since(f.start, now), succeeded, h.slot)
	} else if succeeded && h.succeedOften(now) {
		h.learned.CompareAndSwap(nil, newLatencies(now, h.slot))
	}
}

// Delay returns what Flight.Delay would return for a call that starts at now.
func (h *Hedger) Delay(now time.Duration) (time.Duration, bool) {
	switch {
	case h == nil || h.rules == nil:
		return 0, false
	case h.learns:
		d := h.learnedDelay(now)
		return d, d > 0
	}
	return h.delay, true
}

// InFlight returns how many granted hedges were not released.
func (h *Hedger) InFlight() int {
	if h == nil {
		return 0
	}
	return int(h.inFlightNow.Load())
}
