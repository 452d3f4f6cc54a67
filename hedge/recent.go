package hedge

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/window"
)

// recent counts the calls of the last eight seconds, and for how many hedges they asked.
type recent struct {
	calls, late window.Counter
	stock       atomic.Int64 // hedges that may be sent where there are too few calls to judge by, in units
}

// stocked is how many hedges are in stock at first, and at most. A call that is in time
// adds Share of one. Another half is for what late calls take back (takeFromStock) although
// a full stock had no room for it.
const (
	stocked = 2
	unit    = 1 << 20
	full    = stocked*unit + unit/2
)

const (
	tick        = 250 * time.Millisecond // width of a slot
	second      = 4                      // slots
	longest     = 32                     // slots
	longestSpan = longest * tick
	// enough is for how many hedges the counted calls should be enough: with fewer, one
	// more or less shows nothing.
	enough = 4
)

func (r *recent) started(now time.Duration, earns int64) {
	r.calls.Add(window.Tick(now, tick), 1)
	for n := r.stock.Load(); n < full; n = r.stock.Load() {
		if r.stock.CompareAndSwap(n, min(n+earns, full)) {
			return
		}
	}
}

// takeFromStock takes back what a late call added when it started, and a hedge if there is
// one.
func (r *recent) takeFromStock(earned int64) bool {
	for {
		n := r.stock.Load()
		left, ok := max(n-earned, 0), false
		if left >= unit {
			left, ok = left-unit, true
		}
		if r.stock.CompareAndSwap(n, left) {
			return ok
		}
	}
}

// isTail counts a late call, and reports whether so few are late that they are the tail: at
// most Share of the calls of the last second, or of 2, 4 or 8 seconds if that is too few
// calls. If 8 seconds are too few, the stock pays. The call is counted first, so of calls
// that ask together at least the last sees all.
func (h *Hedger) isTail(now time.Duration) bool {
	if h.share > maxShare {
		return true
	}
	r := h.recent.Load()
	at := window.Tick(now, tick)
	if r == nil {
		r = &recent{calls: window.New(longest), late: window.New(longest)}
		r.calls.Add(at, 1) // this one
		r.stock.Store(full)
		h.recent.CompareAndSwap(nil, r)
		r = h.recent.Load()
	}
	r.late.Add(at, 1)
	for n := second; ; n *= 2 {
		allowed := h.share * float64(r.calls.Sum(at, n))
		if allowed >= enough || n == longest {
			return float64(r.late.Sum(at, n)) <= allowed+slack || allowed < enough && r.takeFromStock(h.earns)
		}
	}
}

// Counts returns the calls that started in the second up to now, and how many hedges late
// calls asked for. Nothing is counted before the first late call, nor if Share has no
// bound.
func (h *Hedger) Counts(now time.Duration) (calls, late int64) {
	if h == nil {
		return 0, 0
	}
	r := h.recent.Load()
	if r == nil {
		return 0, 0
	}
	at := window.Tick(now, tick)
	return r.calls.Sum(at, second), r.late.Sum(at, second)
}
