package outlier

import (
	"runtime"
	"sync/atomic"

	"github.com/lullgo/lull/internal/stripe"
)

// If cores contend for the words of a set, it divides its goroutines among stripes, each
// with words of its own. A stripe then balances the calls of its goroutines, like a process
// of a fleet. Below manyCalls the set goes back to one word.
const (
	contention = 1000    // steps lost from sweep to sweep, for stripes
	manyCalls  = 100_000 // a second
)

// A cell is the word of a host for one stripe, in a cache line of its own.
type cell struct {
	atomic.Uint64
	_ [56]byte
}

// load returns how many calls of a stripe are in flight. Without stripes all are in stripe
// 0.
func (h *host) load(stripe uint32) int64 { return int64(h.cell(stripe).Load()) >> loadShift }

func (h *host) cell(stripe uint32) *atomic.Uint64 {
	if stripe == 0 {
		return &h.word
	}
	return &h.cells[stripe-1].Uint64
}

// allLoad returns how many calls are in flight. The lock is held.
func (h *host) allLoad() int64 {
	n := h.load(0)
	for i := range h.cells {
		n += h.load(uint32(i) + 1)
	}
	return n
}

// stripe returns the stripe of the calling goroutine, and its seat.
func (v *view) stripe() (uint32, stripe.Seat) {
	if v.stripes == 0 {
		return 0, 0
	}
	seat := stripe.Here()
	return 1 + uint32(seat.Of(int(v.stripes))), seat
}

// contended counts a step that another goroutine was quicker to make, and moves the caller
// to another stripe.
func (s *Set) contended(v *view, seat stripe.Seat) {
	if v.stripes > 0 {
		seat.Move()
	}
	if s.lostSteps.Add(1)%contention != 0 || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	s.mu.Lock()
	defer s.unlock()
	if s.stripes == 0 {
		s.stripes = uint32(stripe.Count())
	}
	s.dirty = s.dirty || !s.striped
	s.striped = true
	s.unstripe = s.tick + uint64(s.sweeps) + 1
}

// endStripes ends the stripes after an interval of few calls. The lock is held.
func (s *Set) endStripes() {
	s.lostSteps.Store(0)
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
