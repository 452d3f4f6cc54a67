// Package bulkhead limits how many calls are in flight at once, with an optional bounded
// wait for those that find no room.
//
// # Why
//
// A dependency that becomes slow also harms its callers. Each call in flight holds a
// goroutine, a connection and memory, and the number of calls in flight grows. Little's
// law has the number:
//
//	L = λ × W
//
// calls in flight = calls a second × seconds a call takes. At 200 calls a second of 50 ms
// there are 10 in flight. When the calls take 5 s there are 1000, although nobody calls
// more often. A limit bounds L. Then the rate that is admitted falls to L/W as W grows,
// and the other calls are refused at once.
//
// # Which limit
//
// Take λ at the busiest time and W at normal latency, then leave room for chance. Calls
// that arrive independently leave about a Poisson number in flight, of mean L and standard
// deviation √L. So L + 3√L refuses almost no call in normal operation: for the 10 above,
// 20. (Without a wait the share that is refused is Erlang's formula B, and a test checks
// the package against it.) A limit far above that protects nothing: 1000 in flight is the
// outage of the example.
//
// # Which wait
//
// None, when in doubt. The zero MaxWait refuses at once, and the caller can do something
// else with its time. A wait helps with bursts that are shorter than the wait. It does not
// help with an overload: it only makes all calls late. A permit becomes free Limit/W times
// a second, so the last in a queue of q waits q × W / Limit. A queue as long as the limit,
// which is the default, is a wait of one W. Waits count against the caller's deadline. If
// the time that is left after the queue is too short, work is done for callers that have
// gone, and a system that does that may not recover.
//
// Callers that wait are served in order of arrival. No call overtakes them: while one
// waits, there is no free permit to take.
//
// # Cost
//
// To take a permit and give it back is two compare-and-swaps on one word: about 7 ns
// together, no mutex, no allocation. Cores that all write one word slow each other down.
// So once that has happened, and if the limit is at least 4 for each stripe, permits that
// are given back go into cells, one for each stripe, and the next call takes them from
// there. The limit stays exact: a permit in a cell counts as out. If a call finds no
// permit in its own cell, and none that is not out, it searches the other cells before it
// is refused.
//
// A mutex, and memory for the queue, are used only when a call waits. To wait and get a
// permit from another call then takes about 60 ns. A Limiter is one cache line of 64
// bytes, so two of them do not slow each other down. Its cells are one line each.
//
// # What it does not do
//
// It does not adapt: the limit is as good as the estimate of λ and W, and knows nothing of
// what other processes send. It does not know whose permit is given back. A Release
// without a permit is a mistake of its caller: it frees a permit that another call still
// holds. (It is ignored when nothing is in flight, as long as there are no cells.)
package bulkhead
