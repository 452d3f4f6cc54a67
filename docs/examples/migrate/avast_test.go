package migrate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/avast/retry-go/v5"

	"github.com/lullgo/lull"
)

func avastBefore(t *testing.T, b *backend) func(context.Context) error {
	post := func(context.Context) error { return b.attempt() }
	return func(ctx context.Context) error {
		return retry.New(
			retry.Context(ctx),
			retry.Attempts(4),
			retry.Delay(100*time.Millisecond),
			retry.LastErrorOnly(true),
		).Do(func() error {
			return post(ctx)
		})
	}
}

func avastAfter(t *testing.T, b *backend) func(context.Context) error {
	post := func(context.Context) error { return b.attempt() }
	classify := func(err error) lull.Verdict { // instead of a mark: one place that knows the errors
		if errors.Is(err, errUnavailable) {
			return lull.Verdict{Kind: lull.KindTransient}
		}
		return lull.Classify(err)
	}
	ledger, err := lull.NewDependency("ledger", lull.Policy{Attempts: 4}, lull.WithClassifier(classify))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error {
		return lull.Run(ctx, ledger, func(ctx context.Context) error {
			return post(ctx)
		})
	}
}
