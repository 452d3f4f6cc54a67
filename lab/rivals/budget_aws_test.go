package rivals

import (
	"testing"

	"github.com/lullgo/lull/budget"
)

// In the legacy mode a timeout costs 10; since 2.1 it costs what others do.
func TestAWSCostsByClass(t *testing.T) {
	for _, c := range []struct {
		cfg  AWSConfig
		want map[budget.Class]budget.Receipt
	}{
		{AWSLegacy(), map[budget.Class]budget.Receipt{budget.Transient: 5, budget.Timeout: 10, budget.RateLimited: 5, 9: 5}},
		{AWSStandard21(), map[budget.Class]budget.Receipt{budget.Transient: 14, budget.Timeout: 14, budget.RateLimited: 5, 9: 14}},
	} {
		for class, want := range c.want {
			q := newAWSQuota(c.cfg)
			if g := q.Withdraw(0, class, never); !g.OK || g.Receipt != want || q.tokens.Load() != 500-int64(want) {
				t.Errorf("%v: %+v leaves %d, want to pay %d", class, g, q.tokens.Load(), want)
			}
		}
	}
}

func TestAWSNeverExceedsItsCapacity(t *testing.T) {
	q := newAWSQuota(AWSLegacy())
	q.Withdraw(0, budget.Timeout, never)
	for want := int64(491); want <= 500; want++ { // a call that needed no retry puts back one
		if q.Done(0, true, 0, 0); q.tokens.Load() != want {
			t.Fatalf("%d tokens, want %d", q.tokens.Load(), want)
		}
	}
	q = newAWSQuota(AWSLegacy())
	q.Withdraw(0, budget.Timeout, never)
	q.Done(0, true, 0, 0)
	for _, r := range []budget.Receipt{10, 1 << 62, -1 << 63, -5} {
		if q.Done(0, true, r, 1); q.tokens.Load() < 491 || q.tokens.Load() > 500 {
			t.Errorf("receipt %d: %d tokens", r, q.tokens.Load())
		}
	}
}
