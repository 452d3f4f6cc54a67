package bulkhead

import (
	"sync/atomic"
	"time"
)

// A Limiter has the permits of one Config. Its methods may be called concurrently. The zero
// Limiter limits nothing; New makes others. It must not be copied after first use.
type Limiter struct {
	// Zero: no limit, which is MaxLimit.
	limit    uint32
	maxQueue uint32
	maxWait  time.Duration

	// The low half counts the permits that are out: in flight, or in cells. The high half
	// counts the callers that wait, and changes only under the queue's lock.
	//
	// Nobody waits while there is room: waiting > 0 implies out == limit. A caller is
	// counted as waiting by the compare-and-swap that finds the limit reached. From then on
	// a permit that is given back, or found in a cell, goes to a waiter.
	word      atomic.Uint64
	queue     atomic.Pointer[queue]  // nil until somebody waits
	cells     atomic.Pointer[[]cell] // nil until cores contend for the word
	lostSteps atomic.Uint32          // how often one did

	_ [64 - 44]byte // a cache line of its own
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

func (l *Limiter) size() uint32 {
	if l.limit == 0 {
		return MaxLimit
	}
	return l.limit
}

func (l *Limiter) hasRoom(w uint64) bool { return uint32(w) < l.size() }

// TryAcquire takes a permit, if one is free and nobody waits for it, and reports whether it
// did. Call Release then.
func (l *Limiter) TryAcquire() bool {
	for {
		if cells := l.cells.Load(); cells != nil {
			return l.acquireFromCells(*cells)
		}
		w := l.word.Load()
		if !l.hasRoom(w) {
			if l.cells.Load() == nil {
				return false
			}
			continue
		}
		if l.word.CompareAndSwap(w, w+oneInFlight) {
			return true
		}
		l.contended()
	}
}

// Release gives a permit back, to the first caller that waits, if there is one. If no
// permit is out it does nothing; a Release too many otherwise frees the permit of another
// call. The Admit of a waiter is called before Release returns, or by the goroutine that is
// calling Admits just now.
func (l *Limiter) Release() {
	for {
		w := l.word.Load()
		switch {
		case uint32(w) == 0:
			return
		case w >= oneWaiting:
			if l.admitFirst() {
				return
			}
		default:
			if cells := l.cells.Load(); cells != nil {
				if l.putInCell(*cells) {
					return
				}
			} else if l.word.CompareAndSwap(w, w-oneInFlight) {
				return
			} else {
				l.contended()
			}
		}
	}
}

// InFlight returns how many permits are in use. It may be inexact while others take and
// give back permits.
func (l *Limiter) InFlight() int {
	n := int(uint32(l.word.Load()))
	if cells := l.cells.Load(); cells != nil {
		for i := range *cells {
			n -= int((*cells)[i].free.Load())
		}
	}
	return max(n, 0)
}

// Waiting returns how many callers wait for a permit.
func (l *Limiter) Waiting() int { return int(l.word.Load() >> 32) }
