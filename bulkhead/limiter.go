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

	// Out in the low half, waiting in the high half. Out are the permits in flight and
	// those that lie in cells. The waiting half changes only under the queue's lock.
	//
	// Nobody waits while there is room: waiting > 0 implies out == limit. A waiter is
	// counted in by the same compare-and-swap that finds the limit reached. From then on a
	// permit that is given back goes to a waiter instead of into the low half, and so does
	// one that is found in a cell.
	word      atomic.Uint64
	queue     atomic.Pointer[queue]  // nil until somebody waits
	cells     atomic.Pointer[[]cell] // nil until cores contend for the word
	lostSteps atomic.Uint32          // how often one did

	_ [64 - 44]byte // a cache line of its ownCell
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

// size is the limit as a number of permits.
func (l *Limiter) size() uint32 {
	if l.limit == 0 {
		return MaxLimit
	}
	return l.limit
}

// room reports whether a permit is not out when the word is w.
func (l *Limiter) hasRoom(w uint64) bool { return uint32(w) < l.size() }

// TryAcquire takes a permit if one is free and nobody waits for it. It reports
// whether it did; then the caller owes a Release.
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

// Release gives a permit back: to the first who waits, if anybody does. A Release too many
// is ignored when nothing is out; otherwise it frees a permit that is somebody else's.
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

// InFlight is the number of permits that are out and not in a cell. While others take
// and give back permits it may be a little off.
func (l *Limiter) InFlight() int {
	n := int(uint32(l.word.Load()))
	if cells := l.cells.Load(); cells != nil {
		for i := range *cells {
			n -= int((*cells)[i].free.Load())
		}
	}
	return max(n, 0)
}

// Waiting is the number of callers that wait for a permit.
func (l *Limiter) Waiting() int { return int(l.word.Load() >> 32) }
