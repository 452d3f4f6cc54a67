package migrate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v7"

	"github.com/lullgo/lull"
)

func cenkaltiBefore(t *testing.T, b *backend) func(context.Context) error {
	queryBalance := func(context.Context) (int, error) { return 7, b.attempt() }
	return func(ctx context.Context) error {
		balance, err := backoff.Retry(ctx, func() (int, error) {
			return queryBalance(ctx)
		}, backoff.WithMaxTries(4), backoff.WithMaxElapsedTime(30*time.Second))
		_ = balance
		return err
	}
}

func cenkaltiAfter(t *testing.T, b *backend) func(context.Context) error {
	queryBalance := func(context.Context) (int, error) { return 7, b.attempt() }
	ledger, err := lull.NewDependency("ledger", lull.Policy{Attempts: 4}) // once, for all calls
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error {
		balance, err := lull.Do(ctx, ledger, func(ctx context.Context) (int, error) {
			n, err := queryBalance(ctx)
			if errors.Is(err, errUnavailable) {
				err = lull.Transient(err)
			}
			return n, err
		})
		_ = balance
		return err
	}
}
