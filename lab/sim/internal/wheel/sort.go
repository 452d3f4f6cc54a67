package wheel

import (
	"math/bits"
	"slices"
)

const (
	insertionMost = 32 // events that are sorted by insertion
	binMost       = 64 // events in one bin
)

// sortBucket moves a bucket's events, which lie from first to latest, to the
// empty front, in order. It is stable. If too many lie close together for its
// method it is false, and the bucket as it was.
func (q *Queue) sortBucket(b *bucket, first, latest int64) bool {
	if b.n > insertionMost && first != latest {
		return q.binSort(b, first, latest)
	}
	for b.n > 0 {
		q.front = append(q.front, b.peek(&q.pool)...)
		b.drop(&q.pool)
	}
	if first != latest {
		insertionSort(q.front)
	}
	return true
}

// binSort distributes by counting into about as many bins as there are events,
// then sorts what is left in disorder by insertion.
func (q *Queue) binSort(b *bucket, first, latest int64) bool {
	n, base := b.n, uint64(first)
	shift := uint(max(bits.Len64(uint64(latest)-base)-bits.Len(uint(n))+1, 0)) & 63
	bins := (uint64(latest)-base)>>shift + 1
	q.bins = slices.Grow(q.bins[:0], int(bins))[:bins]
	clear(q.bins)
	counts := q.bins
	for id, left := b.first, n; left > 0; id, left = q.pool.next[id], left-chunkLen {
		for _, e := range q.pool.chunk(id)[:min(left, chunkLen)] {
			counts[(uint64(e.At)-base)>>shift]++
		}
	}
	sum, most := uint32(0), uint32(0)
	for i, c := range counts {
		counts[i] = sum
		sum += c
		most = max(most, c)
	}
	if most > binMost && shift > 0 {
		return false
	}
	q.front = slices.Grow(q.front[:0], n)[:n]
	front := q.front
	for b.n > 0 {
		for _, e := range b.peek(&q.pool) {
			at := &counts[(uint64(e.At)-base)>>shift]
			front[*at] = e
			*at++
		}
		b.drop(&q.pool)
	}
	if shift > 0 {
		insertionSort(front)
	}
	return true
}

func insertionSort(events []Event) {
	for i := 1; i < len(events); i++ {
		e := events[i]
		j := i
		for j > 0 && events[j-1].At > e.At {
			events[j] = events[j-1]
			j--
		}
		events[j] = e
	}
}
