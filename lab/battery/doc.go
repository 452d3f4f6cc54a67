// Package battery is the experiment that decides lull's defaults: the zero Policy against other
// clients' policies, in families of worlds ([Families]), each in outage and in peace. A policy that was
// tuned in one world knows that world. docs/defaults.md has the results, and lull battery --help the
// demands.
//
// A world has an outage, or it is stationary: nothing changes, or everything repeats itself from
// the beginning to the end. Each world with an outage also has its peace: the same world without
// the outage, where 1 % and 10 % of the attempts fail at once.
//
// Shares of successes differ when their difference is more than its 95 % interval, and more than
// a hundredth of a point. From three seeds on, the interval is that of the differences between
// runs with the same seed, which have the same arrivals. With fewer it is the binomial
// interval, which is too narrow where failures come together.
package battery
