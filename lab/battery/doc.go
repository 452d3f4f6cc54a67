// Package battery is the experiment that decides lull's defaults: the zero Policy against other
// clients' policies, in families of worlds ([Families]), each in outage and in peace. A policy that was
// tuned in one world knows that world. docs/defaults.md has the results, and lull battery --help the
// demands.
//
// A world has an outage, or it is stationary: nothing changes, or everything repeats itself from
// the beginning to the end. Each world with an outage also has its peace: the same world without
// the outage, where 1 % and 10 % of the attempts fail at once.
//
// A difference counts if it is more than chance, and more than the least that counts: 0.2 points of success,
// [World.Slack], 3 % of the attempts, 10 % of what callers hold and 2 % of the attempt timeout for each call. Runs
// with the same seed have the same arrivals. Chance is the 95 % interval: from three seeds on that of the differences
// between runs with the same seed. With fewer it is the binomial interval of successes, which is too narrow where
// failures come together, and that of exponential times. A rival is better in a figure if the difference counts. It is
// worse if the difference is more than the least, even if that may be chance.
//
// [Fresh] draws worlds of the families by a seed, for a judgement that nobody tuned to.
package battery
