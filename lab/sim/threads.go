package sim

import (
	"github.com/lullgo/lull/engine"
)

// threads are those of one process of a fleet (Fleet.Threads).
type threads struct {
	busy    int
	waiting ring // flights
}

// takeThread gives the call f of process p a thread. Without a free one the call waits for it, or ends at once: then it
// reports false.
func (w *world) takeThread(i uint32, f *flight, o *origin, p uint32) bool {
	f.process, f.began = p, w.now
	w.rec.callBegins(w.now, o)
	switch t := &o.threads[p]; {
	case t.busy < o.fleet.Threads:
		t.busy++
		return true
	case t.waiting.n < o.fleet.Backlog:
		t.waiting.push(i)
	default:
		w.rec.callEnds(w.now, w.now, engine.Limited, 0, o)
		w.rec.userLeft(w.now, w.now)
		w.flights.release(i)
	}
	return false
}

// freeThread gives the thread of a call that has ended to the call that has waited the longest.
func (w *world) freeThread(o *origin, p uint32) {
	t := &o.threads[p]
	if t.waiting.n == 0 {
		t.busy--
		return
	}
	i := t.waiting.popFront()
	w.at(w.now, eventCallAgain, w.flights.at(i).gen, i)
}
