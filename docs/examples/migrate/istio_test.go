package migrate

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/lullhttp"
)

// What the sidecar does, as the preset of the simulator has it: the client makes one attempt, and Envoy repeats it.
func istioBefore(t *testing.T, b *backend) func(context.Context) error {
	sidecar, err := lullhttp.NewClient(istio, lullhttp.WithBase(b.transport()))
	return fetching(t, sidecar, err)
}

// Istio without a section of retries: two, within 25 and 50 ms, without a budget.
var istio = lull.Policy{
	Attempts: 3, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout,
	Backoff:         backoff.Schedule{Base: 25 * time.Millisecond, Cap: 250 * time.Millisecond},
	RateLimitedBase: time.Nanosecond, HintLimit: math.MaxInt64,
	Timeouts: lull.TimeoutsAlways, Nested: lull.NestedAlways,
	Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
}
