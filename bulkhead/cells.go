package bulkhead

import (
	"sync/atomic"

	"github.com/lullgo/lull/internal/stripe"
)

// A cell holds permits that were given back and are still counted as out. A core takes
// from a cell that it alone writes, and gives back into it, so that cores do not take the
// limiter's word from each other twice for each call. The limit stays exact: to move a
// permit between flight and a cell does not change how many are out.
type cell struct {
	free atomic.Uint32
	_    [64 - 4]byte // a cache line of its ownCell
}

const (
	// lostStepsForCells is how often goroutines must get in each other's way before there are cells.
	lostStepsForCells = 16
	// perStripe is the smallest limit for each stripe with which there are cells: with
	// fewer permits those of other cells would be looked for all the time.
	perStripe = 4
)

// contended counts a step that somebody else was quicker to make.
func (l *Limiter) contended() {
	if l.lostSteps.Add(1) == lostStepsForCells {
		l.makeCells(stripe.Count())
	}
}

func (l *Limiter) makeCells(n int) {
	if int(l.size()) >= perStripe*n {
		cells := make([]cell, n)
		l.cells.Store(&cells)
	}
}

// take takes a permit out of the cell, if there is one.
func (c *cell) take() bool {
	for {
		n := c.free.Load()
		if n == 0 {
			return false
		}
		if c.free.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// ownCell is the cell of the goroutine that calls it.
func ownCell(cells []cell) (*cell, stripe.Seat) {
	seat := stripe.Here()
	return &cells[seat.Of(len(cells))], seat
}

// tryCells is TryAcquire with cells.
func (l *Limiter) acquireFromCells(cells []cell) bool {
	for c, seat := ownCell(cells); ; c = &cells[seat.Of(len(cells))] {
		n := c.free.Load()
		if n == 0 {
			break
		}
		if c.free.CompareAndSwap(n, n-1) {
			return l.unlessSomebodyWaits()
		}
		seat.Move()
	}
	for {
		w := l.word.Load()
		switch {
		case w >= oneWaiting:
			return false
		case !l.hasRoom(w):
			return l.takeFromAnyCell() && l.unlessSomebodyWaits()
		case l.word.CompareAndSwap(w, w+oneInFlight):
			return true
		}
	}
}

// takeAny takes a permit out of any cell, if there is one.
func (l *Limiter) takeFromAnyCell() bool {
	cells := l.cells.Load()
	if cells == nil {
		return false
	}
	for i := range *cells {
		if (*cells)[i].take() {
			return true
		}
	}
	return false
}

// unlessWaiting is the end of taking a permit out of a cell: if somebody waits for it,
// that one gets it, and unlessWaiting returns false.
func (l *Limiter) unlessSomebodyWaits() bool {
	if l.word.Load() < oneWaiting {
		return true
	}
	l.Release()
	return false
}

// keep puts a permit that is given back into a cell, or counts it as no longer out if
// there are enough in there. It returns false if the permit is still to be given back.
func (l *Limiter) putInCell(cells []cell) bool {
	c, seat := ownCell(cells)
	n := c.free.Load()
	if n >= l.size()/uint32(2*len(cells)) { // half of all permits may be in cells
		w := l.word.Load()
		return w < oneWaiting && uint32(w) > 0 && l.word.CompareAndSwap(w, w-oneInFlight)
	}
	if !c.free.CompareAndSwap(n, n+1) {
		seat.Move()
		return false
	}
	// Who began to wait before the permit was in the cell may not have found it there.
	return l.word.Load() < oneWaiting || !c.take()
}
