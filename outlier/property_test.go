package outlier

import "testing"

func TestPermitted(t *testing.T) {
	for _, v := range []struct {
		percent int
		limit   Limit
		n, want int
	}{
		{10, RoundDown, 9, 0}, {10, RoundDown, 10, 1}, {10, RoundDown, 19, 1}, {10, RoundDown, 20, 2}, {10, RoundDown, 3, 0},
		{10, RoundUp, 1, 0}, {10, RoundUp, 3, 1}, {10, RoundUp, 10, 1}, {10, RoundUp, 11, 2}, {50, RoundUp, 3, 2},
		{10, AtLeastOne, 3, 1}, {10, AtLeastOne, 10, 1}, {10, AtLeastOne, 20, 2}, {0, AtLeastOne, 2, 1}, {0, AtLeastOne, 3, 1}, {0, AtLeastOne, 4, 2},
		{0, AtLeastOne, 5, 2}, {0, AtLeastOne, 1, 0}, {0, AtLeastOne, 0, 0}, {100, AtLeastOne, 5, 4}, {100, RoundDown, 5, 4}, {-1, AtLeastOne, 9, 0},
		{-1, RoundUp, 9, 0}, {7, RoundDown, 1_000_003, 70_000}, {7, RoundUp, 1_000_003, 70_001},
	} {
		r := Config{MaxEjected: v.percent, Limit: v.limit}.rules()
		if got := r.permitted(v.n); got != v.want {
			t.Errorf("%+v: %d", v, got)
		}
	}
	r := EnvoyDefaults()
	r.MaxEjected = 100
	rules := r.rules()
	if got := rules.permitted(5); got != 5 {
		t.Errorf("Envoy may eject all: %d", got)
	}
}
