// Package bulkhead limits how many calls are in flight at once, with an optional bounded wait.
//
// Without a limit a dependency that becomes slow fills its callers with calls: L = λ × W
// (Little's law: calls in flight = calls a second × seconds a call takes). A good limit is
// L + 3√L for the busiest λ and the normal W. If in doubt, let no call wait. To take a permit and
// give it back takes about 7 ns, to wait for one 60 ns more. A Limiter has 64 bytes. The page
// docs/mechanisms.md has the argument.
package bulkhead
