package main

import (
	"context"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/integrations/lullotel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"
)

// metricsCallers are the whole of lull without metrics and with those of lullotel, which an
// SDK keeps that nobody reads.
func metricsCallers() []caller {
	all := untimed()
	all.Limit = bulkhead.Config{InFlight: inFlight}
	const does = retries | budgeted | breaks | limited
	return []caller{
		lullCaller("lull", does, all),
		lullCaller("lull timed", does, all, lull.WithTiming()),
		metered("lull counted", does, all, func(t *lullotel.Telemetry) []lull.Option { return []lull.Option{lull.WithObserver(t)} }),
		metered("lull metrics", does, all, (*lullotel.Telemetry).Options),
	}
}

func metered(name string, does feature, p lull.Policy, options func(*lullotel.Telemetry) []lull.Option) caller {
	return caller{name, does, errTransient, func() (bindOp, error) {
		meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
		t, err := lullotel.New(lullotel.WithMeterProvider(meters), lullotel.WithTracerProvider(noop.NewTracerProvider()))
		if err != nil {
			return nil, err
		}
		d, err := lull.NewDependency("backend", p, append(options(t), wiring...)...)
		return func(ctx context.Context, op op) func() error {
			return func() error { return lull.Run(ctx, d, op) }
		}, err
	}}
}
