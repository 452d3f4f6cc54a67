package draw

import "math/bits"

// golden is 2^64 divided by the golden ratio, odd: steps of that size spread any
// run of counters evenly.
const golden = 0x9e3779b97f4a7c15

// Mix folds two words into one. Each bit of either changes about half of the bits
// of the result; for a given a, different b never collide, nor for a given b
// different a. Mix(a, b) is not Mix(b, a). To fold more words, nest:
// Mix(Mix(seed, client), attempt).
func Mix(a, b uint64) uint64 { return finish(finish(a+golden) + b*golden) }

func finish(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// A Source gives words that look independent and uniform. It is eight bytes and
// costs as much to make as a word, so make one for each purpose and forget it. The
// zero Source works; so does a copy, which repeats the original. It is not safe
// for concurrent use.
type Source struct{ state uint64 }

// apart keeps the words of From(key) from being those of Mix(key, n).
const apart = 0x243f6a8885a308d3 // of the fraction of pi

// From is the source at key. Any keys will do, also 1, 2, 3.
func From(key uint64) Source { return Source{finish(key ^ apart)} }

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

// Unit makes a word a number in (0, 1), never 0 and never 1: the upper 52 bits
// choose one of as many equal intervals, and the number is the middle of it. So
// Unit(^bits) is exactly 1 - Unit(bits), and the mean is exactly a half.
func Unit(bits uint64) float64 { return float64((float64(bits>>12) + 0.5) * 0x1p-52) }

// Exponential makes a word an exponentially distributed number with mean 1, by
// inversion: -Log(Unit(bits)). The greater the word, the smaller the number; it
// lies between 1.1e-16 and 36.8.
func Exponential(bits uint64) float64 { return -Log(Unit(bits)) }
