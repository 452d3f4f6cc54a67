package wiring

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullotel"
)

// Telemetry has the metrics and the traces of a proxy. Its methods may be called concurrently.
type Telemetry struct {
	lull     *lullotel.Telemetry
	meters   *sdkmetric.MeterProvider
	registry *prometheus.Registry
	spans    *spans // nil: no traces
	tracer   trace.Tracer

	requests, reloads *prometheus.CounterVec
	dropped           prometheus.Counter
}

// NewTelemetry returns the metrics, and the traces that c configures. Without an address there are none. The collector need not
// be there yet.
//
// linesLost is how many lines of the access log were lost. say is told when the collector takes no spans, and when it does again.
func NewTelemetry(c Traces, linesLost func() uint64, say func(any)) (*Telemetry, error) {
	count := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	t := &Telemetry{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(count("proxy_requests_total", "Requests that a door has answered, by class of status."), []string{"door", "status"}),
		reloads:  prometheus.NewCounterVec(count("proxy_reloads_total", "Files that were read again: ok, or refused since they are wrong."), []string{"result"}),
		dropped:  prometheus.NewCounter(count("proxy_spans_dropped_total", "Spans for which the queue had no room, or that the collector did not take.")),
	}
	lost := prometheus.NewCounterFunc(count("proxy_log_lines_lost_total", "Lines of the access log that could not be written."), func() float64 { return float64(linesLost()) })
	t.registry.MustRegister(t.requests, t.reloads, lost, t.dropped,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t.reloads.WithLabelValues("ok")
	t.reloads.WithLabelValues("refused")
	// The names, and no more labels, as Prometheus gives them to metrics that it receives over OTLP.
	out, err := exporter.New(exporter.WithRegisterer(t.registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo(),
		exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	t.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(out))
	if c.OTLP != "" {
		if t.spans, err = newSpans(c, t.drop, say); err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
	}
	if err := t.start(); err != nil {
		return nil, errors.Join(err, t.Close(context.Background()))
	}
	return t, nil
}

func (t *Telemetry) start() (err error) {
	var tracers trace.TracerProvider = noop.NewTracerProvider()
	if t.spans != nil {
		tracers = t.spans.provider
	}
	t.tracer = tracers.Tracer(scope)
	t.lull, err = lullotel.New(lullotel.WithMeterProvider(t.meters), lullotel.WithTracerProvider(tracers))
	return err
}

// Close sends the spans that are still in the queue, for as long as ctx allows.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.spans == nil {
		return nil
	}
	return t.spans.provider.Shutdown(ctx)
}

// Metrics is the handler for /metrics.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Options are for all dependencies of the proxy: they count its calls.
func (t *Telemetry) Options() []lull.Option { return t.lull.Options() }

// watchFleet shows whether Redis answers. Call it once.
func (t *Telemetry) watchFleet(b *Budgets) {
	t.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "proxy_fleet_in_step", Help: "1 if Redis has answered lately for all budgets of the fleet."},
		func() float64 {
			if away, _ := b.away(); away {
				return 0
			}
			return 1
		}))
}

func (t *Telemetry) drop(spans int) { t.dropped.Add(float64(spans)) }

var classes = [...]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

// CountRequest counts a request that a door has answered. A status of 0 means that its client has left before.
func (t *Telemetry) CountRequest(door string, status int) {
	class := status / 100
	if class < 1 || class >= len(classes) {
		class = 0
	}
	t.requests.WithLabelValues(door, classes[class]).Inc()
}

// CountReload counts a file that was read again. err: it was refused.
func (t *Telemetry) CountReload(err error) {
	result := "ok"
	if err != nil {
		result = "refused"
	}
	t.reloads.WithLabelValues(result).Inc()
}
