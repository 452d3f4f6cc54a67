package breaker

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/window"
)

// Calls are counted in the slot of their start. The ring looks back over eight
// windows: a call that fails after up to about seven is judged against the
// window of starts that ended with its own.
const (
	slotsPerWindow = 8
	slotsInRing    = 64
	// oldestCohort is the age in slots of the oldest start whose whole window is
	// still in the ring, with one slot to spare for goroutines whose clock is ahead.
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

// countsByStart returns the counters, made for the first call that needs them.
func (b *Breaker) cohorts() *countsByStart {
	if c := b.counted.Load(); c != nil {
		return c
	}
	b.counted.CompareAndSwap(nil, &countsByStart{started: window.New(slotsInRing)})
	return b.counted.Load()
}

// share counts the call that started at start and ended at now into l, and gives
// the figures to judge it by: how many calls started in the window that ended
// with its start, those in flight included, and how many of those l holds.
func (b *Breaker) share(c *countsByStart, l *lazyCounter, now, start time.Duration) (part, whole int64) {
	slot, _ := b.cohort(now, start)
	l.add(slot, 1)
	part = l.sum(slot)
	// More failures than starts: they are older than the ring, and moved up to a
	// time at which fewer calls started. Then nothing but failures is known.
	return part, max(c.started.Sum(slot, slotsPerWindow), part)
}

// cohort is the slot in which a call is counted that started at start: that of
// its start, or the oldest in the ring for a call that is older still.
func (b *Breaker) cohort(now, start time.Duration) (slot uint64, remembered bool) {
	slot = window.Tick(start, b.slot)
	if t := window.Tick(now, b.slot); t > slot+oldestCohort {
		return t - oldestCohort, false
	}
	return slot, true
}
