// Package backoff computes how long to wait before a call is tried again.
//
// Each wait is longer than the one before, because the dependency has been down for longer. It
// is random, so that callers that failed together do not come back together. [Kind] has the
// formulas of the ceiling of the waits, and [Jitter] those of the random range. All times of the
// range are equally likely, and its ends belong to it. The Cap holds after jitter, jitter does
// not vanish at the Cap, and nothing overflows. Delay takes about 15 ns in addition to the random
// number, and allocates nothing. The page docs/mechanisms.md has the argument, the sources, the
// measurements, and which jitter to take.
package backoff
