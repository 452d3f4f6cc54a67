package chance

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestUpTo(t *testing.T) {
	lowest, highest := func() uint64 { return 0 }, func() uint64 { return math.MaxUint64 }
	for _, n := range []uint64{0, 1, 2, 9, 1 << 32, 1<<63 - 1, math.MaxUint64 - 1, math.MaxUint64} {
		if lo, hi := UpTo(n, lowest), UpTo(n, highest); lo != 0 || hi != n {
			t.Errorf("UpTo(%d) is from %d to %d", n, lo, hi)
		}
		if got, want := UpTo(n, nil), n/2+n%2; got != want && got != want-1 {
			t.Errorf("UpTo(%d) without luck is %d, want about half", n, got)
		}
	}
}

func TestUpToIsUniform(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n, each = 6, 20000
	var seen [n + 1]int
	for range each * (n + 1) {
		seen[UpTo(n, r.Uint64)]++
	}
	for i, count := range seen { // five standard deviations
		if math.Abs(float64(count-each)) > 5*math.Sqrt(each) {
			t.Errorf("%d was drawn %d times of about %d", i, count, each)
		}
	}
}
