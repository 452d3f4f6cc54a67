package migrate

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/failsafehttp"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

func failsafeBefore(t *testing.T, b *backend) func(context.Context) error {
	transport := b.transport()
	retries := failsafehttp.NewRetryPolicyBuilder().
		WithMaxRetries(3).
		WithBackoff(100*time.Millisecond, 5*time.Second).
		WithJitterFactor(0.5).
		WithBudget(budget.New()).
		Build()
	client := &http.Client{Transport: failsafehttp.NewRoundTripper(transport, retries)}
	return fetching(t, client, nil)
}

func failsafeAfter(t *testing.T, b *backend) func(context.Context) error {
	transport := b.transport()
	client, err := lullhttp.NewClient(lull.Policy{Attempts: 4}, lullhttp.WithBase(transport))
	return fetching(t, client, err)
}
