// Package window counts what happened lately: sums over a sliding window of
// time that is cut into slots. Budget and breaker both stand on it.
//
// Time is handed in as a tick, the number of the slot that now falls into
// (Tick). A slot that has left the window counts for nothing from the moment
// somebody reads, not from the moment somebody writes: a window that nobody
// touched for an hour is empty.
//
// A slot is one machine word that holds its own tick beside its value, so
// taking over an expired slot and counting into it is one atomic step, and
// counting into a live one is a single atomic add: 0 allocations, about 6 ns.
package window

import (
	"sync/atomic"
	"time"
)

// A slot's word is tag (24 bits) and value (40 bits). The tag is the low bits
// of the tick with its top bit set, so that a zero word is a slot never used.
// The value is kept with an offset, so that adding a negative number to the
// word cannot borrow from the tag.
const (
	valueBits = 40
	valueMask = 1<<valueBits - 1
	offset    = 1 << (valueBits - 1)
	tagUsed   = 1 << 23
	tagMask   = tagUsed - 1

	// Max is the largest absolute value that a slot is relied on to hold.
	// Beyond it a slot saturates: further additions in that direction are dropped.
	Max = offset / 2
)

// Tick is the number of the slot of the given width that now falls into.
// Times before the epoch count as the epoch. The width must be positive.
func Tick(now, width time.Duration) uint64 {
	if now < 0 {
		return 0
	}
	return uint64(now) / uint64(width)
}

// A Counter is a ring of slots. Its methods may be called concurrently.
// Make one with New.
type Counter struct {
	slots []atomic.Uint64
}

// New returns a counter that can look back over n slots. It takes 8 bytes for
// each, rounded up to a power of two.
func New(n int) Counter {
	size := 1
	for size < n {
		size <<= 1
	}
	return Counter{slots: make([]atomic.Uint64, size)}
}

func tag(tick uint64) uint64 { return tagUsed | tick&tagMask }

// Add counts delta into the slot of tick. A tick so old that its slot has been
// taken over counts into the slot that took it over.
func (c *Counter) Add(tick uint64, delta int64) {
	s := &c.slots[tick&uint64(len(c.slots)-1)]
	for {
		w := s.Load()
		have := w >> valueBits
		if have == 0 || newer(tag(tick), have) {
			if s.CompareAndSwap(w, tag(tick)<<valueBits|uint64(offset+delta)) {
				return
			}
			continue
		}
		if v := int64(w&valueMask) - offset; v > Max && delta > 0 || v < -Max && delta < 0 {
			return
		}
		// Between the load and this line the slot may have been taken over by a
		// later tick. Then the count lands there: one slot's width of error, for
		// a caller that slept for a whole turn of the ring.
		s.Add(uint64(delta))
		return
	}
}

// newer tells whether tag a is later than tag b, on a circle of 2^23 ticks.
func newer(a, b uint64) bool {
	return a != b && (a-b)&tagMask < tagUsed/2
}

// Sum adds up the n slots that end with tick: tick itself and the n-1 before it.
func (c *Counter) Sum(tick uint64, n int) int64 {
	var sum int64
	for i := range c.slots {
		w := c.slots[i].Load()
		if w == 0 {
			continue
		}
		if age := (tag(tick) - w>>valueBits) & tagMask; age < uint64(n) {
			sum += int64(w&valueMask) - offset
		}
	}
	return sum
}

// Reset forgets everything. Additions that run meanwhile may survive it.
func (c *Counter) Reset() {
	for i := range c.slots {
		c.slots[i].Store(0)
	}
}
