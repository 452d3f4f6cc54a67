package lullotel

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
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
	r.Telemetry = must.Have(New(append([]Option{WithTracerProvider(r.tracer), WithMeterProvider(meters)}, opts...)...))
	return r
}

// metrics are those of one reading.
type metrics map[string]metricdata.Aggregation

func (r *rig) collect(t testing.TB) metrics {
	t.Helper()
	var m metricdata.ResourceMetrics
	must.Succeed(r.reader.Collect(context.Background(), &m))
	all := make(metrics)
	for _, s := range m.ScopeMetrics {
		for _, x := range s.Metrics {
			all[x.Name] = x.Data
		}
	}
	return all
}

// value returns the sum over all series that have the labels, given as key, value, ...; for a
// histogram the number of its values.
func (m metrics) value(name string, labels ...string) (sum float64) {
	for _, p := range points(m[name]) {
		if p.has(labels) {
			sum += p.value
		}
	}
	return sum
}

func (m metrics) want(t testing.TB, want float64, name string, labels ...string) {
	t.Helper()
	check.Equal(t, m.value(name, labels...), want, "%s %v", name, labels)
}

// wantSum is about the sum of a histogram's values.
func (m metrics) wantSum(t testing.TB, want float64, name string) {
	t.Helper()
	sum := 0.0
	for _, p := range points(m[name]) {
		sum += p.sum
	}
	if math.Abs(sum-want) >= 1e-6 {
		t.Errorf("%s adds up to %v, want %v", name, sum, want)
	}
}

// wantSeries is about the number of a metric's label sets.
func (m metrics) wantSeries(t testing.TB, want int, name string) {
	t.Helper()
	check.Equal(t, len(points(m[name])), want, "series of %s", name)
}

// A point is a series of a metric: its labels, and its value or, of a histogram, the number and the sum of its values.
type point struct {
	attributes attribute.Set
	value, sum float64
}

func (p point) has(labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		if v, _ := p.attributes.Value(attribute.Key(labels[i])); v.String() != labels[i+1] {
			return false
		}
	}
	return true
}

// points reads the fields that the types of data points have in common, but not by an interface.
func points(a metricdata.Aggregation) (all []point) {
	if a == nil {
		return nil
	}
	of := reflect.ValueOf(a).FieldByName("DataPoints")
	for i := range of.Len() {
		number := func(field string) float64 {
			return of.Index(i).FieldByName(field).Convert(reflect.TypeFor[float64]()).Float()
		}
		p := point{attributes: of.Index(i).FieldByName("Attributes").Interface().(attribute.Set)}
		if of.Index(i).FieldByName("Count").IsValid() {
			p.value, p.sum = number("Count"), number("Sum")
		} else {
			p.value = number("Value")
		}
		all = append(all, p)
	}
	return all
}

func attributes(kv []attribute.KeyValue) map[string]any {
	m := make(map[string]any)
	for _, a := range kv {
		m[string(a.Key)] = a.Value.AsInterface()
	}
	return m
}

// expect compares attributes with what is wanted, given as key, value, ...; nil is an attribute that is not there.
func expect(t testing.TB, kv []attribute.KeyValue, want ...any) {
	t.Helper()
	got := attributes(kv)
	for i := 0; i < len(want); i += 2 {
		key := want[i].(string)
		if v, there := got[key]; there != (want[i+1] != nil) || fmt.Sprint(v) != fmt.Sprint(want[i+1]) {
			t.Errorf("%s is %v, want %v", key, v, want[i+1])
		}
	}
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
	return must.Have(lull.NewDependency(name, p, append(append(r.Options(), lull.WithRand(seed.Source(t))), more...)...))
}
