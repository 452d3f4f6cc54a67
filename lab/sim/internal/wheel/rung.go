package wheel

import (
	"math"
	"math/bits"
)

const (
	minBuckets = 16
	maxBuckets = 512
	perBucket  = 8 // events, of few
	few        = 4096
	perLarge   = 512 // events in a bucket, of more: the longer the front, the farther ahead one can see
)

// A rung divides a stretch of time into buckets of 2^shift ns, from base on, and
// one more for the rest, until last.
type rung struct {
	base, last int64
	shift      uint
	cur        int // buckets before it are empty
	buckets    []bucket
}

// add files an event that is due neither before the current bucket nor after
// last.
func (r *rung) add(p *pool, e Event) {
	i := min((uint64(e.At)-uint64(r.base))>>r.shift, uint64(len(r.buckets)-1))
	r.buckets[i].add(p, e)
}

func (r *rung) spread(p *pool, events []Event) {
	base, shift, buckets := uint64(r.base), r.shift&63, r.buckets
	for _, e := range events {
		b := &buckets[min((uint64(e.At)-base)>>shift, uint64(len(buckets)-1))]
		i := uint(b.n) % chunkLen // bucket.add, which the compiler does not inline
		if i == 0 {
			b.grow(p)
		}
		b.tail[i] = e
		b.n++
	}
}

// skip moves on to the first bucket that is not empty, or the last of all.
func (r *rung) skip() {
	for r.cur < len(r.buckets)-1 && r.buckets[r.cur].n == 0 {
		r.cur++
	}
}

// spent reports whether nothing is left, nor can be added, with the front at t.
func (r *rung) spent(t int64) bool {
	if r.last > t {
		return false
	}
	r.skip()
	return r.buckets[r.cur].n == 0
}

// pushRung adds a rung for n events that lie from first to latest, with room
// until last.
func (q *Queue) pushRung(n int, first, latest, last int64) *rung {
	if q.depth == len(q.rungs) {
		q.rungs = append(q.rungs, rung{})
	}
	r := &q.rungs[q.depth]
	q.depth++
	each := perBucket
	if n > few {
		each = perLarge
	}
	count := min(max(1<<bits.Len(uint(n/each)), minBuckets), maxBuckets)
	span := uint64(latest) - uint64(first)
	shift := max(bits.Len64(span)-bits.Len(uint(count-1)), 0)
	used := int(span>>shift) + 1
	if cap(r.buckets) < used+1 {
		r.buckets = make([]bucket, maxBuckets+1) // all empty, as are those left behind
	}
	r.base, r.last, r.shift, r.cur = first, last, uint(shift), 0
	r.buckets = r.buckets[:used+1]
	return r
}

// refill moves the earliest of the pending events to the front, which is empty.
func (q *Queue) refill() bool {
	q.front, q.head = q.front[:0], 0
	for {
		if q.depth == 0 {
			if q.top.n == 0 {
				q.guard()
				return false
			}
			b := q.top
			q.top = bucket{}
			if q.settle(b, q.topFirst, q.topLast, q.topLast) {
				return true
			}
			continue
		}
		r := &q.rungs[q.depth-1]
		rest := len(r.buckets) - 1
		r.skip()
		b := &r.buckets[r.cur]
		if r.cur == rest {
			q.depth--
			if b.n > 0 {
				taken, last := *b, r.last
				b.n = 0
				first, latest := q.extent(taken)
				if q.settle(taken, first, latest, last) {
					return true
				}
			}
			continue
		}
		first := int64(uint64(r.base) + uint64(r.cur)<<r.shift)
		if r.shift == 0 && b.n > chunkLen && first != before(first) {
			// One instant: as it stands it is in order. It is taken by chunks, and
			// what is pushed for that instant meanwhile is added behind.
			q.front = append(q.front, b.peek(&q.pool)...)
			b.drop(&q.pool)
			q.frontLast = first - 1
			q.fill()
			return true
		}
		// The end of the bucket, unless that is past the end of time.
		latest := int64(uint64(first) + (1<<r.shift - 1))
		if latest < first {
			latest = math.MaxInt64
		}
		last := min(latest, r.last)
		taken := *b
		b.n = 0
		r.cur++
		if taken.n > q.sortMost() && r.shift > 0 {
			if taken.n <= few { // for more, a look at all costs what it saves
				first, latest = q.extent(taken)
			}
			q.spawn(taken, first, latest, last)
			continue
		}
		if q.settle(taken, first, latest, last) {
			return true
		}
	}
}

// sortMost is the size up to which a bucket is sorted, not divided. In a front of
// a small share of all that is pending few pushes land.
func (q *Queue) sortMost() int { return max(min(q.n/64, 1<<17), min(48+q.n/16, 128)) }

// settle sorts a bucket of events that lie from first to latest into the front,
// or, if there are too many, or too many in one place, divides it, and is false.
func (q *Queue) settle(b bucket, first, latest, last int64) bool {
	if first == latest && b.n > chunkLen && first != before(first) || b.n > q.sortMost() && first != latest {
		q.spawn(b, first, latest, last)
		return false
	}
	if !q.sortBucket(&b, first, latest) {
		first, latest = q.extent(b)
		q.spawn(b, first, latest, last)
		return false
	}
	q.frontLast = last
	q.fill()
	return true
}

// fill completes a new front.
func (q *Queue) fill() {
	q.most = max(2*len(q.front), 4*chunkLen)
	q.guard()
}

func (q *Queue) spawn(b bucket, first, latest, last int64) {
	r := q.pushRung(b.n, first, latest, last)
	for b.n > 0 {
		r.spread(&q.pool, b.peek(&q.pool))
		b.drop(&q.pool)
	}
}

func (q *Queue) extent(b bucket) (first, latest int64) {
	first, latest = q.pool.chunk(b.first)[0].At, q.pool.chunk(b.first)[0].At
	for id, n := b.first, b.n; n > 0; id, n = q.pool.next[id], n-chunkLen {
		for _, e := range q.pool.chunk(id)[:min(n, chunkLen)] {
			first, latest = min(first, e.At), max(latest, e.At)
		}
	}
	return first, latest
}
