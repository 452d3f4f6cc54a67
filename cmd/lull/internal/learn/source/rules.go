package source

import (
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// A rule says what a metric means.
type rule struct {
	side         observed.Side
	service      []string // labels: the first that is there has the name of the service
	unit         float64  // seconds, if the name of the metric has none
	label, value string   // that it must have; "": any
	all          string   // the outcome of all; "": that of the first of codes that is there
	none         string   // the outcome if there is none; "": it is not used
}

// What a metric has if it is no outcome.
const (
	together = "?" // the times of all outcomes
	retried  = "+" // the number of retries
)

var (
	dependency = []string{"dependency"}
	cluster    = []string{"envoy_cluster_name"}
	istio      = []string{"destination_service_name", "destination_canonical_service", "destination_workload"}
	peer       = []string{"peer_service", "service_peer_name", "server_address", "net_peer_name"}
	addresses  = peer[2:] // the values of these labels are no names
	codes      = []string{"http_response_status_code", "http_status_code", "envoy_response_code", "response_code", "error_type", "outcome"}
	envoyFlags = map[string]string{"DC": "canceled", "UT": "timeout", "UF": "refused", "UC": "reset"}
	// errorWords are in the names of types of errors in programs, and in lullotel's outcomes.
	errorWords = [][2]string{{"timeout", "timeout"}, {"deadline", "timeout"}, {"refused", "refused"}, {"reset", "reset"}, {"eof", "reset"}, {"cancel", "canceled"},
		{"success", "200"}}
)

// rules are by the name of the metric without its unit and the endings of Prometheus.
var rules = map[string][]rule{
	// lullotel's. First attempts that succeed are in the duration of calls alone.
	"retry_call_duration": {{side: observed.Calls, service: dependency, unit: 1},
		{side: observed.Attempts, service: dependency, unit: 1, label: "outcome", value: "success_first"}},
	"retry_calls":            {{side: observed.Attempts, service: dependency, label: "outcome", value: "success_retry"}},
	"retry_attempt_duration": {{side: observed.Attempts, service: dependency, unit: 1, all: together}},
	"retry_attempt_failures": {{side: observed.Attempts, service: dependency}},
	"retry_attempts":         {{side: observed.Attempts, service: dependency, label: "resend", value: "true", all: retried}},

	// OpenTelemetry's semantic conventions: stable, and before.
	"http_client_request_duration": {{side: observed.Attempts, service: peer, unit: 1, none: "error"}},
	"http_client_duration":         {{side: observed.Attempts, service: peer, unit: .001, none: "error"}},
	"http_server_request_duration": {{side: observed.Served, unit: 1, none: "error"}},
	"http_server_duration":         {{side: observed.Served, unit: .001, none: "error"}},

	"envoy_cluster_upstream_rq_time":  {{side: observed.Attempts, service: cluster, unit: .001, all: together}},
	"envoy_cluster_upstream_rq":       {{side: observed.Attempts, service: cluster}},
	"envoy_cluster_retry_upstream_rq": {{side: observed.Attempts, service: cluster}},
	"envoy_cluster_upstream_rq_retry": {{side: observed.Attempts, service: cluster, all: retried}},

	"istio_request_duration": {{side: observed.Calls, service: istio, unit: .001, label: "reporter", value: "source"},
		{side: observed.Served, service: istio, unit: .001, label: "reporter", value: "destination"}},
}

// outcome returns how the requests with these labels ended; "": the metric is not used.
func (u rule) outcome(labels map[string]string) string {
	if labels[u.label] != u.value {
		return ""
	}
	if u.all != "" {
		return u.all
	}
	for _, flag := range strings.Split(labels["response_flags"], ",") {
		if outcome := envoyFlags[flag]; outcome != "" {
			return outcome
		}
	}
	i := slices.IndexFunc(codes, func(label string) bool { return labels[label] != "" })
	if i < 0 {
		return u.none
	}
	code := labels[codes[i]]
	if o := outcomeOf([]byte(code)); o != 0 {
		return outcomeName(o)
	}
	for _, w := range errorWords {
		if strings.Contains(strings.ToLower(code), w[0]) {
			return w[1]
		}
	}
	return "error"
}

// plainName returns a name of OpenTelemetry as Prometheus writes it.
func plainName(name string) string { return underscores.Replace(name) }

var underscores = strings.NewReplacer(".", "_", "-", "_", "/", "_", " ", "_")

// ruleName returns a metric without endings, what Prometheus has appended, and the seconds of its unit (0: it has none).
func ruleName(name string) (base, part string, unit float64) {
	base = plainName(name)
	for _, ending := range []string{"_bucket", "_count", "_sum", "_total"} {
		if cut, ok := strings.CutSuffix(base, ending); ok {
			base, part = cut, ending
		}
	}
	if cut, ok := strings.CutSuffix(base, "_milliseconds"); ok {
		return cut, part, .001
	}
	if cut, ok := strings.CutSuffix(base, "_seconds"); ok {
		return cut, part, 1
	}
	return base, part, 0
}
