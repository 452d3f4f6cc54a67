package wiring

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/integrations/lullredis"
	"github.com/lullgo/lull/internal/problem"
)

// Fleet is where proxies share one budget for the retries of each dependency.
type Fleet struct {
	// Redis is its URL: "redis://127.0.0.1:6379/0", "rediss://..." with TLS, or "unix:///run/redis.sock". Empty: the proxy's
	// budgets are its own.
	Redis string
}

// Validate reports every mistake at once.
func (c Fleet) Validate() error {
	var l problem.List
	if c.Redis != "" {
		if _, err := redisOptions(c.Redis); err != nil {
			l.Add("Redis", shown(c.Redis), "redis://, rediss:// or unix:// ("+err.Error()+")")
		}
	}
	return l.Err()
}

// Budgets are those that the proxy shares with its fleet.
type Budgets struct {
	client *redis.Client
	fleet  *lullredis.Fleet
}

// OpenBudgets returns the budgets of the fleet. Redis need not be there yet: until it answers, the tokens that calls earn pay
// for retries.
func OpenBudgets(c Fleet) (*Budgets, error) {
	if c.Redis == "" {
		return nil, errors.New("a fleet needs the URL of a Redis")
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	client, err := redisClient(c.Redis)
	if err != nil {
		return nil, err
	}
	fleet, err := lullredis.Open(client, lullredis.FleetConfig{})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &Budgets{client, fleet}, nil
}

// Options gives the dependency of that name the fleet's budget, in the place of its policy's. It is for proxy.WithWiring.
func (b *Budgets) Options(name string) []lull.Option {
	shared, err := b.fleet.Budget(name, lullredis.BudgetConfig{})
	if err != nil { // b was closed, or the name is empty
		return nil
	}
	return []lull.Option{lull.WithBudget(func() budget.Budget { return shared })}
}

// inStep reports whether Redis has answered lately for all budgets.
func (b *Budgets) inStep() bool {
	for _, s := range b.fleet.Snapshots() {
		if s.Mode != lullredis.ModeInStep {
			return false
		}
	}
	return true
}

// Close hands tokens back to the fleet, for as long as ctx allows.
func (b *Budgets) Close(ctx context.Context) error {
	return errors.Join(b.fleet.Close(ctx), b.client.Close())
}

func redisClient(address string) (*redis.Client, error) {
	o, err := redisOptions(address)
	if err != nil {
		return nil, err
	}
	logging.Disable() // it would write to stderr, where the access log may be
	return redis.NewClient(o), nil
}

func redisOptions(address string) (*redis.Options, error) {
	if _, err := parse(address); err != nil {
		return nil, err
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled, o.MaxRetries = true, -1
	return o, nil
}
