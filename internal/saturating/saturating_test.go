package saturating

import (
	"math"
	"testing"
	"time"
)

func TestAdd(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, c := range []struct{ t, d, want time.Duration }{
		{0, 0, 0},
		{1, 2, 3},
		{-5, 3, -2},
		{math.MinInt64, longest, -1},
		{longest, 0, longest},
		{longest - 1, 1, longest},
		{longest, 1, longest},
		{1, longest, longest},
		{longest, longest, longest},
	} {
		if got := Add(c.t, c.d); got != c.want {
			t.Errorf("Add(%d, %d) = %d, want %d", c.t, c.d, got, c.want)
		}
	}
}

func TestSince(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, c := range []struct{ from, to, want time.Duration }{
		{0, 0, 0},
		{1, 3, 2},
		{-5, 3, 8},
		{3, 1, 0},
		{longest, math.MinInt64, 0},
		{math.MinInt64, longest, longest},
		{math.MinInt64, -1, longest},
		{math.MinInt64, 0, longest},
		{-1, longest, longest},
		{1, longest, longest - 1},
	} {
		if got := Since(c.from, c.to); got != c.want {
			t.Errorf("Since(%d, %d) = %d, want %d", c.from, c.to, got, c.want)
		}
	}
}
