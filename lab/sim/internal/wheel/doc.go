// Package wheel is the event queue of the simulator. It returns events in the order of their time,
// and events of one time in the order in which they were pushed, as a heap with the key (time,
// sequence) would. That order has to be exact: it decides which request comes first at a full server.
//
// It is a calendar queue (Brown, CACM 31/10, 1988) that makes its own calendar (the ladder of Tang,
// Goh and Thng, ACM TOMACS 15/3, 2005). The top takes events that are later than the calendar. When
// that is empty, the top is divided into a rung of buckets of equal width. A bucket whose turn has
// come is sorted into the front, from which events are popped, or divided into a finer rung. A time
// belongs to one place at any moment, and a place is emptied as a whole, so events of one time stay
// in their order.
//
// An event is moved two or three times, however many are pending; a heap of millions is a cache miss
// on each of its levels. In the worst case, events on all scales at once, a rung resolves four of the
// 64 bits. An event takes 16 bytes, in chunks of 1 KiB that empty buckets give back. Once the most
// pending events were reached, nothing is allocated.
package wheel
