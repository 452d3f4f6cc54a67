// Package draw is chance for a simulator whose results are the same bit for bit on every machine.
//
// Every number is a function of what it is for: [Mix] folds words (seed, client, attempt) into a
// key, and [From] opens as many words as are needed at that key. So a run does not depend on the order of
// events, and 25 million clients need no generators of their own. [Log], [Exp] and [Normal] use +, -,
// *, / and the square root alone, which IEEE 754 defines to the last bit, and each product is
// converted, float64(x*y), which forbids to fuse it (Go specification, "Floating-point operators").
// They are accurate to about one unit in the last place.
//
// Words come from SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), a counter finished by Stafford's
// 13th variant of MurmurHash3's finalizer. It is not for secrets. On an x86-64 server Mix takes
// 1.2 ns, a word and its Exponential 5 ns, a word and its Normal 10 ns. Nothing allocates.
package draw
