package demo

import (
	"slices"
	"sync"
	"time"
)

// tick is the width of a bucket. Everything that is counted over time is
// counted in buckets of this width.
const tick = 100 * time.Millisecond

// buckets count events by when they happened. Safe for concurrent use.
type buckets struct {
	mu     sync.Mutex
	counts []int
}

func (b *buckets) add(at time.Duration) {
	i := int(max(0, at) / tick)
	b.mu.Lock()
	defer b.mu.Unlock()
	if more := i + 1 - len(b.counts); more > 0 {
		b.counts = append(b.counts, make([]int, more)...)
	}
	b.counts[i]++
}

// copy is a copy of the counts, oldest first.
func (b *buckets) copy() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.counts)
}

// sum adds up the counts from one time to another, both rounded down to ticks.
func sum(counts []int, from, to time.Duration) int {
	n := 0
	for i := int(max(0, from) / tick); i < int(to/tick) && i < len(counts); i++ {
		n += counts[i]
	}
	return n
}
