package breaker

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/window"
)

// A call is counted in the slot of its start. The ring holds eight windows, so a call that
// fails after up to seven is judged by the window of starts that ends with its own.
const (
	slotsPerWindow = 8
	slotsInRing    = 64
	// oldestCohort is the age in slots of the oldest start whose whole window is in the
	// ring. One slot is spare, for goroutines whose clock is ahead.
	oldestCohort = slotsInRing - slotsPerWindow - 1
)

// countsByStart counts calls by the time of their start.
type countsByStart struct {
	started window.Counter
	failed  lazyCounter
	slow    lazyCounter
}

// A lazyCounter takes no memory until something is counted.
type lazyCounter struct {
	p atomic.Pointer[window.Counter]
}

func (l *lazyCounter) add(slot uint64, delta int64) {
	c := l.p.Load()
	if c == nil {
		fresh := window.New(slotsInRing)
		l.p.CompareAndSwap(nil, &fresh)
		c = l.p.Load()
	}
	c.Add(slot, delta)
}

func (l *lazyCounter) sum(slot uint64) int64 {
	if c := l.p.Load(); c != nil {
		return c.Sum(slot, slotsPerWindow)
	}
	return 0
}

func (l *lazyCounter) reset() {
	if c := l.p.Load(); c != nil {
		c.Reset()
	}
}

func (b *Breaker) cohorts() *countsByStart {
	if c := b.counted.Load(); c != nil {
		return c
	}
	b.counted.CompareAndSwap(nil, &countsByStart{started: window.New(slotsInRing)})
	return b.counted.Load()
}

// share counts into l the call that started at start and ended at now. It returns how many
// calls started in the window that ends with its start, those in flight included, and how
// many of them l holds.
func (b *Breaker) share(c *countsByStart, l *lazyCounter, now, start time.Duration) (part, whole int64) {
	slot, _ := b.cohort(now, start)
	l.add(slot, 1)
	part = l.sum(slot)
	// If there are more failures than starts, the failures are older than the ring, and
	// stand in a slot in which fewer calls started. Then only failures are known.
	return part, max(c.started.Sum(slot, slotsPerWindow), part)
}

// cohort returns the slot in which a call that started at start is counted. If it is older
// than the ring, that is the oldest slot.
func (b *Breaker) cohort(now, start time.Duration) (slot uint64, remembered bool) {
	slot = window.Tick(start, b.slot)
	if t := window.Tick(now, b.slot); t > slot+oldestCohort {
		return t - oldestCohort, false
	}
	return slot, true
}
