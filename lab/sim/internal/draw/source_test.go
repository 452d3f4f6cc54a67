package draw

import (
	"math"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

// The words of SplitMix64 with the seed 1234567, as its authors' program prints
// them.
func TestSplitMix64(t *testing.T) {
	s := Source{1234567}
	for i, want := range []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423,
		4593380528125082431, 16408922859458223821,
	} {
		check.Equal(t, s.Uint64(), want, "word %d", i)
	}
}

func TestSourceRepeatsAtItsKey(t *testing.T) {
	a, b, other := From(5), From(5), From(6)
	for range 10 {
		x, y, z := a.Uint64(), b.Uint64(), other.Uint64()
		if x != y || x == z {
			t.Fatalf("words %x and %x at the same key, %x at another", x, y, z)
		}
	}
}

func TestBelow(t *testing.T) {
	s := From(1)
	for _, n := range []uint64{1, 2, 3, 10, 1 << 32, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64} {
		sum, cases := 0.0, 20_000
		for range cases {
			k := s.Below(n)
			if k >= n {
				t.Fatalf("Below(%d) = %d", n, k)
			}
			sum += float64(k)
		}
		// The mean of uniform numbers, to five standard deviations.
		mean, want := sum/float64(cases), (float64(n)-1)/2
		if math.Abs(mean-want) > 5*float64(n)/math.Sqrt(12*float64(cases)) {
			t.Errorf("Below(%d) is %v in the mean, want %v", n, mean, want)
		}
	}
	check.Equal(t, s.Below(0), 0, "Below(0)")
	var counts [7]int
	for range 70_000 {
		counts[s.Below(7)]++
	}
	if off := chi(counts[:]); math.Abs(off) > 4.5 {
		t.Errorf("Below(7) gives %v", counts)
	}
}

// Four words for each three numbers: without rejection one number in three would
// come twice as often as the others.
func TestBelowHasNoBias(t *testing.T) {
	var counts [3]int
	s := From(2)
	for range 30_000 {
		counts[s.Below(3<<62)%3]++
	}
	if off := chi(counts[:]); math.Abs(off) > 4.5 {
		t.Errorf("remainders by 3 of Below(3<<62) come %v times", counts)
	}
}
