package backoff

import (
	"math"
	"time"
)

// What a zero field of a Schedule stands for.
const (
	DefaultBase   = 100 * time.Millisecond
	DefaultFactor = 2
	DefaultCap    = 20 * time.Second
)

// What IEEE 802.3 (clause 4.2.3.2.5 and table 4-2) fixes: the window stops
// doubling at the tenth collision, the sixteenth attempt is the last, and a slot
// is 512 bit times, 51.2 µs at 10 Mb/s.
const (
	etherDoublings = 10
	etherAttempts  = 16
	etherSlot      = 51200 * time.Nanosecond
	etherMaxSlot   = math.MaxInt64 / (1<<etherDoublings - 1)
)

// A Schedule is how long to wait before each retry of a call. It is plain data
// and its methods are pure: one Schedule serves any number of calls and
// goroutines. The zero Schedule is the recommended one: exponential from 100 ms,
// doubling up to 20 s, full jitter.
type Schedule struct {
	// Kind is how the wait grows. Zero: Exponential.
	Kind Kind
	// Jitter is how chance spreads it. Zero: Full.
	Jitter Jitter
	// Base is the first ceiling. Zero: DefaultBase (or Cap, if that is less) for
	// Exponential and Linear, no wait for Constant, a slot of 51.2 µs for Ethernet.
	Base time.Duration
	// Cap is the longest wait, jitter included. Zero: DefaultCap, or Base if that
	// is more.
	Cap time.Duration
	// Floor is the shortest wait. Jitter spreads between it and the ceiling;
	// nothing is rounded up to it. It must be below Base, for the same reason. A
	// retry that is immediate (FastFirst) has no floor. Zero: none.
	Floor time.Duration
	// Factor is by how much an exponential ceiling grows, at least 1. Zero:
	// DefaultFactor.
	Factor float64
	// FastFirst makes the first retry immediate; the schedule proper begins with
	// the second.
	FastFirst bool
}

// plan is a Schedule with every default filled in and every value in range,
// whatever the Schedule held.
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

// slot is the slot time of an Ethernet schedule, no longer than what can be
// waited for 1023 times.
func (s Schedule) slot() time.Duration {
	if s.Base <= 0 {
		return etherSlot
	}
	return min(s.Base, etherMaxSlot)
}
