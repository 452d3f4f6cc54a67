package bulkhead

import (
	"sync"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
)

// JoinResult is the result of Join.
type JoinResult uint8

const (
	// Admitted: the caller has a permit, and must Release it.
	Admitted JoinResult = iota
	// Queued: the caller waits, and Admit is called when it gets a permit. Call Leave when
	// its Deadline passes.
	Queued
	// Refused: no permit is free and the caller may not wait for one.
	Refused
)

var joinResultNames = [...]string{"admitted", "queued", "refused"}

// String is the result in lower case, such as "admitted".
func (o JoinResult) String() string { return choice.Name("outcome", joinResultNames[:], o) }

// A Waiter is one caller's place in the queue of one Limiter. It may be used again after it
// has waited; while it waits it must not be copied or changed.
type Waiter struct {
	// Deadline is when the wait has lasted MaxWait, in the time of Join, which sets it. The
	// driver must call Leave then.
	Deadline time.Duration
	// Admit is called when the waiter has got a permit, outside of any lock, in the order
	// of the permits. It must not block, since later ones wait for it, but may call any
	// method of the Limiter. It may come after Leave has returned false. It may be nil.
	Admit func()

	// Guarded by the lock of the limiter's queue.
	prev, next *Waiter
	in         *Limiter // whose queue it stands in
	admitted   bool     // left that queue with a permit
}

// A queue has the waiters in order of arrival, and the Admits that are still to be called.
type queue struct {
	mu          sync.Mutex
	first, last *Waiter
	admits      []func() // of waiters that have their permit
	called      int      // how many of admits have been called
	calling     bool     // a goroutine is at it
}

// Join asks for a permit at now. If there is none, and the Config allows it, the caller
// waits: the result is Queued, and w holds its place. It does not block. A w that waits
// already keeps its place. With a nil w nobody waits.
func (l *Limiter) Join(now time.Duration, w *Waiter) JoinResult {
	if w == nil || l.maxWait <= 0 {
		if l.TryAcquire() {
			return Admitted
		}
		return Refused
	}
	if l.queue.Load() == nil {
		if l.TryAcquire() {
			return Admitted
		}
		l.queue.CompareAndSwap(nil, new(queue))
	}
	q := l.queue.Load()
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.in != nil {
		if w.in == l {
			return Queued
		}
		return Refused
	}
	w.admitted = false
	for {
		word := l.word.Load()
		if l.hasRoom(word) {
			if l.word.CompareAndSwap(word, word+oneInFlight) {
				return Admitted
			}
			continue
		}
		if word < oneWaiting && l.takeFromAnyCell() {
			return Admitted
		}
		if word>>32 >= uint64(l.maxQueue) {
			return Refused
		}
		if l.word.CompareAndSwap(word, word+oneWaiting) {
			break
		}
	}
	w.Deadline = saturating.Add(now, l.maxWait)
	q.push(l, w)
	// A permit may have come into a cell before w was in the queue. A later one goes to a
	// waiter.
	for q.first != nil && l.takeFromAnyCell() {
		if q.first == w {
			q.remove(w)
			l.word.Add(^uint64(oneWaiting - 1))
			return Admitted
		}
		l.admit(q)
	}
	return Queued
}

// Leave gives up the place of w. It returns false if w has got a permit; call Release then.
// If w does not wait, it returns true.
func (l *Limiter) Leave(w *Waiter) bool {
	q := l.queue.Load()
	if w == nil || q == nil {
		return true // nobody ever waited here
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.in == l {
		q.remove(w)
		l.word.Add(^uint64(oneWaiting - 1))
		return true
	}
	return !w.admitted
}

// admitFirst gives the caller's permit to the first waiter. It returns false if nobody
// waits.
func (l *Limiter) admitFirst() bool {
	q := l.queue.Load()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == nil {
		return false
	}
	l.admit(q)
	return true
}

// admit gives a permit to the first who waits. The lock is held.
func (l *Limiter) admit(q *queue) {
	w := q.first
	q.remove(w)
	w.admitted = true
	l.word.Add(^uint64(oneWaiting - 1)) // as many are out: the permit has a new owner
	if w.Admit != nil {
		q.admits = append(q.admits, w.Admit)
		q.callAdmits()
	}
}

// callAdmits calls the Admits in order, on one goroutine at a time, so an Admit that calls
// Release does not grow the stack. The lock is held before and after, and not during an
// Admit.
func (q *queue) callAdmits() {
	if q.calling {
		return
	}
	q.calling = true
	for q.called < len(q.admits) {
		admit := q.admits[q.called]
		q.admits[q.called] = nil
		q.called++
		q.callUnlocked(admit)
	}
	q.admits, q.called = q.admits[:0], 0
	q.calling = false
}

// callUnlocked calls admit without the lock. If admit panics, the Admits after it are still
// called, and then the panic goes on in an unrelated Release.
func (q *queue) callUnlocked(admit func()) {
	returned := false
	defer func() {
		q.mu.Lock()
		if !returned {
			q.calling = false
			q.callAdmits()
		}
	}()
	q.mu.Unlock()
	admit()
	returned = true
}

func (q *queue) push(l *Limiter, w *Waiter) {
	w.in, w.prev, w.next = l, q.last, nil
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
}

func (q *queue) remove(w *Waiter) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.in, w.prev, w.next = nil, nil, nil
}
