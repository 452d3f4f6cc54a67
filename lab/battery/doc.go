// Package battery is the experiment that decides lull's defaults: the zero Policy against other
// clients' policies, in families of worlds, each in outage and in peace.
//
// # Why so many worlds
//
// A policy that was tuned in one world knows that world. The first defaults of lull were chosen
// on one service (100 workers, one queue, attempts of a second: the family grid here), and there
// they have no equal. Where a dependency hangs without a queue, where answers take seconds and
// failures come at once, or where one host of twenty is sick, others were better.
//
// # A world
//
// [Families] has them: parameters, and the values that they take. Most begin with the same
// service (100 workers of 100 ms, 1,000 requests/s, a queue of 10,000) and change the parameters
// of the family. A world has an outage, or it is stationary: nothing changes, or everything repeats
// itself from the beginning to the end. Each world with an outage also has its peace: the same
// world without the outage, where 1 % and 10 % of the attempts fail at once.
//
// # What is demanded
//
//	success      where nothing changes, and in peace, no fewer calls succeed than without retries
//	back         it is back no later than without retries, but for 2 s or 2 % of the outage
//	undominated  no rival is quicker back (by the same measure) and better in peace; one that has a
//	             limit on attempts in flight, a number about the server, is met with the same limit
//	floor        as many calls succeed as the world names, such as 98.5 % at 20 % quick errors
//	attempts     in a total outage: over any minute attempts ≤ 1.1 × calls + 2 × processes
//	within       in the grid, it is back as soon as the first defaults were
//
// # Resolution
//
// Shares of successes differ when their difference is more than its 95 % interval, and more than
// a hundredth of a point. From three seeds on, the interval is that of the differences between
// runs with the same seed, which have the same arrivals. With fewer seeds it is the binomial
// interval, which is too narrow where failures come together. A time to recover is that of
// [sim.Recovery].
//
// # Running it
//
//	go run ./cmd/lull battery --quick             a first look: one seed, shorter worlds
//	go run ./cmd/lull battery                     all of it, five seeds
//	go run ./cmd/lull battery --family hangs --policy mine.yaml
//	go test ./lab/battery                    a part of it
package battery
