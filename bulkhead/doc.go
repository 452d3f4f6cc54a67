// Package bulkhead limits how many calls are in flight at once, with an optional
// bounded wait for those that find no room.
//
// # Why
//
// A dependency that becomes slow takes its callers with it: each call in flight
// holds a goroutine, a connection, memory, and there are more and more of them.
// How many is Little's law:
//
//	L = λ × W
//
// calls in flight = calls a second × seconds a call takes. At 200 calls a second
// of 50 ms there are 10 in flight. When the calls take 5 s there are 1000, although
// nobody calls more often. A limit turns that round: with L bounded, the rate that
// is admitted falls to L/W as W grows, and the rest is refused at once. The
// compartment floods, the ship stays afloat.
//
// # Which limit
//
// Take λ at the busiest and W at normal latency, then leave room for chance. Calls
// that arrive independently of each other leave about a Poisson number in flight,
// of mean L and standard deviation √L, so L + 3√L refuses next to nobody while all
// is well: for the 10 above, 20. (Without a wait the share that is refused is
// Erlang's formula B; a test holds the package to it.) A limit far above that
// protects nothing: 1000 in flight is the outage of the example, not a limit.
//
// # Which wait
//
// None, when in doubt: the zero MaxWait refuses at once, and the caller can do
// something else with its time. A wait smooths bursts that are shorter than it is;
// it cures no overload, it only makes everybody late. Room comes free Limit/W
// times a second, so the last in a queue of q waits q × W / Limit. A queue as long
// as the limit, which is the default, is worth one W. Waits count against the
// caller's deadline: if they can exceed what is left of it after the queue, work
// is done for callers that have gone, and that is how systems collapse for good.
//
// Who waits is served in order of arrival, and nobody overtakes: while somebody
// waits, there is no free permit to take.
//
// # Cost
//
// A permit taken and given back is two compare-and-swaps on one word: about 7 ns the
// pair, no mutex, no allocation. Cores that all write one word take it from each other. So
// once they have got in each other's way, and if the limit is at least 4 for each stripe,
// permits that are given back lie in cells, one for each stripe, and the next call takes
// them from there. The limit stays exact: a permit in a cell counts as out. Who finds
// neither one in its own cell nor one that is not out looks into the other cells before it
// is refused.
//
// Only when somebody waits is there a mutex, and memory for the queue; to wait and
// be handed a permit takes about 60 ns then. A Limiter is one cache line of 64
// bytes, so two of them do not slow each other down; its cells are one line each.
//
// # What it does not do
//
// It does not adapt: the limit is as good as the estimate of λ and W, and knows
// nothing of what other processes send. It does not know whose permit comes back. A
// Release without a permit is a mistake of its caller: it frees a permit that somebody
// else still holds. (It is ignored when nothing is in flight, as long as there are no cells.)
package bulkhead
