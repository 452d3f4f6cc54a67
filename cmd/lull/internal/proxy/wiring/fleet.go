package wiring

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	stop   func()

	mu    sync.Mutex
	names map[string]bool // of dependencies
}

// maxBudgets bounds the hosts of a forward door. Dependencies beyond it have budgets of their own.
const maxBudgets = 1000

// OpenBudgets returns the budgets of the fleet. Redis need not be there yet: until it answers, the tokens that calls earn pay
// for retries. say is told when Redis does not answer, and when it does again.
func OpenBudgets(c Fleet, say func(any)) (*Budgets, error) {
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
	watching, stop := context.WithCancel(context.Background())
	b := &Budgets{client: client, fleet: fleet, stop: stop, names: map[string]bool{}}
	go b.watch(watching, shown(c.Redis), say)
	return b, nil
}

// watch says when Redis does not answer.
func (b *Budgets) watch(ctx context.Context, redis string, say func(any)) {
	ticks := time.NewTicker(lullredis.DefaultSyncEvery)
	defer ticks.Stop()
	for away := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		now, why := b.away()
		if now && !away && why != nil {
			say(fmt.Sprintf("fleet: %s does not answer: %v", redis, why))
			away = true
		} else if !now && away {
			say(fmt.Sprintf("fleet: %s answers again", redis))
			away = false
		}
	}
}

// away reports whether Redis has not answered lately for one of the budgets, and why.
func (b *Budgets) away() (bool, error) {
	for _, s := range b.fleet.Snapshots() {
		if s.Mode != lullredis.ModeInStep {
			return true, s.Err
		}
	}
	return false, nil
}

// Options gives the dependency of that name the fleet's budget, in the place of its policy's. It is for proxy.Wiring.
func (b *Budgets) Options(name string) []lull.Option {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.names[name] && len(b.names) == maxBudgets {
		return nil
	}
	b.names[name] = true
	shared, err := b.fleet.Budget(name, lullredis.BudgetConfig{})
	if err != nil { // b was closed, or the name is empty
		return nil
	}
	return []lull.Option{lull.WithBudget(func() budget.Budget { return shared })}
}

// Close hands tokens back to the fleet, for as long as ctx allows.
func (b *Budgets) Close(ctx context.Context) error {
	b.stop()
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
