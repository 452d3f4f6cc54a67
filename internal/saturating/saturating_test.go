package saturating

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
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
		check.Equal(t, Add(c.t, c.d), c.want, "Add(%d, %d)", c.t, c.d)
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
		check.Equal(t, Since(c.from, c.to), c.want, "Since(%d, %d)", c.from, c.to)
	}
}
