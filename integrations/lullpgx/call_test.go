package lullpgx_test

import (
	"errors"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/inbound"
	"github.com/lullgo/lull/integrations/lullpgx"
)

// patient repeats as often as it takes.
var patient = lull.Policy{
	Attempts: 100, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	Backoff: backoff.Schedule{Kind: backoff.Constant, Base: 1e6},
}

// A call for a request that is itself a retry is not repeated: the caller above repeats.
func TestARequestThatIsARetry(t *testing.T) {
	t.Parallel()
	d := newDependency(t, patient)
	pool := open(t, url("127.0.0.1:1"), d, lullpgx.Config{})
	ctx, _ := inbound.With(t.Context(), 2, 0)
	_, err := lullpgx.Exec(ctx, d, pool, "SELECT 1")
	if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 1 || !errors.Is(err, lull.ErrRetriedAbove) || !e.Verdict.NeverSent {
		t.Errorf("%v", err)
	}
}
