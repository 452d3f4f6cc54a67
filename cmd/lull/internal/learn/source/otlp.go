package source

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// readOTLP reads OTLP metrics as JSON, one object a line, as the collector's file exporter writes them.
func (r *reader) readOTLP(text *bufio.Reader) error {
	return r.eachLine(text, json.Valid, func(line []byte) error {
		var data metricspb.MetricsData
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(line, &data); err != nil {
			r.problem("json", "the line is not OTLP metrics as JSON: "+err.Error())
		}
		for _, resource := range data.ResourceMetrics {
			of := withLabels(map[string]string{}, resource.GetResource().GetAttributes())
			process := map[string]string{"job": of["service_name"],
				"instance": of["service_instance_id"] + of["process_pid"] + of["host_name"]}
			for _, scope := range resource.ScopeMetrics {
				for _, m := range scope.Metrics {
					r.addMetric(m, process)
				}
			}
		}
		return nil
	})
}

// withLabels returns the labels of a process and those of one of its points.
func withLabels(process map[string]string, attributes []*commonpb.KeyValue) map[string]string {
	labels := maps.Clone(process)
	for _, a := range attributes {
		value := a.GetValue().GetStringValue()
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_IntValue:
			value = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_BoolValue:
			value = fmt.Sprint(v.BoolValue)
		}
		labels[plainName(a.Key)] = value
	}
	return labels
}

// addMetric adds the points of a metric.
func (r *reader) addMetric(m *metricspb.Metric, process map[string]string) {
	name := m.Name + map[string]string{"s": "_seconds", "ms": "_milliseconds"}[m.Unit]
	add := func(attributes []*commonpb.KeyValue, at, start uint64, temporality metricspb.AggregationTemporality, s sample) {
		if at == 0 || at > math.MaxInt64 || start > at {
			r.problem("untimed", "a point has no time, or one before its start, and is not used")
			return
		}
		s.at, s.start, s.delta = int64(at), int64(start), temporality == metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
		r.addSample(name, withLabels(process, attributes), s)
	}
	for _, p := range m.GetSum().GetDataPoints() {
		s := sample{n: p.GetAsDouble() + float64(p.GetAsInt())}
		add(p.Attributes, p.TimeUnixNano, p.StartTimeUnixNano, m.GetSum().AggregationTemporality, s)
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		s := sample{n: float64(p.Count)}
		for i, below := 0, uint64(0); i < min(len(p.ExplicitBounds), len(p.BucketCounts)); i++ {
			below += p.BucketCounts[i]
			s.bars = append(s.bars, edge{p.ExplicitBounds[i], float64(below)})
		}
		add(p.Attributes, p.TimeUnixNano, p.StartTimeUnixNano, m.GetHistogram().AggregationTemporality, s)
	}
	for _, p := range m.GetExponentialHistogram().GetDataPoints() {
		s := sample{n: float64(p.Count), bars: []edge{{p.ZeroThreshold, float64(p.ZeroCount)}}}
		base := math.Exp2(math.Exp2(-float64(p.Scale)))
		for i, n := range p.GetPositive().GetBucketCounts() {
			if at := float64(p.Positive.Offset) + float64(i); n > 0 {
				s.bars = addBar(s.bars, math.Pow(base, at), math.Pow(base, at+1), float64(n))
			}
		}
		add(p.Attributes, p.TimeUnixNano, p.StartTimeUnixNano, m.GetExponentialHistogram().AggregationTemporality, s)
	}
}
