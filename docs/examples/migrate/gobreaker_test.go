package migrate

import (
	"context"
	"errors"
	"testing"

	"github.com/avast/retry-go/v5"
	"github.com/sony/gobreaker/v2"

	"github.com/lullgo/lull"
)

func gobreakerBefore(t *testing.T, b *backend) func(context.Context) error {
	queryBalance := func(context.Context) (int, error) { return 7, b.attempt() }
	breaker := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{Name: "ledger"})
	return func(ctx context.Context) error {
		balance, err := breaker.Execute(func() (int, error) {
			return retry.NewWithData[int](retry.Context(ctx), retry.Attempts(4)).Do(func() (int, error) {
				return queryBalance(ctx)
			})
		})
		if errors.Is(err, gobreaker.ErrOpenState) {
			return err // nobody knows why, or for how long
		}
		_ = balance
		return err
	}
}

func gobreakerAfter(t *testing.T, b *backend) func(context.Context) error {
	queryBalance := func(context.Context) (int, error) { return 7, b.attempt() }
	ledger, err := lull.NewDependency("ledger", lull.Policy{Attempts: 4}) // the breaker is in it
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
		if errors.Is(err, lull.ErrCircuitOpen) {
			return err // *lull.Error has RetryAt, OpenFor, and the failure that opened it
		}
		_ = balance
		return err
	}
}
