package admission

// ranks is the number of ranks: two for each priority, since hedges do not wait.
const ranks = priorities * 2

// rank returns the rank of a waiting request. A higher rank is served sooner, and has to
// make room later.
func rank(p Priority, c AttemptKind) int {
	r := 2 * p.index()
	if c == First {
		r++
	}
	return r
}

// queue holds the tickets that wait: a list for each rank, in order of arrival.
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
