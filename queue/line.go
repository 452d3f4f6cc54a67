package queue

import (
	"slices"
	"sync"

	"github.com/lullgo/lull/engine"
)

// line is the messages that are being handled, and those that wait for their turn, because they or
// others may crash this process.
type line struct {
	mu    sync.Mutex
	crowd engine.Crowd
	wait  []*work // the first waits for what is being handled
}

// come lets w begin, or has it wait or go back.
func (l *line) come(w *work) {
	if w.first != nil {
		return // its handler does not begin
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	begin, wait := l.crowd.Arrive(w.crashes)
	switch {
	case begin:
		w.begun = true
	case !wait && l.crowd.FreeDefer:
		w.back = true
	default:
		w.turn = make(chan struct{})
		l.wait = append(l.wait, w)
	}
}

// next lets those begin whose turn it is, after calling alone if they may crash.
func (l *line) next(alone func()) {
	for {
		l.mu.Lock()
		if !l.crowd.BeginNext() {
			l.mu.Unlock()
			return
		}
		w := l.wait[0]
		w.begun = true
		l.shift()
		l.mu.Unlock()
		if w.crashes > 0 {
			alone()
		}
		close(w.turn)
	}
}

// shift removes the first of those that wait, with l.mu held.
func (l *line) shift() {
	l.wait = slices.Delete(l.wait, 0, 1)
	if len(l.wait) > 0 {
		l.crowd.SetNext(l.wait[0].crashes)
	}
}

// leave is for a message whose handler has ended, or does not begin.
func (l *line) leave(w *work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch i := slices.Index(l.wait, w); {
	case w.begun:
		l.crowd.End(w.crashes)
	case i == 0:
		l.crowd.DropNext()
		l.shift()
	case i > 0:
		l.wait = slices.Delete(l.wait, i, i+1)
	}
}

func (l *line) fetch(want int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.crowd.Fetch(want)
}
