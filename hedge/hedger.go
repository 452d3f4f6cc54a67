package hedge

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// A Hedger decides for the calls to one dependency when a second attempt may run
// beside the first. Make one with New, or with a Plan; nil and the zero Hedger are
// off. Its methods may be called concurrently. It must not be copied.
type Hedger struct {
	*rules // shared by all of a plan; nil when hedging is off

	// What it remembers is made when there is something to remember: learned when
	// calls come often enough to learn from, recent at the first late call.
	learned     atomic.Pointer[latencies]
	recent      atomic.Pointer[recent]
	gate        atomic.Uint64 // counts successes until then; see often
	inFlightNow atomic.Int64  // hedges in flight
}

// Start notes that the first attempt of a call starts at now, and when another may
// be sent beside it; see Flight.Delay. Only calls that may be hedged should be
// started here: those that are safe to carry out twice.
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

// Fire asks whether another attempt of the call may be sent at now, beside those
// under way, since none has succeeded for the time that Flight.Delay gave. If it
// answers Granted the hedge is counted, and Settle must be called once when it has
// ended, also by a panic. After any other answer there is no point in asking for this
// call again: the answer stays the same.
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

// takeOff counts one more hedge in flight, if that is allowed.
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

// Settle notes that a hedge that was granted has ended, in whatever way. One too
// many is ignored when none is in flight.
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

// Done notes that the first attempt of the call ended at now. Succeeded means that
// it ran to its own end, and that this was a success, whether or not a hedge was
// quicker. Everything else is false: it failed, it timed out, its caller went away, or
// it was cancelled because a hedge had won. Then its time is not a latency, and all
// that is learned is that a success would have taken longer. How hedges end is not
// learned from at all.
//
// Only the first Done of a Flight counts. Without one the call is not learned from,
// which, if it happens to slow calls, has others hedged too soon.
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

// Delay returns what Flight.Delay would be for a call that starts at now. False: it
// would not be hedged.
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

// InFlight is the number of hedges that have been granted and not settled.
func (h *Hedger) InFlight() int {
	if h == nil {
		return 0
	}
	return int(h.inFlightNow.Load())
}
