package lullredis_test

import (
	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	lullredis "github.com/lullgo/lull/integrations/lullredis"
)

// What the guide shows must compile as it stands there; it needs a Redis, so it is not run.
func guideFleet(client redis.UniversalClient, policy lull.Policy) error {
	fleet, err := lullredis.Open(client, lullredis.FleetConfig{})
	if err != nil {
		return err
	}
	pays, err := fleet.Budget("payments", lullredis.Config{Floor: 5}) // retries a second, of all together
	if err != nil {
		return err
	}
	d, err := lull.NewDependency("payments", policy, lull.WithBudget(func() budget.Budget { return pays }))
	_ = d
	return err
}

var _ = guideFleet

func guideAddTo(d *lull.Dependency) error {
	client := redis.NewClient(&redis.Options{MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	if err := lullredis.AddTo(client, d); err != nil {
		return err
	}
	return client.Close()
}

var _ = guideAddTo
