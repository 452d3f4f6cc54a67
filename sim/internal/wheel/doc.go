// Package wheel is the event queue of the simulator: it gives events back by
// time, and those of one time in the order in which they were pushed, event for
// event as a heap keyed (time, sequence) would.
//
// The order has to be exact. A wheel that serves its buckets as they happen to
// lie is faster, but who comes first at a full server then depends on the
// layout, and the result of a run with it.
//
// # Why not a heap
//
// A heap of n events moves each of them along log n levels, on which from about
// a million events on every step is a cache miss. Here an event is moved two or
// three times in all, always to the end of some array, however many are pending.
//
// # How
//
// It is a calendar queue (Brown, CACM 31/10, 1988) that makes its own calendar
// (the ladder of Tang, Goh and Thng, ACM TOMACS 15/3, 2005):
//
//   - The top takes what lies beyond the calendar, as it comes.
//   - When the calendar runs out, the top is divided into up to 1024 buckets of
//     equal width, a power of two of nanoseconds, between its earliest and its
//     latest event: a rung.
//   - A bucket whose turn has come is sorted into the front, from which events
//     are popped. One that holds too many is divided in the same way on a finer
//     rung. So the width follows the density, wherever that changes; nothing has
//     to be set.
//   - What is pushed for the time of the front is inserted into it, or, if the
//     front is long, put into a small heap beside it; if that happens often, both
//     are divided on a finer rung, too.
//
// Every step keeps events of one time in their order: each time belongs to one
// place at any moment, each place is filled at its end, and is emptied as a whole
// before anything is pushed to the places it went to. So no event needs a
// sequence number, but those few in the heap. A bucket of one nanosecond is in
// order as it stands, whatever its size.
//
// # Cost
//
// An event is moved once for each rung it passes. Of n events evenly spread that
// are log(n)/log(1024) or so, whatever the scale of time; at worst, events
// on all scales at once, a rung resolves at least four of the 64 bits. A front is
// divided only when what was pushed into it is at least a fifth of what is moved,
// and the heap beside it holds no more than that fifth, or 64. So every push pays
// for a constant number of moves, and in no case is the whole dearer than a heap
// by more than a constant.
//
// Memory is 16 bytes for each event, in chunks of 1 KiB that drained buckets give
// back, and one chunk half full for each bucket in use, 1 MiB for a rung at most.
// Nothing is allocated once the largest number of pending events was reached, and
// the garbage collector finds no pointers in the chunks.
package wheel
