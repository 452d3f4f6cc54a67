// Package bulkhead limits how many calls are in flight at once, with an optional bounded
// wait for those that find no room.
//
// Without a limit a dependency that becomes slow fills its callers with calls: L = λ × W
// (Little's law: calls in flight = calls a second × seconds a call takes). A good limit is
// L + 3√L for the busiest λ and the normal W. If in doubt, let no call wait.
//
// To take a permit and give it back takes about 7 ns, without a mutex or an allocation; to
// wait for one takes about 60 ns more. A Limiter is one cache line of 64 bytes. It does not
// adapt, and does not know whose permit is given back. The page docs/mechanisms.md has the
// argument and how the permits are kept.
package bulkhead
