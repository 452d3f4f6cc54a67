package wheel

// insertMost is the longest front into which a push is inserted in place. Into a
// longer one it goes through late.
const insertMost = 64

func (q *Queue) pushFront(e Event) {
	n := len(q.front) - q.head
	switch {
	case len(q.late.events) > 0 || n > insertMost && e.At < q.front[len(q.front)-1].At:
		q.late.push(e)
		q.safe = q.head
		if len(q.late.events) > max(insertMost, n/4) {
			q.split()
		}
	case n == 0 || e.At >= q.front[len(q.front)-1].At:
		q.room()
		q.front = append(q.front, e)
		q.safe = len(q.front)
		if n >= q.most {
			q.split()
		}
	default:
		q.insert(e)
	}
}

// room makes room for one more at the end of the front, if there is some at its
// beginning.
func (q *Queue) room() {
	if len(q.front) == cap(q.front) && q.head > len(q.front)/2 {
		q.front = q.front[:copy(q.front, q.front[q.head:])]
		q.head = 0
	}
}

// insert puts an event into its place, which is not the last.
func (q *Queue) insert(e Event) {
	if q.head > 0 {
		// Popped events have left room: move the shorter part.
		mid := int(uint(q.head+len(q.front)) / 2)
		if e.At < q.front[mid].At {
			i := q.head
			for q.front[i].At <= e.At {
				q.front[i-1] = q.front[i]
				i++
			}
			q.front[i-1] = e
			q.head--
			return
		}
	}
	q.room()
	i := len(q.front)
	q.front = append(q.front, e)
	for i > q.head && q.front[i-1].At > e.At {
		q.front[i] = q.front[i-1]
		i--
	}
	q.front[i] = e
	q.safe = len(q.front)
}

// split divides a front that has become too long, and late, on a new rung, and
// fills the front again with the first of it.
func (q *Queue) split() {
	for q.depth > 0 && q.rungs[q.depth-1].spent(q.frontLast) {
		q.depth--
	}
	rest := q.front[q.head:]
	var first, latest int64
	if len(rest) > 0 {
		first, latest = rest[0].At, rest[len(rest)-1].At
	} else {
		first, latest = q.late.events[0].At, q.late.events[0].At
	}
	for _, e := range q.late.events {
		first, latest = min(first, e.At), max(latest, e.At)
	}
	r := q.pushRung(len(rest)+len(q.late.events), first, latest, q.frontLast)
	r.spread(&q.pool, rest)
	for len(q.late.events) > 0 { // in order, for the sake of those at one time
		r.add(&q.pool, q.late.pop())
	}
	q.refill()
}
