// Package backoff computes how long to wait before a call is tried again.
//
// Each wait is longer than the one before, because the dependency has been down for longer.
// It is random, so that callers that failed together do not come back together. The wait
// before retry n (the first is 1) depends on a ceiling c:
//
//	Exponential  min(Cap, Base × Factor^(n-1))
//	Linear       min(Cap, Base × n)
//	Constant     min(Cap, Base)
//	Immediate    0, and no second retry
//	Ethernet     (2^min(n,10) - 1) slots, and no sixteenth retry (IEEE 802.3, 4.2.3.2.5)
//
// The wait is a random time in this range, whose ends belong to it:
//
//	Full          [Floor, c]                     AWS, "Exponential Backoff and Jitter", 2015
//	Equal         [max(c/2, Floor), c]           the same
//	Decorrelated  min(Cap, [Base, 3 × previous]) the same
//	Proportional  [0.8c, 1.2c], c <= Cap/1.2     gRPC's proposal A6, but for the bound on c
//	None          c
//
// All times of the range are equally likely. The Cap holds after jitter, jitter does not
// vanish at the Cap, and nothing overflows. Delay takes about 15 ns in addition to the
// random number, and allocates nothing. The page docs/mechanisms.md has the argument, the
// measurements, and which jitter to take.
package backoff
