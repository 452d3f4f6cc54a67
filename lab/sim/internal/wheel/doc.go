// Package wheel is the event queue of the simulator. It returns events in the
// order of their time, and events of one time in the order in which they were
// pushed. A heap with the key (time, sequence) would return the same events in
// the same order.
//
// The order has to be exact. A wheel that does not sort its buckets is faster.
// But then the layout of the buckets decides which request comes first at a
// full server, and so it changes the result of a run.
//
// # Why not a heap
//
// A heap of n events moves each of them along log n levels. From about a
// million events on, every step is a cache miss. Here an event is moved two or
// three times in all, however many are pending. Each move goes to the end of an
// array.
//
// # How
//
// It is a calendar queue (Brown, CACM 31/10, 1988) that makes its own calendar
// (the ladder of Tang, Goh and Thng, ACM TOMACS 15/3, 2005):
//
//   - The top takes events that are later than the calendar, in the order in
//     which they are pushed.
//   - When the calendar is empty, the top is divided into a rung: up to 1024
//     buckets of equal width between its earliest and its latest event. The
//     width is a power of two of nanoseconds.
//   - A bucket whose turn has come is sorted into the front, from which events
//     are popped. A bucket with too many events is divided in the same way,
//     into a finer rung. So buckets are narrow where events are dense, and
//     there is nothing to configure.
//   - An event whose time is in the front is inserted into it. If the front is
//     long, the event goes into a small heap beside it. If that happens often,
//     front and heap are divided into a finer rung, too.
//
// Every step keeps events of one time in their order. A time belongs to one
// place at any moment. Events are appended at the end of a place. A place is
// emptied as a whole before anything is pushed to the places that its events
// went to. So no event needs a sequence number, except for those few in the
// heap. A bucket of one nanosecond is always in order, whatever its size.
//
// # Cost
//
// An event is moved once for each rung that it passes. If n events are evenly
// spread, there are about log(n)/log(1024) rungs, whatever the scale of time.
// The worst case is events on all scales at once: then a rung resolves at least
// four of the 64 bits. A front is divided only if the events that were pushed
// into it are at least a fifth of those that are moved. The heap beside it has
// at most that fifth, or 64. So every push pays for a constant number of moves.
// The whole never costs more than a heap by more than a constant.
//
// An event takes 16 bytes, in chunks of 1 KiB that empty buckets give back.
// Each bucket in use has on average one chunk that is half full, so a rung
// takes 1 MiB at most. After the largest number of pending events was reached,
// nothing is allocated. The garbage collector finds no pointers in the chunks.
package wheel
