package draw

import "math/bits"

// A Source gives words that look independent and uniform. It is eight bytes and
// costs as much to make as a word, so make one for each purpose and forget it. The
// zero Source works; so does a copy, which repeats the original. It is not safe
// for concurrent use.
type Source struct{ state uint64 }

// apart keeps the words of From(key) from being those of Mix(key, n).
const apart = 0x243f6a8885a308d3 // of the fraction of pi

// From is the source at key. Any keys will do, also 1, 2, 3.
func From(key uint64) Source {
	return Source{finish(key ^ apart)}
}

// Uint64 is the next word.
func (s *Source) Uint64() uint64 {
	s.state += golden
	return finish(s.state)
}

// Below is uniform in [0, n), without bias; 0 for n = 0. It takes one word, and
// another one with a probability of less than n / 2^64 (Lemire, "Fast random
// integer generation in an interval", 2019).
func (s *Source) Below(n uint64) uint64 {
	hi, lo := bits.Mul64(s.Uint64(), n)
	if lo < n {
		for tail := -n % max(n, 1); lo < tail; {
			hi, lo = bits.Mul64(s.Uint64(), n)
		}
	}
	return hi
}
