package main

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/integrations/lullotel"
	"github.com/lullgo/lull/internal/must"
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
