// Package stripe deals out the goroutines of a process among stripes: copies of a
// word that each lie in a cache line of their own. Cores that write one word take
// its line from each other, and a step then costs ten times as much.
//
// A goroutine has a seat by the address of its stack, and a seat has a stripe. One that
// loses a step (its compare-and-swap fails, because somebody else was quicker) calls Move,
// and is elsewhere from then on, as in Java's LongAdder. Seats belong to the process, so
// goroutines that are apart on one counter are apart on all. Here and Of take 2 ns.
package stripe

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

const (
	seatBits   = 12
	maxStripes = 64
)

// moves counts the moves of each seat. It is read all the time and hardly ever written.
var moves [1 << seatBits]atomic.Uint32

// Count returns how many stripes are enough: a power of two, at least twice the number of
// cores, and at most 64.
func Count() int {
	n := 2
	for n < min(2*runtime.GOMAXPROCS(0), maxStripes) {
		n <<= 1
	}
	return n
}

// A Seat is the place of a goroutine. It is valid during the call in which Here returned
// it, because stacks grow and end.
type Seat uint32

// Here returns the seat of the calling goroutine.
func Here() Seat {
	var spot byte
	// Stacks lie a few kilobytes apart, so their addresses differ in a few bits.
	at := uint64(uintptr(unsafe.Pointer(&spot))) >> 11
	return Seat(at * 0x9e3779b97f4a7c15 >> (64 - seatBits))
}

// Of returns the stripe of the seat, of n, which must be a power of two.
func (s Seat) Of(n int) int {
	return int((uint32(s) + moves[s].Load()*s.step()) & uint32(n-1))
}

// Move gives the seat another stripe.
func (s Seat) Move() { moves[s].Add(1) }

// step is odd, so a seat reaches every stripe. It differs between seats, so two that both
// lose a step do not move together.
func (s Seat) step() uint32 { return uint32(s)>>(seatBits-6)<<1 | 1 }
