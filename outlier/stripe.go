package outlier

import (
	"runtime"
	"sync/atomic"

	"github.com/lullgo/lull/internal/stripe"
)

// A set for whose words cores contend (a step that somebody else was quicker to make) deals
// its goroutines out among stripes, each with words of its own. A stripe then balances the
// calls of its own goroutines, as the processes of a fleet do. Below manyCalls the set goes
// back to one word, which knows all calls.
const (
	contention = 1000    // steps lost from sweep to sweep, for stripes
	manyCalls  = 100_000 // a second
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
	return &h.cells[stripe-1].Uint64
}

// allLoad is how many calls are under way. The lock is held.
func (h *host) allLoad() int64 {
	n := h.load(0)
	for i := range h.cells {
		n += h.load(uint32(i) + 1)
	}
	return n
}

// stripe is that of the goroutine that calls it, and its seat.
func (v *view) stripe() (uint32, stripe.Seat) {
	if v.stripes == 0 {
		return 0, 0
	}
	seat := stripe.Here()
	return 1 + uint32(seat.Of(int(v.stripes))), seat
}

// contended notes a step that somebody else was quicker to make, by a goroutine
// that chose from v. If it has a stripe, it moves to another.
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

// quieten ends the stripes when there are few calls, after a whole interval of
// them. The lock is held.
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
