package wiring

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/proxy"
)

// A Config is what a proxy takes from outside. Empty fields: nothing.
type Config struct {
	Traces Traces
	Fleet  Fleet
	Store  string // of idempotency keys: proxy.Keys.Store
	// Say is told what operators should know of Redis and the collector while the proxy runs. It may be called concurrently.
	Say func(any)
}

// A Wiring is what a proxy is made with and watched by. It has the proxy's telemetry.
type Wiring struct {
	*Telemetry
	budgets   *Budgets
	store     idempotency.Store
	stopStore func() error
	stopGate  func()
}

// Start opens what c names, which is valid. linesLost is how many lines of the access log were lost.
func Start(ctx context.Context, c Config, linesLost func() uint64) (w *Wiring, err error) {
	w = &Wiring{stopStore: func() error { return nil }, stopGate: func() {}}
	if c.Say == nil {
		c.Say = func(any) {}
	}
	if w.Telemetry, err = NewTelemetry(c.Traces, linesLost, c.Say); err != nil {
		return nil, err
	}
	if c.Fleet.Redis != "" {
		if w.budgets, err = OpenBudgets(c.Fleet, c.Say); err != nil {
			return nil, errors.Join(fmt.Errorf("fleet: %w", err), w.Close(ctx))
		}
		w.watchFleet(w.budgets)
	}
	if c.Store != "" {
		var stop func() error
		if w.store, stop, err = OpenStore(ctx, c.Store); err != nil {
			return nil, errors.Join(fmt.Errorf("ingress.keys: %w", err), w.Close(ctx))
		}
		w.stopStore = stop
	}
	return w, nil
}

// Proxy returns the wiring for proxy.New.
func (w *Wiring) Proxy() proxy.Wiring {
	return proxy.Wiring{Record: w.Count, Options: w.dependency, Calls: w.Calls, Attempts: w.Attempts, Admission: w.lull.Admission(proxy.IngressDoor), Store: w.store}
}

func (w *Wiring) dependency(name string) []lull.Option {
	opts := w.Telemetry.Options()
	if w.budgets != nil {
		opts = append(opts, w.budgets.Options(name)...)
	}
	return opts
}

// Watch shows the state of p in the metrics. Call it once.
func (w *Wiring) Watch(p *proxy.Proxy) {
	w.lull.WatchAll(p.Dependencies)
	w.watchGate(p)
}

// watchGate shows the ingress door's admission control, of which a reload may have made another. One call at a time.
func (w *Wiring) watchGate(p *proxy.Proxy) {
	w.stopGate()
	w.stopGate = w.lull.WatchGate(proxy.IngressDoor, p.Gate())
}

// Count counts a request. It is for proxy.Wiring.
func (w *Wiring) Count(r *proxy.Record) { w.CountRequest(r.Door, r.Status) }

// Reloaded counts that the file of p was read again, and put in force or, with err, refused. One call at a time.
func (w *Wiring) Reloaded(p *proxy.Proxy, err error) {
	w.CountReload(err)
	w.watchGate(p)
}

// Close sends the spans that are left, hands tokens back to the fleet, and closes the store. Call it when the proxy is drained.
func (w *Wiring) Close(ctx context.Context) error {
	err := w.Telemetry.Close(ctx)
	if w.budgets != nil {
		err = errors.Join(err, w.budgets.Close(ctx))
	}
	return errors.Join(err, w.stopStore())
}
