package hedge

import (
	"time"

	"github.com/lullgo/lull/internal/window"
)

// recent counts the calls of the last eight seconds, and those of them that were
// late, once for each hedge that they asked for.
type recent struct {
	calls, late window.Counter
}

const (
	tick      = 250 * time.Millisecond // width of a slot
	second    = 4                      // slots
	longest   = 32                     // slots
	longestIs = longest * tick
	// enough is how many hedges the calls that are looked at must pay for, if they
	// can be had: of fewer, one more or less says nothing.
	enough = 4
)

func (r *recent) started(now time.Duration) { r.calls.Add(window.Tick(now, tick), 1) }

// isTail counts a late call, and tells whether so few are late that they are the
// tail: this one and the others no more than Share of the calls, in the last
// second, or as far back as it takes for the calls to pay for enough hedges.
//
// The call is counted before the sum is taken, so that of calls that ask at once
// at least the last sees all.
func (h *Hedger) isTail(now time.Duration) bool {
	if h.share > maxShare {
		return true
	}
	r := h.recent.Load()
	at := window.Tick(now, tick)
	if r == nil {
		r = &recent{window.New(longest), window.New(longest)}
		r.calls.Add(at, 1) // this one
		h.recent.CompareAndSwap(nil, r)
		r = h.recent.Load()
	}
	r.late.Add(at, 1)
	for n := second; ; n *= 2 {
		pays := h.share * float64(r.calls.Sum(at, n))
		if pays >= enough || n == longest {
			return float64(r.late.Sum(at, n)) <= pays+slack
		}
	}
}

// Counts are the calls that started in the second up to now, and how often one of
// the calls was late in it, whether a hedge was granted then or not. Nothing is
// counted before the first late call, nor if Share has no bound.
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
