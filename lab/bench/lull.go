package bench

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/integrations/lullotel"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/throttle"
)

// The subject called "lull" does the same work as its peers: none of them bounds
// the time of a call, so it does not either. "lull zero policy" is the default.

// errTransient is marked, because lull does not retry an unknown error.
var errTransient = lull.Transient(errors.New("blip"))

// counter counts the calls that ended, as a metrics library would.
type counter struct{ calls atomic.Int64 }

func (c *counter) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.CallEnded {
		c.calls.Add(1)
	}
}

// seen is the counter of all subjects that are observed.
var seen counter

// wiring goes to every subject of lull's. Tests seed it.
var wiring []lull.Option

// untimed is the zero policy with as many attempts as the peers' and without
// timeouts.
func untimed() lull.Policy {
	return lull.Policy{Attempts: attempts, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}
}

// retriesOnly has nothing but the retry loop left.
func retriesOnly() lull.Policy {
	p := untimed()
	p.Budget = budget.Config{Unlimited: true}
	p.Breaker = breaker.Config{Off: true}
	return p
}

// throttledBy is retriesOnly with a throttle, by which nothing is held back while
// nothing is refused.
func throttledBy(mode throttle.Mode) lull.Policy {
	p := retriesOnly()
	p.Throttle = throttle.Config{Mode: mode}
	return p
}

// A way to make calls under a dependency.
type way func(ctx context.Context, d *lull.Dependency, op op) (call func() error)

func runOp(ctx context.Context, d *lull.Dependency, op op) func() error {
	return func() error { return lull.Run(ctx, d, op) }
}

func lullCaller(name string, does feature, by way, p lull.Policy, opts ...lull.Option) caller {
	return caller{name, does, errTransient, func() bindOp {
		d := dependency(p, opts...)
		return func(ctx context.Context, op op) func() error { return by(ctx, d, op) }
	}}
}

func dependency(p lull.Policy, opts ...lull.Option) *lull.Dependency {
	return must.Have(lull.NewDependency("backend", p, append(opts[:len(opts):len(opts)], wiring...)...))
}

func lullSender(name string, does feature, p lull.Policy) sender {
	return sender{name, does, func(rt http.RoundTripper) send { return through(lullClient(rt, p)) }}
}

func lullClient(rt http.RoundTripper, p lull.Policy, opts ...lullhttp.Option) *http.Client {
	return must.Have(lullhttp.NewClient(p, append(opts, lullhttp.With(wiring...), lullhttp.WithBase(rt))...))
}

// metricsCallers are the whole of lull without metrics and with those of lullotel, which an
// SDK keeps that nobody reads.
func metricsCallers() []caller {
	all := untimed()
	all.Limit = bulkhead.Config{InFlight: inFlight}
	const does = retries | budgeted | breaks | limited
	return []caller{
		lullCaller("lull", does, runOp, all),
		lullCaller("lull timed", does, runOp, all, lull.WithTiming()),
		lullCaller("lull counted", does, runOp, all, lull.WithObserver(telemetry())),
		lullCaller("lull metrics", does, runOp, all, telemetry().Options()...),
	}
}

func telemetry() *lullotel.Telemetry {
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	return must.Have(lullotel.New(lullotel.WithMeterProvider(meters), lullotel.WithTracerProvider(noop.NewTracerProvider())))
}
