package source

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// A rule says what a metric means.
type rule struct {
	side    observed.Side
	service []string // labels: the first that is there has the name of the service
	unit    float64  // seconds, if the name of the metric has none
	outcome func(labels map[string]string) string
}

// What a metric has if it is no outcome. A rule has no use for a metric with the outcome "".
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
)

// rules are by the name of the metric without its unit and the endings of Prometheus.
var rules = map[string][]rule{
	// lullotel's. First attempts that succeed are in the duration of calls alone.
	"retry_call_duration":    {{observed.Calls, dependency, 1, lullOutcome}, {observed.Attempts, dependency, 1, only("outcome", "success_first", "200")}},
	"retry_calls":            {{observed.Attempts, dependency, 1, only("outcome", "success_retry", "200")}},
	"retry_attempt_duration": {{observed.Attempts, dependency, 1, always(together)}},
	"retry_attempt_failures": {{observed.Attempts, dependency, 1, codeOutcome}},
	"retry_attempts":         {{observed.Attempts, dependency, 1, only("resend", "true", retried)}},

	// OpenTelemetry's semantic conventions: stable, and before.
	"http_client_request_duration": {{observed.Attempts, peer, 1, httpOutcome}},
	"http_client_duration":         {{observed.Attempts, peer, .001, httpOutcome}},
	"http_server_request_duration": {{observed.Served, nil, 1, httpOutcome}},
	"http_server_duration":         {{observed.Served, nil, .001, httpOutcome}},

	"envoy_cluster_upstream_rq_time":  {{observed.Attempts, cluster, .001, always(together)}},
	"envoy_cluster_upstream_rq":       {{observed.Attempts, cluster, 1, codeOutcome}},
	"envoy_cluster_retry_upstream_rq": {{observed.Attempts, cluster, 1, codeOutcome}},
	"envoy_cluster_upstream_rq_retry": {{observed.Attempts, cluster, 1, always(retried)}},

	"istio_request_duration": {{observed.Calls, istio, .001, reportedBy("source")}, {observed.Served, istio, .001, reportedBy("destination")}},
}

func always(outcome string) func(map[string]string) string {
	return func(map[string]string) string { return outcome }
}

func only(label, value, outcome string) func(map[string]string) string {
	return func(l map[string]string) string { return map[bool]string{true: outcome}[l[label] == value] }
}

func lullOutcome(l map[string]string) string {
	known := map[string]string{"success_first": "200", "success_retry": "200", "failed_deadline": "timeout", "canceled": "canceled", "": ""}
	if o, ok := known[l["outcome"]]; ok {
		return o
	}
	return "error"
}

// codeOutcome returns "" if there is neither a code nor a type of error.
func codeOutcome(l map[string]string) string {
	for _, label := range []string{"http_response_status_code", "http_status_code", "envoy_response_code", "error_type"} {
		if l[label] != "" {
			return outcomeWord(l[label])
		}
	}
	return ""
}

func httpOutcome(l map[string]string) string { return cmp.Or(codeOutcome(l), "error") }

func reportedBy(side string) func(map[string]string) string {
	return func(l map[string]string) string {
		outcome := outcomeWord(l["response_code"])
		for flag, word := range map[string]string{"DC": "canceled", "UT": "timeout", "UF": "refused", "UC": "reset"} {
			if slices.Contains(strings.Split(l["response_flags"], ","), flag) {
				outcome = word
			}
		}
		return map[bool]string{true: outcome}[l["reporter"] == side]
	}
}

// outcomeWord returns the outcome of a code, or of an error's type, which may be the name of a type in a program.
func outcomeWord(s string) string {
	if o, ok := outcomeOf([]byte(s)); ok {
		return outcomeName(o)
	}
	for _, w := range [][2]string{{"timeout", "timeout"}, {"deadline", "timeout"}, {"refused", "refused"}, {"reset", "reset"}, {"eof", "reset"}, {"cancel", "canceled"}} {
		if strings.Contains(strings.ToLower(s), w[0]) {
			return w[1]
		}
	}
	return "error"
}

// plainName returns a name of OpenTelemetry as Prometheus writes it.
func plainName(name string) string { return underscores.Replace(name) }

var underscores = strings.NewReplacer(".", "_", "-", "_", "/", "_")

// ruleName returns the name of a metric without endings, the ending that it had in a histogram, and the seconds of its unit, 0 if it
// has none.
func ruleName(name string) (base, part string, unit float64) {
	base = plainName(name)
	for _, ending := range []string{"_bucket", "_count", "_sum"} {
		if cut, ok := strings.CutSuffix(base, ending); ok {
			base, part = cut, ending
		}
	}
	if base != "envoy_cluster_upstream_rq_total" { // all, in addition to those by code
		base = strings.TrimSuffix(base, "_total")
	}
	if cut, ok := strings.CutSuffix(base, "_milliseconds"); ok {
		return cut, part, .001
	}
	if cut, ok := strings.CutSuffix(base, "_seconds"); ok {
		return cut, part, 1
	}
	return base, part, 0
}
