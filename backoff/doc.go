// Package backoff computes how long to wait before a call is tried again.
//
// # Why wait, and why at random
//
// A retry at once finds the dependency still down, and adds to its load. So each wait is
// longer than the one before. After each failure the dependency has been down for longer,
// and needs more room to recover. But callers that failed together would come back together
// every time, because they all wait for the same time. Random waits (jitter) separate them.
//
// In a model 194 callers fail at the same moment. The backend has a load of 500 other calls
// a second, and can do 600. With exponential waits from 100 ms without jitter, the busiest
// 50 ms after recovery have 8.8 times the normal load, and 88 % of the 194 callers give up
// after six attempts. With full jitter the load is 3.4 times the normal one, and 1 % give
// up.
//
// # The formulas
//
// The wait before retry n (the first is 1) depends on c:
//
//	Exponential  min(Cap, Base × Factor^(n-1))
//	Linear       min(Cap, Base × n)
//	Constant     min(Cap, Base)
//	Immediate    0, and no second retry
//	Ethernet     (2^min(n,10) - 1) slots, and no sixteenth retry (IEEE 802.3, 4.2.3.2.5)
//
// The wait is a random time in this range:
//
//	Full          [Floor, c]                     AWS, "Exponential Backoff and Jitter", 2015
//	Equal         [max(c/2, Floor), c]           the same
//	Decorrelated  min(Cap, [Base, 3 × previous]) the same
//	Proportional  [0.8c, 1.2c], c <= Cap/1.2     gRPC's proposal A6, but for the bound on c
//	None          c
//
// All times of the range are equally likely, and its ends belong to it. Ethernet waits for
// whole slots.
//
// Other libraries often make three mistakes here. This package avoids them. The Cap holds
// after jitter. Jitter does not vanish at the Cap: when all callers have reached it, their
// waits still have the whole range. (Decorrelated is an exception, see below.) A Floor makes
// the range smaller. It does not replace all shorter waits with one wait of the Floor, which
// many callers would have in common. Nothing overflows, at any retry number.
//
// # Which jitter
//
//	Full          If in doubt. The zero value. Of the three kinds in the AWS article it
//	              needs the fewest calls for the same work, from 20 clients up.
//	Equal         If every wait must have a minimum. About as many calls as Full. The last
//	              of many callers is served 26 to 66 % later.
//	Decorrelated  If many callers fail together. The first retries have the widest range:
//	              of 100 000 callers 1344 come in the busiest 20 ms after a base of 1 s.
//	              (Full 3141, Equal 4129.) Up to 38 % more calls than Full in the AWS
//	              simulation.
//	Proportional  If the wait should be predictable, or as in gRPC. The narrowest range.
//	None          For a single caller, and for tests.
//
// Compare them at equal mean waits. The mean wait of Full is half of that of None. So in a
// long outage Full sends twice the attempts, with the same Base and Cap. In 980 simulations
// of many callers None was replaced with Full at the same Base. The errors became fewer by
// more than a tenth in 28 % of the simulations, and more in 29 %. With twice the Base it was
// 46 % and 15 %. So double the Base when you change from None to Full.
//
// Many Decorrelated waits equal the Cap, because a longer wait becomes the Cap. In the long
// run this share is 78 % for a Cap of 2 × Base, 68 % for 3 ×, 48 % for 10 ×, 31 % for 100 ×
// and 25 % for 1000 ×. But the callers do not come together, because their earlier waits
// differed. The exception is a Cap below 3 × Base. Then a part of the callers that failed
// together comes back at the same moment after the first wait: half of them at a Cap of 2 ×
// Base. With Full no share of waits equals the Cap.
//
// # What it does not do
//
// Backoff moves load to a later time, and does not reduce it. If new callers keep coming,
// they send the same number of retries, with jitter or without. A service that has collapsed
// under so many attempts stays down. A retry budget is needed there. The package does not
// sleep, reads no clock, does not stop at a deadline, and does not know what the server
// asked for.
//
// # Cost
//
// Delay takes about 15 ns in addition to the random number, and allocates nothing. A
// Schedule is plain data of 48 bytes, without state. It is comparable, and any number of
// calls and goroutines can share it.
package backoff
