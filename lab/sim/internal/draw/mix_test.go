package draw

import (
	"math"
	"testing"
)

// Any bit of the input that is flipped flips each bit of the result in half of the
// cases; also where the inputs are small numbers that follow each other.
func TestMixAvalanche(t *testing.T) {
	const cases = 4096
	for _, in := range []struct {
		name string
		pair func(i uint64) (a, b uint64)
	}{
		{"counted", func(i uint64) (a, b uint64) { return i % 64, i / 64 }},
		{"mixed", func(i uint64) (a, b uint64) { s := From(i); return s.Uint64(), s.Uint64() }},
	} {
		for bit := range 128 {
			var flips [64]int
			for i := range uint64(cases) {
				a, b := in.pair(i)
				before := Mix(a, b)
				if bit < 64 {
					a ^= 1 << bit
				} else {
					b ^= 1 << (bit - 64)
				}
				changed := before ^ Mix(a, b)
				for j := range flips {
					flips[j] += int(changed >> j & 1)
				}
			}
			for j, n := range flips {
				// Five standard deviations, for 16,384 figures. Of the counted pairs
				// some are each other's flipped ones, so that only half of the cases
				// are independent: hence the 2.
				if off := math.Abs(float64(n)-cases/2) / math.Sqrt(2*cases/4); off > 5 {
					t.Errorf("%s: bit %d flips bit %d in %d of %d cases", in.name, bit, j, n, cases)
				}
			}
		}
	}
}

// chi is how many standard deviations chi-square is off what is expected.
func chi(counts []int) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
	want, sum := float64(n)/float64(len(counts)), 0.0
	for _, c := range counts {
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	df := float64(len(counts) - 1)
	return (sum - df) / math.Sqrt(2*df)
}

// Whatever is counted up, the words are uniform in each of their bytes, and so are
// pairs of neighbours.
func TestWordsAreUniform(t *testing.T) {
	for _, in := range []struct {
		name string
		word func(i uint64) uint64
	}{
		{"Mix(1, i)", func(i uint64) uint64 { return Mix(1, i) }},
		{"Mix(i, 1)", func(i uint64) uint64 { return Mix(i, 1) }},
		{"Mix(i, i)", func(i uint64) uint64 { return Mix(i, i) }},
		{"Mix(Mix(7, i/5), i%5)", func(i uint64) uint64 { return Mix(Mix(7, i/5), i%5) }},
		{"Mix(1, i<<40)", func(i uint64) uint64 { return Mix(1, i<<40) }},
		{"first of From(i)", func(i uint64) uint64 { s := From(i); return s.Uint64() }},
		{"first of From(i*golden)", func(i uint64) uint64 { s := From(i * golden); return s.Uint64() }},
		{"third of From(Mix(1, i))", func(i uint64) uint64 {
			s := From(Mix(1, i))
			s.Uint64()
			s.Uint64()
			return s.Uint64()
		}},
		{"Mix with a word of From", func(i uint64) uint64 {
			s := From(i)
			return Mix(i, 0) - s.Uint64()
		}},
	} {
		for shift := 0; shift < 64; shift += 8 {
			var bytes [256]int
			var pairs [1 << 10]int
			last := in.word(0) >> shift
			for i := range uint64(1 << 15) {
				w := in.word(i+1) >> shift
				bytes[w&255]++
				pairs[w&31<<5|last&31]++
				last = w
			}
			for what, counts := range map[string][]int{"bytes": bytes[:], "pairs": pairs[:]} {
				if off := chi(counts); math.Abs(off) > 4.5 {
					t.Errorf("%s, %s at bit %d: chi-square is off by %.1f standard deviations", in.name, what, shift, off)
				}
			}
		}
	}
}
