package lullotel

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/seed"
)

// rig is a Telemetry on the SDK, with its output.
type rig struct {
	*Telemetry
	spans  *tracetest.InMemoryExporter // that have ended
	begun  *tracetest.SpanRecorder
	tracer *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
}

func newRig(t testing.TB, opts ...Option) *rig {
	t.Helper()
	r := &rig{spans: tracetest.NewInMemoryExporter(), begun: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans), sdktrace.WithSpanProcessor(r.begun))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	var err error
	r.Telemetry, err = New(append([]Option{WithTracerProvider(r.tracer), WithMeterProvider(meters)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) collect(t testing.TB) map[string]metricdata.Aggregation {
	t.Helper()
	var m metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &m); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]metricdata.Aggregation)
	for _, s := range m.ScopeMetrics {
		for _, x := range s.Metrics {
			all[x.Name] = x.Data
		}
	}
	return all
}

// value returns the sum over all series that have the labels, given as key, value, ...; for a
// histogram the number of its values.
func value(t testing.TB, all map[string]metricdata.Aggregation, name string, labels ...string) (sum float64) {
	t.Helper()
	has := func(s attribute.Set) bool {
		for i := 0; i < len(labels); i += 2 {
			if v, _ := s.Value(attribute.Key(labels[i])); v.String() != labels[i+1] {
				return false
			}
		}
		return true
	}
	switch d := all[name].(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes) {
				sum += float64(p.Value)
			}
		}
	case metricdata.Gauge[int64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes) {
				sum += float64(p.Value)
			}
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes) {
				sum += p.Value
			}
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes) {
				sum += float64(p.Count)
			}
		}
	case metricdata.Histogram[int64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes) {
				sum += float64(p.Count)
			}
		}
	case nil:
	default:
		t.Fatalf("%s is a %T", name, d)
	}
	return sum
}

// series returns how many label sets a metric has.
func series(a metricdata.Aggregation) int {
	switch d := a.(type) {
	case metricdata.Sum[int64]:
		return len(d.DataPoints)
	case metricdata.Gauge[int64]:
		return len(d.DataPoints)
	case metricdata.Gauge[float64]:
		return len(d.DataPoints)
	case metricdata.Histogram[float64]:
		return len(d.DataPoints)
	case metricdata.Histogram[int64]:
		return len(d.DataPoints)
	}
	return 0
}

func attributes(kv []attribute.KeyValue) map[string]any {
	m := make(map[string]any)
	for _, a := range kv {
		m[string(a.Key)] = a.Value.AsInterface()
	}
	return m
}

// steady is a policy without chance: waits of 10, 20, 40 ms, and no breaker.
func steady() lull.Policy {
	var p lull.Policy
	p.Backoff = backoff.Schedule{Base: 10 * time.Millisecond, Cap: time.Second, Jitter: backoff.None}
	p.Breaker.Off = true
	p.Budget.Unlimited = true
	p.Attempts = 3
	return p
}

func dependencyOn(t testing.TB, r *rig, name string, p lull.Policy, more ...lull.Option) *lull.Dependency {
	t.Helper()
	d, err := lull.NewDependency(name, p, append(append(r.Options(), lull.WithRand(seed.Source(t))), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
