package throttle

import "testing"

// enough is the least number of further requests without an accept for which
// requests > k × accepts.
func TestEnough(t *testing.T) {
	for _, c := range []struct{ accepts, rest int64 }{{0, 0}, {10, 5}, {10, 10}, {7, 0}, {100, 1}} {
		n := enough(2, c.accepts, c.rest)
		if refusal(2, c.accepts, c.rest+n) <= 0 || refusal(2, c.accepts, c.rest+n-1) > 0 {
			t.Errorf("%+v: %d, and the refusal is %v there, %v one earlier", c, n, refusal(2, c.accepts, c.rest+n), refusal(2, c.accepts, c.rest+n-1))
		}
	}
}
