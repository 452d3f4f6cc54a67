package demo

import (
	"slices"
	"sync"
	"time"
)

// tick is the width of a bucket. All counts over time are in buckets of this width.
const tick = 100 * time.Millisecond

// A kind is what is counted of a client and its backend.
type kind int

const (
	begun     kind = iota // calls, when they began
	succeeded             // calls, when they ended
	bad                   // calls that failed, when they ended
	seen                  // requests, when the backend saw them
	extra                 // requests beyond the first of their call, when they were sent
	held                  // requests that the client's policy did not send
	kinds
)

// counts are those of each kind per tick since the start of the run, oldest first.
type counts [kinds][]int

// buckets count events by their time. They are safe for concurrent use.
type buckets struct {
	mu sync.Mutex
	of counts
}

func (b *buckets) add(what kind, at time.Duration) {
	i := int(max(0, at) / tick)
	b.mu.Lock()
	defer b.mu.Unlock()
	if more := i + 1 - len(b.of[what]); more > 0 {
		b.of[what] = append(b.of[what], make([]int, more)...)
	}
	b.of[what][i]++
}

func (b *buckets) copy() (c counts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for what := range c {
		c[what] = slices.Clone(b.of[what])
	}
	return c
}

func total(counts []int) int { return sum(counts, 0, time.Duration(len(counts))*tick) }

// sum adds up the counts between two times, both rounded down to ticks.
func sum(counts []int, from, to time.Duration) int {
	n := 0
	for i := int(max(0, from) / tick); i < int(to/tick) && i < len(counts); i++ {
		n += counts[i]
	}
	return n
}
