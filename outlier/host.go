package outlier

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// A host is the state of one endpoint in a set.
type host struct {
	// word is calls in flight << loadShift | results not collected yet, of stripe 0. It is
	// one word, so a call writes it once at its start and once at its end.
	word     atomic.Uint64
	streaks  atomic.Uint64 // failures in a row, of each kind; see streaks
	gen      atomic.Uint32 // changes when it is ejected, comes back, or leaves the set
	id       uint32        // of this host alone, as long as the set lives
	took     atomic.Uint64 // how long successes lately took, as float64; of LeastTime only
	external atomic.Uint64 // failures not collected yet, but for those in local
	local    atomic.Uint64 // LocalOrigin failures not collected yet; with Split only
	_        [16]byte      // nobody else's words in this cache line

	key   string
	cells []cell // of stripes; made under the lock before a view has any

	// The lock of the set guards what follows.
	past       []tally // what the last sweeps collected, a ring
	sum        tally   // of past
	sinceSweep tally   // collected since the last sweep
	total      tally   // since it came into the set
	began      []int64 // load at the start of each slot that may be judged, a ring
	before     [rows]start

	until         time.Duration // end of the latest ejection
	steadyFrom    time.Duration // when it came back, or steps was last lowered
	steps         int64         // how many times BaseEjection the latest ejection took
	times         int64         // how often it has been ejected
	overflows     int64         // how often it was an outlier while too many were ejected
	round         uint64        // of the latest Update that named it
	ejected, gone bool
	forgetResults bool // its results are forgotten after the judging

	_ [32]byte // whole cache lines, which the allocator then aligns
}

const (
	loadShift = 40
	oneCall   = 1 << loadShift
	callEnded = 1<<64 - oneCall // takes one away
	doneMask  = oneCall - 1
)

type tally struct{ calls, external, local int64 }

func (t *tally) add(u tally) {
	t.calls += u.calls
	t.external += u.external
	t.local += u.local
}

func (t *tally) sub(u tally) {
	t.calls -= u.calls
	t.external -= u.external
	t.local -= u.local
}

// counts are calls of a kind, and how many of them failed.
type counts struct{ calls, failures int64 }

// of returns the counts by one measure: whether calls got an answer (local), or which
// answer it was.
func (t tally) of(local bool) counts {
	o := choice.Either(local, counts{t.calls, t.local}, counts{t.calls - t.local, t.external})
	o.calls = max(0, o.calls)
	o.failures = min(max(0, o.failures), o.calls) // a result that is counted right now may be half in
	return o
}

// with returns o and more calls that have not failed so far.
func (o counts) with(more int64) counts {
	o.calls += max(0, more)
	return o
}

// A start is the state when a row began: the results of the others, and the calls in flight
// to this endpoint.
type start struct {
	others counts
	load   int64
}

func (o counts) rate() float64 { return float64(o.calls-o.failures) / float64(o.calls) }

// collect adds the results since the last collect. The lock is held.
func (s *Set) collect(h *host) {
	t := tally{external: int64(h.external.Load()), local: int64(h.local.Load())}
	for i := range uint32(len(h.cells)) + 1 {
		c := h.cell(i)
		if n := c.Load() & doneMask; n > 0 {
			c.Add(-n)
			t.calls += int64(n)
		}
	}
	if t == (tally{}) {
		return
	}
	h.external.Add(-uint64(t.external))
	h.local.Add(-uint64(t.local))
	h.sinceSweep.add(t)
	h.total.add(t)
	s.total.add(t)
}

// forget clears the results of the host. The lock is held.
func (s *Set) forget(h *host) {
	s.collect(h)
	clear(h.past)
	h.sum, h.sinceSweep = tally{}, tally{}
	fill(h.began, h.allLoad())
	h.streaks.Store(0)
	h.forgetResults = false
}

func fill(list []int64, v int64) {
	for i := range list {
		list[i] = v
	}
}

// The rows of failures that are counted.
const (
	anyFailure = iota // all, but with Split those without an answer
	gatewayFailure
	localFailure // with Split
	rows
)

// streaks are the lengths of the rows, in one word. A success ends all rows in one step,
// and mostly needs only to read it.
type streaks uint64

const (
	streakBits = 21
	streakMax  = 1<<streakBits - 1
)

func (w streaks) of(row int) uint64 { return uint64(w) >> (row * streakBits) & streakMax }

func (w streaks) longer(row int) streaks {
	if w.of(row) == streakMax {
		return w
	}
	return w + 1<<(row*streakBits)
}

func (w streaks) ended(row int) streaks { return w &^ (streakMax << (row * streakBits)) }

// after returns the rows after one more failure, and which of them grew.
func (w streaks) after(o Evidence, split bool) (next streaks, longer [rows]bool) {
	if o == LocalOrigin && split {
		return w.longer(localFailure), [rows]bool{localFailure: true}
	}
	w = w.ended(localFailure).longer(anyFailure)
	if o == FiveXX {
		return w.ended(gatewayFailure), [rows]bool{anyFailure: true}
	}
	return w.longer(gatewayFailure), [rows]bool{anyFailure: true, gatewayFailure: true}
}
