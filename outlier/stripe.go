package outlier

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Cores that write the same word take its cache line from each other, and a call
// then costs three times as much. A set that notices this often (a step that
// somebody else was quicker to make) deals its goroutines out among stripes, each
// with words of its own. A stripe then balances the calls of its own goroutines,
// as the processes of a fleet do that know nothing of each other: with so many
// calls, each has enough of them to tell who is busy. Below manyCalls the set
// goes back to one word, which knows all calls. Who drives a set from one
// goroutine, such as a simulator, never gets stripes.
const (
	contention = 1000    // steps lost from sweep to sweep, for stripes
	manyCalls  = 100_000 // a second
	maxStripes = 64
)

// A cell is the word of a host for one stripe, with a cache line of its own.
type cell struct {
	atomic.Uint64
	_ [56]byte
}

// load is how many of a stripe's calls are under way. Stripe 0 is all goroutines,
// when there are no others.
func (h *host) load(stripe uint32) int64 { return int64(h.cell(stripe).Load()) >> loadShift }

func (h *host) cell(stripe uint32) *atomic.Uint64 {
	if stripe == 0 {
		return &h.word
	}
	return &h.more[stripe-1].Uint64
}

// allLoad is how many calls are under way. The lock is held.
func (h *host) allLoad() int64 {
	n := h.load(0)
	for i := range h.more {
		n += h.load(uint32(i) + 1)
	}
	return n
}

// stripe is that of the goroutine that calls it.
func (v *view) stripe() uint32 {
	if v.stripes == 0 {
		return 0
	}
	return 1 + uint32(here(v.salt))&(v.stripes-1)
}

// here is a number that tells goroutines apart, most of the time: where on which
// stack the caller stands. Stacks lie a few kilobytes apart, so their addresses
// differ in a few bits, and both factors of the product depend on the salt: with
// a fixed one, some pairs of neighbours fall together under half of all salts.
func here(salt uint64) uint64 {
	var spot byte
	at := uint64(uintptr(unsafe.Pointer(&spot))) >> 11
	hi, lo := bits.Mul64(at^0xa0761d6478bd642f, salt^0xe7037ed1a0b428db)
	return hi ^ lo
}

// contended notes a step that somebody else was quicker to make.
func (s *Set) contended() {
	if s.lost.Add(1)%contention != 0 || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	s.mu.Lock()
	defer s.unlock()
	if s.stripes == 0 {
		s.stripes = 2
		for s.stripes < uint32(min(2*runtime.GOMAXPROCS(0), maxStripes)) {
			s.stripes *= 2
		}
	}
	s.salt += 0x9e3779b97f4a7c15 // those that fell on the same stripe stay together otherwise
	s.striped, s.dirty = true, true
	s.unstripe = s.tick + uint64(s.sweeps) + 1
}

// quieten ends the stripes when there are few calls, after a whole interval of
// them. The lock is held.
func (s *Set) quieten() {
	s.lost.Store(0)
	if !s.striped || s.tick < s.unstripe {
		return
	}
	var calls int64
	for _, h := range s.hosts {
		calls += h.sum.calls
	}
	if float64(calls) < manyCalls*s.interval.Seconds() {
		s.striped, s.dirty = false, true
	}
}
