package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/cmd/lull/internal/proxy/wiring"
	"github.com/lullgo/lull/server/proxy"
)

// telemetry is what a proxy sends to others, and shares with them: metrics, traces, budgets, keys.
type telemetry struct {
	*wiring.Telemetry
	options []proxy.Option
	closers []func(context.Context) error // the last first
}

// startTelemetry starts what the sections of f ask for. What it has started is stopped by close, also after an error.
func startTelemetry(ctx context.Context, f *file.File) (t *telemetry, err error) {
	t = &telemetry{}
	if t.Telemetry, err = wiring.NewTelemetry(wiring.Traces(f.Traces)); err != nil {
		return t, err
	}
	t.closers = append(t.closers, t.Telemetry.Close)
	wire := func(string) []lull.Option { return t.Options() }
	if f.Fleet.Redis != "" {
		budgets, err := wiring.OpenBudgets(wiring.Fleet(f.Fleet))
		if err != nil {
			return t, fmt.Errorf("fleet: %w", err)
		}
		t.closers = append(t.closers, budgets.Close)
		t.WatchFleet(budgets)
		wire = func(name string) []lull.Option { return append(t.Options(), budgets.Options(name)...) }
	}
	t.options = []proxy.Option{proxy.WithWiring(wire), proxy.WithTransport(t.Calls), proxy.WithAttempts(t.Attempts), proxy.WithAdmission(t.Admission(proxy.IngressDoor))}
	if at := f.Ingress.Keys.Store; at != "" {
		store, stop, err := wiring.OpenStore(ctx, at)
		if err != nil {
			return t, fmt.Errorf("ingress.keys: %w", err)
		}
		t.closers = append(t.closers, func(context.Context) error { return stop() })
		t.options = append(t.options, proxy.WithStore(store))
	}
	return t, nil
}

// watch adds what a proxy knows to the metrics.
func (t *telemetry) watch(p *proxy.Proxy) {
	t.Watch(p.Dependencies)
	if gate := p.Gate(); gate != nil {
		t.WatchGate(proxy.IngressDoor, gate)
	}
}

// metrics returns the handler of /metrics.
func (t *telemetry) metrics() http.Handler { return t.Metrics() }

// close sends what is left, for a short time.
func (t *telemetry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var all []error
	for i := len(t.closers) - 1; i >= 0; i-- {
		all = append(all, t.closers[i](ctx))
	}
	return errors.Join(all...)
}
