package lullotel

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
)

// discard is a metric.Observer that records nothing.
type discard struct{ embedded.Observer }

func (discard) ObserveInt64(metric.Int64Observable, int64, ...metric.ObserveOption)       {}
func (discard) ObserveFloat64(metric.Float64Observable, float64, ...metric.ObserveOption) {}
