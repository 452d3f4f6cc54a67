package rivals

import (
	"testing"

	"github.com/lullgo/lull/budget"
)

func TestAWSNeverExceedsItsCapacity(t *testing.T) {
	q := newAWSQuota(awsLegacyQuota())
	q.Withdraw(0, budget.Timeout, never)
	for want := int64(491); want <= 500; want++ { // a call that needed no retry puts back one
		if q.Done(0, true, 0, 0); q.tokens.Load() != want {
			t.Fatalf("%d tokens, want %d", q.tokens.Load(), want)
		}
	}
	q = newAWSQuota(awsLegacyQuota())
	q.Withdraw(0, budget.Timeout, never)
	q.Done(0, true, 0, 0)
	for _, r := range []budget.Receipt{10, 1 << 62, -1 << 63, -5} {
		if q.Done(0, true, r, 1); q.tokens.Load() < 491 || q.tokens.Load() > 500 {
			t.Errorf("receipt %d: %d tokens", r, q.tokens.Load())
		}
	}
}
