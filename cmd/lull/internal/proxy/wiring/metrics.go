package wiring

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/lullgo/lull/integrations/lullotel"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// newMetrics returns a Wiring with the proxy's own metrics.
func newMetrics(linesLost func() uint64) *Wiring {
	w := &Wiring{registry: prometheus.NewRegistry(), unwatch: func() {}}
	w.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	count := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	own := promauto.With(w.registry)
	w.requests = own.NewCounterVec(count("proxy_requests_total", "Requests that a door has answered, by class of status."), []string{"door", "status"})
	w.reloads = own.NewCounterVec(count("proxy_reloads_total", "Files that were read again: ok, or refused since they are wrong."), []string{"result"})
	w.reloads.WithLabelValues("ok")
	w.reloads.WithLabelValues("refused")
	w.ended = own.NewCounter(count("proxy_spans_ended_total", "Spans that were to be sent."))
	w.sent = own.NewCounter(count("proxy_spans_sent_total", "Spans that the collector has taken."))
	own.NewCounterFunc(count("proxy_log_lines_lost_total", "Lines of the access log that could not be written."), func() float64 { return float64(linesLost()) })
	return w
}

// observe begins to make metrics, and spans, of the proxy's calls.
func (w *Wiring) observe() {
	// The names, and no more labels, as Prometheus gives them to metrics that it receives over OTLP.
	out := must.Have(exporter.New(exporter.WithRegisterer(w.registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo(),
		exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes)))
	var tracers trace.TracerProvider = noop.NewTracerProvider()
	if w.tracers != nil {
		tracers = w.tracers
	}
	w.lull = must.Have(lullotel.New(lullotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(out))), lullotel.WithTracerProvider(tracers)))
}

// Metrics is the handler for /metrics.
func (w *Wiring) Metrics() http.Handler {
	return promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{})
}

// Count counts a request. It is for proxy.Wiring.
func (w *Wiring) Count(r *proxy.Record) {
	class := choice.Either(r.Status >= 100 && r.Status < 600, strconv.Itoa(r.Status/100)+"xx", "other") // the client has left before
	w.requests.WithLabelValues(r.Door, class).Inc()
}

// Reloaded counts that the file was read again, and put in force or, with err, refused.
func (w *Wiring) Reloaded(err error) {
	result := choice.Either(err != nil, "refused", "ok")
	w.reloads.WithLabelValues(result).Inc()
}

// Watch shows the state of p in the metrics. Call it again after each reload: its admission control may be another. One call at a
// time.
func (w *Wiring) Watch(p *proxy.Proxy) {
	w.unwatch()
	dependencies, gate := w.lull.WatchAll(p.Dependencies), w.lull.WatchGate(proxy.IngressDoor, p.Gate())
	w.unwatch = func() { dependencies(); gate() }
}
