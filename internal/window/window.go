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

// A slot's word has a tag (24 bits) and a value (40 bits). The tag is the low bits of the
// tick with its top bit set, so a zero word is an unused slot. The value has an offset, so
// a negative addition cannot borrow from the tag. Tags go round: a counter that nobody
// touched for one turn (97 days with slots of one second) shows what it held then.
const (
	valueBits = 40
	valueMask = 1<<valueBits - 1
	offset    = 1 << (valueBits - 1)
	tagUsed   = 1 << 23
	tagMask   = tagUsed - 1

	// Max is the largest absolute value that a slot can hold. Beyond it further additions
	// in that direction are dropped.
	Max = offset / 2
)

// Tick returns the number of the slot that now belongs to. Times before the epoch count as
// the epoch. width must be positive.
func Tick(now, width time.Duration) uint64 {
	if now < 0 {
		return 0
	}
	return uint64(now) / uint64(width)
}

// A Counter is a ring of slots. Its methods may be called concurrently. Make one with New;
// it must not be copied after first use.
type Counter struct {
	ring
	shared atomic.Pointer[[]ring] // of the stripes; nil until there was contention
	lost   atomic.Uint32          // steps that had to be repeated
}

type ring []atomic.Uint64

// After so many repeated steps a counter makes stripes.
const firstStripes = 16

// New returns a counter for n slots. It takes 8 bytes for each, rounded up to a power of
// two.
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

// Add adds delta to the slot of tick. If a later tick has that slot, it is added there.
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

// contended counts a step that another goroutine was quicker to make.
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

// newer reports whether tag a is later than tag b. Tags go round on a circle of 2^23 ticks:
// one that seems to be more than lag ahead is old.
func newer(a, b uint64) bool {
	const lag = 1 << 12
	return (b-a)&tagMask > lag
}

// Sum returns the sum of n slots: tick and the n-1 before it.
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

// Reset forgets everything. Concurrent additions may survive.
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
