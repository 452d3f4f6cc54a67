package wheel

import "math"

// An Event is something that happens at a time of the simulation.
type Event struct {
	At   int64  // nanoseconds of virtual time, any value
	Data uint64 // the caller's
}

// A Queue holds events until their time comes. Make one with New. It is not safe
// for concurrent use.
type Queue struct {
	// The front: what comes next, in order. Nothing elsewhere is due at or before
	// frontLast but late, and nothing that is pushed for such a time goes elsewhere.
	front     []Event
	head      int // first of front that was not popped
	safe      int // front[head:safe] comes before all of late: len(front) if late is empty, otherwise head
	frontLast int64
	most      int // a front longer than this is spread again

	late lateHeap // pushed for the time of a front too long to insert into

	// Rungs, the later the finer: each divides the one bucket of the rung before
	// that is being drained.
	rungs []rung
	depth int // rungs in use

	top      bucket // beyond all rungs
	topFirst int64  // earliest in top
	topLast  int64  // latest in top

	pool pool
	bins []uint32 // of sortBucket

	now int64 // of the last pop
	n   int
}

// New returns an empty queue. Expected is a rough number of pending events, for
// which it makes room; any number will do.
func New(expected int) *Queue {
	q := &Queue{now: math.MinInt64, frontLast: math.MinInt64}
	q.front = make([]Event, 0, 2*chunkLen)
	q.pool.reserve(min(max(expected, 0), 1<<26) / chunkLen)
	return q
}

// Len is the number of pending events.
func (q *Queue) Len() int { return q.n }

// Push adds an event. It comes after all those pending for the same time. A time
// before that of the last popped event counts as that time.
func (q *Queue) Push(at int64, data uint64) {
	at = max(at, q.now)
	if q.n == 0 {
		q.restart()
	}
	q.n++
	if at <= q.frontLast {
		q.pushFront(Event{at, data})
		return
	}
	if q.depth == 0 || at > q.rungs[0].last {
		if q.top.n == 0 {
			q.topFirst, q.topLast = at, at
		} else {
			q.topFirst, q.topLast = min(q.topFirst, at), max(q.topLast, at)
		}
		q.top.add(&q.pool, Event{at, data})
		return
	}
	d := q.depth - 1
	for at > q.rungs[d].last {
		d--
	}
	q.rungs[d].add(&q.pool, Event{at, data})
}

// restart forgets the division of time, once nothing is pending: what is pushed
// from now on is gathered until the next look at the front, and divided anew.
func (q *Queue) restart() {
	q.depth = 0
	q.front, q.head, q.safe = q.front[:0], 0, 0
	q.frontLast = before(q.now)
}

// before is the last time before t, or t if there is none.
func before(t int64) int64 {
	if t == math.MinInt64 {
		return t
	}
	return t - 1
}

// Pop removes the earliest event, of several at one time that which was pushed
// first. It is false if nothing is pending.
func (q *Queue) Pop() (Event, bool) {
	if q.head < q.safe {
		e := q.front[q.head]
		q.head++
		q.n--
		q.now = e.At
		return e, true
	}
	return q.popSlow()
}

func (q *Queue) popSlow() (e Event, ok bool) {
	if !q.ready() {
		return Event{}, false
	}
	if q.lateFirst() {
		e = q.late.pop()
	} else {
		e = q.front[q.head]
		q.head++
	}
	q.n--
	q.now = e.At
	q.guard()
	return e, true
}

// Next is the time of the earliest event; false if nothing is pending.
func (q *Queue) Next() (at int64, ok bool) {
	if q.head < q.safe {
		return q.front[q.head].At, true
	}
	if !q.ready() {
		return 0, false
	}
	if q.lateFirst() {
		return q.late.events[0].At, true
	}
	return q.front[q.head].At, true
}

// Upcoming returns some of the next events, at most n, in order. There may be fewer
// than are pending, also none, and others that come between them may be missing.
// They are to be read only, until the next call of Push or Pop. It is meant for
// asking for the memory that they refer to before it is needed.
func (q *Queue) Upcoming(n int) []Event {
	if q.head >= q.safe && !q.ready() {
		return nil
	}
	next := q.front[q.head:]
	return next[:min(max(n, 0), len(next))]
}

// ready fills the front if it is empty; it is false if nothing is pending.
func (q *Queue) ready() bool {
	if q.head < len(q.front) || len(q.late.events) > 0 {
		return true
	}
	return q.n > 0 && q.refill()
}

// lateFirst reports whether the earliest event is in late. At one time the front
// goes first: what is in late was pushed after the front was sorted.
func (q *Queue) lateFirst() bool {
	if len(q.late.events) == 0 {
		return false
	}
	return q.head == len(q.front) || q.late.events[0].At < q.front[q.head].At
}

// guard sets how much of the front may be popped without a look at late.
func (q *Queue) guard() {
	q.safe = len(q.front)
	if len(q.late.events) > 0 {
		q.safe = q.head
	}
}
