package bulkhead

import (
	"sync/atomic"
	"time"
)

// A Limiter hands out the permits of one Config. Its methods may be called
// concurrently. The zero Limiter limits nothing; New makes others. It must not be
// copied after first use.
type Limiter struct {
	// Zero: no limit, which is MaxLimit.
	limit    uint32
	maxQueue uint32
	maxWait  time.Duration

	// In flight in the low half, waiting in the high half. The waiting half changes
	// only under the queue's lock.
	//
	// Nobody waits while there is room: waiting > 0 implies in flight == limit. A
	// waiter is counted in by the same compare-and-swap that finds the limit
	// reached, and from then on a permit that is given back goes to a waiter
	// instead of into the low half.
	word  atomic.Uint64
	queue atomic.Pointer[queue] // nil until somebody waits

	_ [64 - 32]byte // a cache line of its own
}

const (
	oneInFlight = 1
	oneWaiting  = 1 << 32
)

// New returns a limiter for c, or the error of Validate.
func New(c Config) (*Limiter, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.MaxWait > 0 && c.MaxQueue == 0 {
		c.MaxQueue = c.InFlight
	}
	return &Limiter{limit: uint32(c.InFlight), maxQueue: uint32(c.MaxQueue), maxWait: c.MaxWait}, nil
}

// room reports whether a permit is free when the word is w.
func (l *Limiter) room(w uint64) bool {
	limit := l.limit
	if limit == 0 {
		limit = MaxLimit
	}
	return uint32(w) < limit
}

// TryAcquire takes a permit if one is free and nobody waits for it. It tells
// whether it did; then the caller owes a Release.
func (l *Limiter) TryAcquire() bool {
	for {
		w := l.word.Load()
		if !l.room(w) {
			return false
		}
		if l.word.CompareAndSwap(w, w+oneInFlight) {
			return true
		}
	}
}

// Release gives a permit back: to the first who waits, if anybody does. A Release
// too many is ignored when nothing is in flight.
//
// If a waiter gets the permit, its Admit is called before Release returns, unless
// another goroutine is calling Admits just now; then that one calls it.
func (l *Limiter) Release() {
	for {
		w := l.word.Load()
		switch {
		case uint32(w) == 0:
			return
		case w >= oneWaiting:
			if l.handOver() {
				return
			}
		case l.word.CompareAndSwap(w, w-oneInFlight):
			return
		}
	}
}

// InFlight is the number of permits that are out.
func (l *Limiter) InFlight() int { return int(uint32(l.word.Load())) }

// Waiting is the number of callers that wait for a permit.
func (l *Limiter) Waiting() int { return int(l.word.Load() >> 32) }
