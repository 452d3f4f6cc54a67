//go:build servers

package lullredis_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	lullredis "github.com/lullgo/lull/integrations/lullredis"
	"github.com/lullgo/lull/internal/must"
)

// What the guide and the comment of the package show, as it stands there.

func guideFleet(addr string, policy lull.Policy) error {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	fleet, err := lullredis.Open(client, lullredis.FleetConfig{})
	if err != nil {
		return err
	}
	pays, err := fleet.Budget("payments", lullredis.BudgetConfig{Floor: 5}) // retries a second, of all together
	if err != nil {
		return err
	}
	d, err := lull.NewDependency("payments", policy, lull.WithBudget(func() budget.Budget { return pays }))
	if err != nil {
		return err
	}
	defer client.Close()
	defer fleet.Close(context.Background())
	return lull.Run(context.Background(), d, func(ctx context.Context) error { return client.Ping(ctx).Err() })
}

func guideAddTo(addr string, d *lull.Dependency) error {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	if err := lullredis.AddTo(client, d); err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(context.Background()).Err()
}

func TestWhatTheGuideShows(t *testing.T) {
	addr := lullredis.Addr(t)
	must.Succeed(guideFleet(addr, lull.Policy{}))
	d, err := lull.NewDependency("cache", lull.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	must.Succeed(guideAddTo(addr, d))
}
