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
// If in doubt, none. The zero MaxWait refuses at once, and the caller can do something else
// with its time. A wait helps with bursts that are shorter than the wait. It does not help
// with an overload: it only makes all calls late. A permit becomes free Limit/W times a
// second. So the last in a queue of q waits q × W / Limit. The default queue is as long as
// the limit, so its last waits for one W. Waits count against the caller's deadline. If the
// time that is left after the queue is too short, work is done for callers that have gone.
// A system that does that may not recover.
//
// Callers that wait are served in order of arrival. No call overtakes them, because no
// permit is free while a call waits.
//
// # Cost
//
// To take a permit and give it back is two compare-and-swaps on one word. Together they
// take about 7 ns, without a mutex or an allocation. But cores that all write one word slow
// each other down. When that has happened, and if the limit is at least 4 for each stripe,
// a permit that is given back goes into a cell. Each stripe has one cell, and the next call
// takes the permit from there. The limit stays exact, because a permit in a cell counts as
// taken. A call looks in its own cell, then for a permit that nobody has taken, and then in
// the other cells. Only then is it refused.
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
