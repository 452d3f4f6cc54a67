package admission

// ranks is how many places in the order of priority and class there are. Hedges do
// not wait.
const ranks = priorities * 2

// rank is where a waiting request stands: the higher, the sooner it is served, and
// the later it has to make room.
func rank(p Priority, c Class) int {
	r := 2 * p.index()
	if c == First {
		r++
	}
	return r
}

// queue is who waits: a list for each rank, in order of arrival.
type queue struct {
	lists [ranks]list
	used  uint32 // bit r: lists[r] is not empty
	len   int
}

type list struct{ oldest, newest *Ticket }

func (q *queue) push(t *Ticket) {
	l := &q.lists[t.rank]
	t.older, t.newer = l.newest, nil
	if l.newest == nil {
		l.oldest = t
	} else {
		l.newest.newer = t
	}
	l.newest = t
	q.used |= 1 << t.rank
	q.len++
}

func (q *queue) remove(t *Ticket) {
	l := &q.lists[t.rank]
	if t.older == nil {
		l.oldest = t.newer
	} else {
		t.older.newer = t.newer
	}
	if t.newer == nil {
		l.newest = t.older
	} else {
		t.newer.older = t.older
	}
	t.older, t.newer = nil, nil
	if l.oldest == nil {
		q.used &^= 1 << t.rank
	}
	q.len--
}
