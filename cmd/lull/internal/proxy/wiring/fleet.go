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
	watching, stop := context.WithCancel(context.Background())
	go w.fleet.watch(watching, shown(address), say)
	promauto.With(w.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: "proxy_fleet_in_step", Help: "1 if Redis has answered lately for all budgets of the fleet."}, func() float64 {
		if away, _ := w.fleet.away(); away {
			return 0
		}
		return 1
	})
	w.closers = append(w.closers, func(ctx context.Context) error {
		stop()
		return errors.Join(shared.Close(ctx), client.Close())
	})
	return nil
}

// watch says when Redis does not answer, and when it does again.
func (f *fleet) watch(ctx context.Context, redis string, say func(any)) {
	ticks := time.NewTicker(lullredis.DefaultSyncEvery)
	defer ticks.Stop()
	for said := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		away, why := f.away()
		switch {
		case away && !said && why != nil:
			say(fmt.Sprintf("fleet: %s does not answer: %v", redis, why))
			said = true
		case !away && said:
			say(fmt.Sprintf("fleet: %s answers again", redis))
			said = false
		}
	}
}

// away reports whether Redis has not answered lately for one of the budgets, and why.
func (f *fleet) away() (bool, error) {
	for _, s := range f.Snapshots() {
		if s.Mode != lullredis.ModeInStep {
			return true, s.Err
		}
	}
	return false, nil
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
