// Package window counts recent events: sums over a sliding window of
// time that is cut into slots. Budget and breaker both use it.
//
// Time is an argument: a tick, the number of the slot that now belongs to (Tick). A slot
// that has left the window is ignored by those who read, too. It is one machine word with
// its own tick beside its value, so to count into it is one atomic step: 0 allocations,
// about 6 ns. A counter for which cores contend gives their goroutines rings of their own
// (package stripe).
package window

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/stripe"
)

// A counter that nobody touched for one turn of that circle (97 days with slots of
// one second), up to a window more or less, shows what it held then.
//
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

// A Counter is a ring of slots. Its methods may be called concurrently. Make one
// with New, and do not copy it after first use.
type Counter struct {
	ring
	shared atomic.Pointer[[]ring] // of the stripes; nil until there was contention
	lost   atomic.Uint32          // steps that had to be repeated
}

type ring []atomic.Uint64

// A counter that has repeated a step firstStripes times makes stripes. A goroutine
// that repeats one after that moves to another stripe.
const firstStripes = 16

// New returns a counter that can look back over n slots. It takes 8 bytes for
// each, rounded up to a power of two.
func New(n int) Counter {
	return Counter{ring: newRing(n)}
}

func newRing(n int) ring {
	size := 1
	for size < n {
		size <<= 1
	}
	return make(ring, size)
}

func tag(tick uint64) uint64 { return tagUsed | tick&tagMask }

// Add counts delta into the slot of tick. A tick so old that its slot has been
// taken over counts into the slot that took it over.
func (c *Counter) Add(tick uint64, delta int64) {
	r := c.ring
	var seat stripe.Seat
	shared := c.shared.Load()
	if shared != nil {
		seat = stripe.Here()
		r = (*shared)[seat.Of(len(*shared))]
	}
	for slot := &r[tick&uint64(len(r)-1)]; ; c.contended(shared != nil, seat) {
		w := slot.Load()
		next := w + uint64(delta)
		if t := w >> valueBits; t != tag(tick) && (t == 0 || newer(tag(tick), t)) {
			next = tag(tick)<<valueBits | uint64(offset+delta)
		} else if v := int64(w&valueMask) - offset; v > Max && delta > 0 || v < -Max && delta < 0 {
			return
		}
		if slot.CompareAndSwap(w, next) {
			return
		}
	}
}

// contended notes a step that somebody else was quicker to make, on a stripe or on
// the ring of all.
func (c *Counter) contended(striped bool, seat stripe.Seat) {
	if striped {
		seat.Move()
		return
	}
	if c.lost.Add(1) < firstStripes || c.shared.Load() != nil || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	rings := make([]ring, stripe.Count())
	for i := range rings {
		rings[i] = newRing(max(len(c.ring), 16)) // whole cache lines
	}
	c.shared.CompareAndSwap(nil, &rings)
}

// newer reports whether tag a is later than tag b. Tags go round on a circle of 2^23
// ticks, so what seems to lie ahead by more than a goroutine may lag behind lies
// far back: it was left alone for a large part of the circle.
func newer(a, b uint64) bool {
	const lag = 1 << 12
	return (b-a)&tagMask > lag
}

// Sum adds up the n slots that end with tick: tick itself and the n-1 before it.
func (c *Counter) Sum(tick uint64, n int) int64 {
	sum := c.ring.sum(tick, n)
	if s := c.shared.Load(); s != nil {
		for _, r := range *s {
			sum += r.sum(tick, n)
		}
	}
	return sum
}

func (r ring) sum(tick uint64, n int) int64 {
	var sum int64
	for i := range r {
		w := r[i].Load()
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
	c.ring.reset()
	if s := c.shared.Load(); s != nil {
		for _, r := range *s {
			r.reset()
		}
	}
}

func (r ring) reset() {
	for i := range r {
		r[i].Store(0)
	}
}
