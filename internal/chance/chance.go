// Package chance turns a source of random bits into what the engine draws. The
// driver of the engine provides the source: 64 uniform bits a call, such
// as math/rand/v2's Uint64. With a nil source each draw is the middle of its
// range.
package chance

import "math/bits"

// Middle is the draw of a nil source.
const Middle = 1 << 63

// Bits asks source for 64 bits.
func Bits(source func() uint64) uint64 {
	if source == nil {
		return Middle
	}
	return source()
}

// UpTo returns a number from 0 to n, both included, all equally likely but for one part in
// 2^64/(n+1). It calls source once.
func UpTo(n uint64, source func() uint64) uint64 { return Scale(n, Bits(source)) }

// Scale is UpTo for bits that were drawn before. It has no division and no loop, and is
// monotonic in the bits.
func Scale(n, random uint64) uint64 {
	if n == 1<<64-1 {
		return random
	}
	hi, _ := bits.Mul64(random, n+1)
	return hi
}
