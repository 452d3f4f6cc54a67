package queue

import (
	"slices"
	"sync"

	"github.com/lullgo/lull/engine/consumers"
)

// turns decides which messages are handled now. A message that was in hand in a crash waits until few others, or
// none, are handled beside it.
type turns struct {
	mu    sync.Mutex
	crowd consumers.Crowd
	wait  []*workInHand // the first waits for what is being handled
}

// arrive decides whether w begins, waits, or goes back.
func (l *turns) arrive(w *workInHand) {
	if w.decidedEarly != nil {
		return // its handler does not begin
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	begin, wait := l.crowd.Arrive(w.crashes)
	switch {
	case begin:
		w.begun = true
	case !wait && l.crowd.FreeDefer:
		w.sendBack = true
	default:
		w.turn = make(chan struct{})
		l.wait = append(l.wait, w)
	}
}

// next begins the messages whose turn it is. It calls beforeCrash before one that may crash.
func (l *turns) next(beforeCrash func()) {
	for {
		l.mu.Lock()
		if !l.crowd.BeginNext() {
			l.mu.Unlock()
			return
		}
		w := l.wait[0]
		w.begun = true
		l.removeFirst()
		l.mu.Unlock()
		if w.crashes > 0 {
			beforeCrash()
		}
		close(w.turn)
	}
}

// removeFirst removes the first of those that wait, with l.mu held.
func (l *turns) removeFirst() {
	l.wait = slices.Delete(l.wait, 0, 1)
	if len(l.wait) > 0 {
		l.crowd.SetNext(l.wait[0].crashes)
	}
}

// remove removes a message whose handler has ended, or does not begin.
func (l *turns) remove(w *workInHand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch i := slices.Index(l.wait, w); {
	case w.begun:
		l.crowd.End(w.crashes)
	case i == 0:
		l.crowd.DropNext()
		l.removeFirst()
	case i > 0:
		l.wait = slices.Delete(l.wait, i, i+1)
	}
}

func (l *turns) fetch(want int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.crowd.Fetch(want)
}
