package dashboards

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// sink takes OTLP over HTTP and turns what came last into Prometheus' text format: what a
// collector would do, or a Prometheus with an OTLP receiver (since 2.47), for those that
// have none. Names are as "Prometheus and OpenMetrics Compatibility" of the specification of
// OpenTelemetry has them; that they are is tested against OpenTelemetry's own exporter.
type sink struct {
	mu   sync.Mutex
	last *collector.ExportMetricsServiceRequest
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	q := new(collector.ExportMetricsServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.last = q
	s.mu.Unlock()
	answer, _ := proto.Marshal(&collector.ExportMetricsServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(answer)
}

// text is what came last.
func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, r := range s.last.GetResourceMetrics() {
		for _, scope := range r.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				write(&b, m)
			}
		}
	}
	return b.String()
}

func write(b *strings.Builder, m *metrics.Metric) {
	name := strings.ReplaceAll(m.GetName(), ".", "_")
	switch u := m.GetUnit(); {
	case u == "s":
		name += "_seconds"
	case strings.HasSuffix(u, "/s"):
		name += "_per_second"
	}
	switch {
	case m.GetSum() != nil:
		if m.GetSum().GetIsMonotonic() {
			name += "_total"
		}
		for _, p := range m.GetSum().GetDataPoints() {
			line(b, name, p.GetAttributes(), number(p))
		}
	case m.GetGauge() != nil:
		for _, p := range m.GetGauge().GetDataPoints() {
			line(b, name, p.GetAttributes(), number(p))
		}
	case m.GetHistogram() != nil:
		for _, p := range m.GetHistogram().GetDataPoints() {
			var n uint64
			for i, count := range p.GetBucketCounts() {
				n += count
				le := "+Inf"
				if i < len(p.GetExplicitBounds()) {
					le = strconv.FormatFloat(p.GetExplicitBounds()[i], 'g', -1, 64)
				}
				line(b, name+"_bucket", p.GetAttributes(), float64(n), "le", le)
			}
			line(b, name+"_sum", p.GetAttributes(), p.GetSum())
			line(b, name+"_count", p.GetAttributes(), float64(p.GetCount()))
		}
	}
}

func number(p *metrics.NumberDataPoint) float64 {
	if v, ok := p.GetValue().(*metrics.NumberDataPoint_AsInt); ok {
		return float64(v.AsInt)
	}
	return p.GetAsDouble()
}

func line(b *strings.Builder, name string, labels []*common.KeyValue, v float64, more ...string) {
	var all []string
	for _, kv := range labels {
		text := kv.GetValue().GetStringValue()
		if x, ok := kv.GetValue().GetValue().(*common.AnyValue_BoolValue); ok {
			text = strconv.FormatBool(x.BoolValue)
		}
		all = append(all, fmt.Sprintf("%s=%q", strings.ReplaceAll(kv.GetKey(), ".", "_"), text))
	}
	for i := 0; i < len(more); i += 2 {
		all = append(all, fmt.Sprintf("%s=%q", more[i], more[i+1]))
	}
	fmt.Fprintf(b, "%s{%s} %s\n", name, strings.Join(all, ","), strconv.FormatFloat(v, 'g', -1, 64))
}
