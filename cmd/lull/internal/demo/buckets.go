package demo

import (
	"slices"
	"sync"
	"time"
)

// tick is the width of a bucket. All counts over time are in buckets of this width.
const tick = 100 * time.Millisecond

// buckets count events by their time. They are safe for concurrent use.
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

// copy returns a copy of the counts, oldest first.
func (b *buckets) copy() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.counts)
}

// total adds up all counts.
func total(counts []int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// sum adds up the counts between two times, both rounded down to ticks.
func sum(counts []int, from, to time.Duration) int {
	n := 0
	for i := int(max(0, from) / tick); i < int(to/tick) && i < len(counts); i++ {
		n += counts[i]
	}
	return n
}
