package backoff

import (
	"math"
	"time"
)

// What zero fields of a Schedule stand for.
const (
	DefaultBase   = 100 * time.Millisecond
	DefaultFactor = 2
	DefaultCap    = 20 * time.Second
)

// From IEEE 802.3 (clause 4.2.3.2.5 and table 4-2): the window doubles up to the tenth
// collision, the sixteenth attempt is the last, and a slot is 512 bit times at 10 Mb/s.
const (
	etherDoublings = 10
	etherAttempts  = 16
	etherSlot      = 51200 * time.Nanosecond
	etherMaxSlot   = math.MaxInt64 / (1<<etherDoublings - 1)
)

// A Schedule is how long to wait before each retry of a call. It is plain data with pure
// methods, and may be used concurrently. The zero Schedule is the recommended one:
// exponential from 100 ms, doubling up to 20 s, full jitter.
//
// A wait is as exact as the system's timers. In an idle process under Linux, Go's timers end at
// whole milliseconds: a wait of 100 µs takes 1.05 ms, one of 1.5 ms 2.06. lull.Event.Slept is the
// real length of a wait.
type Schedule struct {
	// Kind is how the wait grows. Zero: Exponential.
	Kind Kind
	// Jitter is how chance spreads it. Zero: Full.
	Jitter Jitter
	// Base is the first ceiling. Zero: 100 ms, or Cap if that is less. For Constant it
	// stands for no wait, for Ethernet for a slot of 51.2 µs.
	Base time.Duration
	// Cap is the longest wait, jitter included. Zero: 20 s, or Base if that is more.
	Cap time.Duration
	// Floor is the shortest wait. Jitter spreads between it and the ceiling, so it must be
	// below Base, unless Jitter is None. It does not apply to an immediate retry
	// (FastFirst). Zero: none.
	Floor time.Duration
	// Factor is by how much an exponential ceiling grows, at least 1. Zero: 2.
	Factor float64
	// FastFirst makes the first retry immediate; the waits begin with the second. It is for
	// failures that the next attempt seldom meets: a conflict of optimistic locking, one bad host
	// of many, chance. In an outage it wastes that retry. Rate-limited failures, those for which the
	// server asked to wait, and timeouts (lull.Policy has the rule) wait all the same.
	FastFirst bool
}

// A plan is a Schedule with its zeros filled in and every value in range.
type plan struct {
	base, cap, floor time.Duration
	factor           float64
}

func (s Schedule) plan() plan {
	p := plan{base: max(s.Base, 0), cap: s.Cap, factor: s.Factor}
	switch {
	case s.Factor >= 1:
	case s.Factor > 0:
		p.factor = 1
	default: // zero, negative, not a number
		p.factor = DefaultFactor
	}
	if p.base == 0 && s.Kind != Constant {
		p.base = DefaultBase
	}
	if p.cap <= 0 {
		p.cap = max(DefaultCap, p.base)
	}
	p.base = min(p.base, p.cap)
	p.floor = min(max(s.Floor, 0), p.cap)
	return p
}

// slot returns the slot time of an Ethernet schedule. 1023 of them fit into a Duration.
func (s Schedule) slot() time.Duration {
	if s.Base <= 0 {
		return etherSlot
	}
	return min(s.Base, etherMaxSlot)
}
