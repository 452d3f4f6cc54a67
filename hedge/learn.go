package hedge

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/internal/window"
)

// latencies are what the first attempts in the window have shown: after how long they
// succeeded, or for how long they had not succeeded when they ended.
type latencies struct {
	// What every call reads.
	next    atomic.Int64  // from when on delay is to be learned anew
	delay   atomic.Int64  // zero: unknown
	slotEnd atomic.Int64  // when the slot ends that is counted into
	slot    atomic.Uint32 // its place

	succeeded  tally // succeeded after so long
	unfinished tally // had not succeeded after so long, and nobody knows more

	mu   sync.Mutex // guards what follows, and lets one goroutine learn and clear
	tick uint64     // number of the slot that is counted into
}

// A percentile is used for so long, or for a slot's width if that is less.
const relearnAfter = 250 * time.Millisecond

func newLatencies(now, width time.Duration) *latencies {
	l := &latencies{tick: window.Tick(now, width)}
	l.next.Store(math.MinInt64)
	l.moveTo(l.tick, width)
	return l
}

// learnedDelay returns the delay for a call that starts at now; zero: unknown.
func (h *Hedger) learnedDelay(now time.Duration) time.Duration {
	l := h.learned.Load()
	if l == nil {
		return 0
	}
	if next := time.Duration(l.next.Load()); now >= next && !l.learn(now, h.rules) && saturating.Since(next, now) >= h.slot {
		return 0 // somebody else is at it, and what is known is too old
	}
	return time.Duration(l.delay.Load())
}

// learn computes the delay, unless another goroutine does.
func (l *latencies) learn(now time.Duration, r *rules) bool {
	if !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	l.advance(now, r.slot)
	d := time.Duration(0)
	if s, n := l.recentSpan(plentyTimes * r.minSamples); n >= r.minSamples {
		d = min(max(l.percentile(s, n, r.percentile), r.minDelay), r.maxDelay)
	}
	l.delay.Store(int64(d))
	l.next.Store(int64(saturating.Add(now, min(relearnAfter, r.slot))))
	return true
}

// add counts a first attempt, in the latest slot.
func (l *latencies) add(now, took time.Duration, succeeded bool, width time.Duration) {
	if int64(now) >= l.slotEnd.Load() && l.mu.TryLock() {
		l.advance(now, width)
		l.mu.Unlock()
	}
	t := choice.Either(!succeeded, &l.unfinished, &l.succeeded)
	t.add(l.slot.Load(), took)
}

// advance clears what has left the window at now. mu must be held.
func (l *latencies) advance(now, width time.Duration) {
	to := window.Tick(now, width)
	if to <= l.tick {
		return
	}
	for i := uint64(1); i <= min(to-l.tick, slots); i++ {
		gone := uint32((l.tick + i) % slots)
		l.succeeded.clear(gone)
		l.unfinished.clear(gone)
	}
	l.moveTo(to, width)
}

func (l *latencies) moveTo(tick uint64, width time.Duration) {
	l.tick = tick
	l.slot.Store(uint32(tick % slots))
	end := int64(math.MaxInt64)
	if hi, lo := bits.Mul64(tick+1, uint64(width)); hi == 0 && lo <= math.MaxInt64 {
		end = int64(lo)
	}
	l.slotEnd.Store(end)
}

// With so many times MinSamples a part of the window is enough.
const plentyTimes = 10

// recentSpan returns the latest slots with enough successes, at least two, and the number
// of successes in them.
func (l *latencies) recentSpan(enough int64) (s span, n int64) {
	s = span{newest: l.slot.Load(), slots: 2}
	for n = l.succeeded.total(s); n < enough && s.slots < slots; s.slots++ {
		n += l.succeeded.total(span{s.slot(s.slots), 1})
	}
	return s, n
}

// percentile returns the least latency, among those of the n successes in s, that a share p
// of all first attempts does not exceed: the estimate of Kaplan and Meier (1958), with one
// more attempt that outlasts all (so of n successes it is the k-th, the first with k/(n+1)
// ≥ p). If more than 1-p have outlasted all successes, it is the longest; Share decides
// then. Others may count meanwhile.
func (l *latencies) percentile(s span, n int64, p float64) (at time.Duration) {
	left := n + l.unfinished.total(s) + 1
	alive := 1.0
	for d := range doublings {
		ended, cut := l.succeeded[d].Load(), l.unfinished[d].Load()
		if ended == nil && cut == nil {
			continue
		}
		for step := range steps {
			e := ended.sum(s, step)
			if e > 0 {
				left = max(left, e)
				alive *= float64(left-e) / float64(left)
				at = upper(d, step)
				if alive <= 1-p+slack {
					return at
				}
			}
			left -= e + cut.sum(s, step)
		}
	}
	return at
}

// succeedOften reports whether ten calls have succeeded within eight seconds. With fewer,
// none could be hedged under the usual Share.
func (h *Hedger) succeedOften(now time.Duration) bool {
	const calls, countBits = 10, 8
	at := window.Tick(now, longestSpan) + 1
	for {
		w := h.gate.Load()
		next := w + 1
		if w>>countBits != at {
			next = at<<countBits | 1
		}
		if h.gate.CompareAndSwap(w, next) {
			return next&(1<<countBits-1) >= calls
		}
	}
}
