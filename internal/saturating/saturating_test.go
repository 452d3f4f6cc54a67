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
