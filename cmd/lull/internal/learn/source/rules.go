package source

import (
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// A rule says what a metric means.
type rule struct {
	role    role
	side    observed.Side
	service []string // labels: the first that is there has the name of the service
	unit    float64  // seconds, if the name of the metric has none
	outcome func(labels map[string]string) (outcome string, ok bool)
}

// A role is what a metric tells of its series.
type role uint8

const (
	timed    role = iota // how long requests took, by outcome
	untimed              // how many ended, by outcome
	mixed                // how long requests took, whatever their outcome
	counted              // as untimed, but used only if nothing else is known
	retried              // how many retries
	inFlight             // how many are in progress
)

var (
	dependency = []string{"dependency"}
	cluster    = []string{"envoy_cluster_name"}
	istio      = []string{"destination_service_name", "destination_canonical_service", "destination_workload"}
	peer       = []string{"peer_service", "service_peer_name", "server_address", "net_peer_name"}
)

// addresses are labels whose values are no names.
var addresses = []string{"server_address", "net_peer_name"}

// rules are by the name of the metric without its unit and the endings of Prometheus.
var rules = map[string][]rule{
	// lullotel's. First attempts that succeed are in the duration of calls alone.
	"retry_call_duration":    {{timed, observed.Calls, dependency, 1, lullOutcome}, {timed, observed.Attempts, dependency, 1, only("outcome", "success_first", "200")}},
	"retry_calls":            {{counted, observed.Calls, dependency, 1, lullOutcome}, {untimed, observed.Attempts, dependency, 1, only("outcome", "success_retry", "200")}},
	"retry_attempt_duration": {{mixed, observed.Attempts, dependency, 1, anyOutcome}},
	"retry_attempt_failures": {{untimed, observed.Attempts, dependency, 1, codeOutcome}},
	"retry_attempts":         {{retried, observed.Attempts, dependency, 1, only("resend", "true", "")}},
	"retry_limit_in_flight":  {{inFlight, observed.Attempts, dependency, 1, anyOutcome}},

	// OpenTelemetry's semantic conventions: stable, and before.
	"http_client_request_duration": {{timed, observed.Attempts, peer, 1, httpOutcome}},
	"http_client_duration":         {{timed, observed.Attempts, peer, .001, httpOutcome}},
	"http_client_active_requests":  {{inFlight, observed.Attempts, peer, 1, anyOutcome}},
	"http_server_request_duration": {{timed, observed.Served, nil, 1, httpOutcome}},
	"http_server_duration":         {{timed, observed.Served, nil, .001, httpOutcome}},
	"http_server_active_requests":  {{inFlight, observed.Served, nil, 1, anyOutcome}},

	"envoy_cluster_upstream_rq_time":   {{mixed, observed.Attempts, cluster, .001, anyOutcome}},
	"envoy_cluster_upstream_rq":        {{untimed, observed.Attempts, cluster, 1, codeOutcome}},
	"envoy_cluster_retry_upstream_rq":  {{untimed, observed.Attempts, cluster, 1, codeOutcome}},
	"envoy_cluster_upstream_rq_retry":  {{retried, observed.Attempts, cluster, 1, anyOutcome}},
	"envoy_cluster_upstream_rq_active": {{inFlight, observed.Attempts, cluster, 1, anyOutcome}},

	"istio_request_duration": {{timed, observed.Calls, istio, .001, reportedBy("source")}, {timed, observed.Served, istio, .001, reportedBy("destination")}},
	"istio_requests":         {{counted, observed.Calls, istio, 1, reportedBy("source")}, {counted, observed.Served, istio, 1, reportedBy("destination")}},
}

func anyOutcome(map[string]string) (string, bool) { return "", true }

func only(label, value, outcome string) func(map[string]string) (string, bool) {
	return func(l map[string]string) (string, bool) { return outcome, l[label] == value }
}

func lullOutcome(l map[string]string) (string, bool) {
	switch o := l["outcome"]; o {
	case "success_first", "success_retry", "degraded":
		return "200", o != "degraded"
	case "failed_deadline":
		return "timeout", true
	case "canceled":
		return o, true
	}
	return "error", l["outcome"] != ""
}

func httpOutcome(l map[string]string) (string, bool) {
	if o, ok := codeOutcome(l); ok {
		return o, true
	}
	return "error", true // neither a status nor a type of error
}

func codeOutcome(l map[string]string) (string, bool) {
	for _, label := range []string{"http_response_status_code", "http_status_code", "envoy_response_code", "error_type"} {
		if l[label] != "" {
			return outcomeWord(l[label]), true
		}
	}
	return "", false
}

func reportedBy(side string) func(map[string]string) (string, bool) {
	return func(l map[string]string) (string, bool) {
		for flag, word := range map[string]string{"DC": "canceled", "UT": "timeout", "UF": "refused", "UC": "reset"} {
			if slices.Contains(strings.Split(l["response_flags"], ","), flag) {
				return word, l["reporter"] == side
			}
		}
		return outcomeWord(l["response_code"]), l["reporter"] == side
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
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, name)
}

// ruleName returns the name of a metric without endings, the ending that it had in a histogram, and the seconds of its unit, 0 if it
// has none.
func ruleName(name string) (base, part string, unit float64) {
	base = plainName(name)
	for _, ending := range []string{"bucket", "count", "sum", "total"} {
		if cut, ok := strings.CutSuffix(base, "_"+ending); ok {
			base, part = cut, ending
			break
		}
	}
	switch {
	case base == "envoy_cluster_upstream_rq" && part == "total": // all, in addition to those by code
		return name, "", 0
	case part == "total":
		part = ""
	}
	if cut, ok := strings.CutSuffix(base, "_milliseconds"); ok {
		return cut, part, .001
	}
	if cut, ok := strings.CutSuffix(base, "_seconds"); ok {
		return cut, part, 1
	}
	return base, part, 0
}
