// Package draw is chance for a simulator whose results are the same bit for bit on
// every machine.
//
// Two things stand against that. The first is order: a shared generator gives each
// its numbers in the order in which they ask, so that one more call anywhere
// changes everybody's luck. Here every number is a function of what it is for
// (seed, client, attempt, ...): [Mix] folds words into a key, [From] opens as many
// words as are needed at that key, and nothing is kept in between. A run does not
// depend on the order of events or the number of cores, and 25 million clients
// need no generators of their own.
//
// The second is arithmetic. Go may compute x*y+z with one rounding where the
// machine has an instruction for it (arm64, ppc64, s390x, riscv64, amd64 from v3),
// and does not on others; and math.Log and math.Exp are assembly on some machines, whose last bits
// differ. So [Log], [Exp] and [Normal] are written here with +, -, *, / and the
// square root alone, which IEEE 754 defines to the last bit, and each product is
// converted, float64(x*y), which forbids to fuse it (Go specification,
// "Floating-point operators"). A test compiles the package for arm64 and looks for
// the instructions. They are accurate to about one unit in the last place.
//
// # The words
//
// Words come from SplitMix64: a counter that steps by the golden ratio, finished by
// Stafford's 13th variant of MurmurHash3's finalizer (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014). It is not for secrets.
//
// # Cost
//
// On an x86-64 server, one core: Mix 1.2 ns, a source and its first word 2 ns, a
// word and its Exponential 5 ns (math.Log alone is 6), a word and its Normal 10 ns.
// Nothing allocates. The tables are 1.3 KiB.
package draw
