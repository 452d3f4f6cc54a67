package bulkhead

import (
	"sync/atomic"

	"github.com/lullgo/lull/internal/stripe"
)

// A cell holds free permits that the word still counts as out. A core takes permits from a
// cell of its own, and gives them back to it, so cores do not take the word's cache line
// from each other. The limit stays exact: to move a permit into a cell does not change how
// many are out.
type cell struct {
	free atomic.Uint32
	_    [64 - 4]byte // a cache line of its own
}

const (
	// Cells are made when goroutines were in each other's way so often.
	lostStepsForCells = 16
	// perStripe is the smallest limit for each stripe with which there are cells. With
	// fewer permits, goroutines would search the cells of others all the time.
	perStripe = 4
)

// contended counts a step that another goroutine was quicker to make.
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

// ownCell returns the cell of the calling goroutine.
func ownCell(cells []cell) (*cell, stripe.Seat) {
	seat := stripe.Here()
	return &cells[seat.Of(len(cells))], seat
}

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

// unlessSomebodyWaits ends the taking of a permit out of a cell. If somebody waits, that
// caller gets the permit, and the result is false.
func (l *Limiter) unlessSomebodyWaits() bool {
	if l.word.Load() < oneWaiting {
		return true
	}
	l.Release()
	return false
}

// putInCell puts a permit that is given back into a cell, or counts it as no longer out if
// the cell has enough. It returns false if the permit is still to be given back.
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
	// Whoever began to wait before may not have found the permit in the cell.
	return l.word.Load() < oneWaiting || !c.take()
}
