package wiring

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/integrations/lullredis"
	"github.com/lullgo/lull/internal/must"
)

// A fleet has the budgets that proxies share.
type fleet struct {
	*lullredis.Fleet

	mu    sync.Mutex
	names map[string]bool // of dependencies
}

// maxBudgets bounds the hosts of a forward door. Dependencies beyond it have budgets of their own.
const maxBudgets = 1000

// join shares the budgets of the fleet whose Redis is at address.
func (w *Wiring) join(address string, say func(any)) error {
	o, err := redisOptions(address)
	if err != nil {
		return err
	}
	client := redis.NewClient(o)
	shared := must.Have(lullredis.Open(client, lullredis.FleetConfig{}))
	w.fleet = &fleet{Fleet: shared, names: map[string]bool{}}
	inStep := promauto.With(w.registry).NewGauge(prometheus.GaugeOpts{Name: "proxy_fleet_in_step", Help: "1 if Redis has answered lately for all budgets of the fleet."})
	watching, stop := context.WithCancel(context.Background())
	go w.fleet.watch(watching, shown(address), inStep, say)
	w.closers = append(w.closers, func(ctx context.Context) error {
		stop()
		return errors.Join(shared.Close(ctx), client.Close())
	})
	return nil
}

// watch shows whether Redis has answered lately for all budgets, and says when it does not.
func (f *fleet) watch(ctx context.Context, redis string, inStep prometheus.Gauge, say func(any)) {
	ticks := time.NewTicker(lullredis.DefaultSyncEvery)
	defer ticks.Stop()
	for away := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		is, why := 1.0, error(nil)
		for _, s := range f.Snapshots() {
			if s.Mode != lullredis.ModeInStep {
				is, why = 0, s.Err
			}
		}
		inStep.Set(is)
		switch {
		case why != nil && !away:
			say(fmt.Sprintf("fleet: %s does not answer: %v", redis, why))
			away = true
		case is == 1 && away:
			say(fmt.Sprintf("fleet: %s answers again", redis))
			away = false
		}
	}
}

// options gives the dependency of that name the fleet's budget, in the place of its policy's.
func (f *fleet) options(name string) []lull.Option {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.names[name] && len(f.names) == maxBudgets {
		return nil
	}
	f.names[name] = true
	shared, err := f.Budget(name, lullredis.BudgetConfig{})
	if err != nil { // f was closed, or the name is empty
		return nil
	}
	return []lull.Option{lull.WithBudget(func() budget.Budget { return shared })}
}

func init() { logging.Disable() } // it would write to stderr, where the access log may be

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
