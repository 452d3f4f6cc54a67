package dashboards

import (
	"encoding/json"
	"strings"
)

// A Panel is one picture of the dashboard, and what it asks Prometheus for.
type Panel struct {
	Title, Description string
	Kind               string // timeseries, heatmap, state-timeline or bargauge, as Grafana calls it
	Unit               string // as Grafana calls it
	Stacked            bool
	Width, Height      int // of 24, and in Grafana's rows
	Queries            []Query
}

// A Query is one expression of a panel. $dependency, $queue and $admission stand for what
// was chosen, and $__rate_interval for a window of at least four scrapes.
type Query struct {
	Legend string // with labels as {{name}}
	Expr   string
}

// Row is a title over panels.
type Row struct {
	Title  string
	Panels []Panel
}

const (
	dep  = `dependency=~"$dependency"`
	over = `[$__rate_interval]`
)

func byDependency(metric, more string) string {
	if more != "" {
		more = "," + more
	}
	return "sum by (dependency) (rate(" + metric + "{" + dep + more + "}" + over + "))"
}

// Rows is the dashboard.
func Rows() []Row {
	quantile := func(q, in string) string { return "histogram_quantile(" + q + ", " + in + ")" }
	calls := "sum by (le) (rate(retry_call_duration_seconds_bucket{" + dep + "}" + over + "))"
	attempts := "sum by (le) (rate(retry_attempt_duration_seconds_bucket{" + dep + "}" + over + ") or rate(retry_call_duration_seconds_bucket{" + dep + `,outcome="success_first"}` + over + "))"
	return []Row{
		{"What callers get, and what it costs", []Panel{
			{
				Title: "Calls by result", Kind: "timeseries", Unit: "reqps", Stacked: true, Width: 12, Height: 8,
				Description: "Calls per second whose first attempt succeeded, that succeeded after a retry, and that failed in the end. Retries hide the second from callers: it is the early warning.",
				Queries: []Query{
					{"first attempt", "sum(rate(retry_calls_total{" + dep + `,outcome="success_first"}` + over + "))"},
					{"after retry", "sum(rate(retry_calls_total{" + dep + `,outcome="success_retry"}` + over + "))"},
					{"failed", "sum(rate(retry_calls_total{" + dep + `,outcome=~"failed_.*|cancelled"}` + over + "))"},
				},
			},
			{
				Title: "Amplification", Kind: "timeseries", Unit: "none", Width: 6, Height: 8,
				Description: "Attempts per call. 1 is no retries; a budget of 10 % keeps it below 1.1. Below 1: calls that were refused before their first attempt.",
				Queries:     []Query{{"{{dependency}}", byDependency("retry_attempts_total", "") + " / " + byDependency("retry_calls_total", "")}},
			},
			{
				Title: "Retries by endpoint", Kind: "timeseries", Unit: "reqps", Width: 6, Height: 8,
				Description: "Attempts per second beyond the first of their call, by dependency and operation.",
				Queries:     []Query{{"{{dependency}} {{operation}}", `sum by (dependency, operation) (rate(retry_attempts_total{` + dep + `,resend="true"}` + over + "))"}},
			},
			{
				Title: "Retries that helped", Kind: "timeseries", Unit: "percentunit", Width: 6, Height: 8,
				Description: "The share of retries that succeeded. Near 0: they only add load.",
				Queries:     []Query{{"{{dependency}}", byDependency("retry_calls_total", `outcome="success_retry"`) + " / " + byDependency("retry_attempts_total", `resend="true"`)}},
			},
			{
				Title: "Failed calls by reason", Kind: "timeseries", Unit: "reqps", Stacked: true, Width: 6, Height: 8,
				Description: "Why no further attempt was made.",
				Queries:     []Query{{"{{reason}}", "sum by (reason) (rate(retry_call_failures_total{" + dep + "}" + over + "))"}},
			},
			{
				Title: "Failed attempts by error", Kind: "timeseries", Unit: "reqps", Stacked: true, Width: 6, Height: 8,
				Description: "Attempts that failed, whether or not their call did.",
				Queries:     []Query{{"{{error_type}}", "sum by (error_type) (rate(retry_attempt_failures_total{" + dep + "}" + over + "))"}},
			},
			{
				Title: "Outcomes", Kind: "bargauge", Unit: "none", Width: 6, Height: 8,
				Description: "Calls in the window, by outcome.",
				Queries:     []Query{{"{{outcome}}", "sum by (outcome) (increase(retry_calls_total{" + dep + "}" + over + "))"}},
			},
		}},
		{"Time", []Panel{
			{
				Title: "Waits before retries", Kind: "heatmap", Unit: "s", Width: 8, Height: 8,
				Description: "How long retries wait, as drawn. One narrow band is missing jitter.",
				Queries:     []Query{{"{{le}}", "sum by (le) (increase(retry_delay_seconds_bucket{" + dep + "}" + over + "))"}},
			},
			{
				Title: "Duration of calls", Kind: "timeseries", Unit: "s", Width: 8, Height: 8,
				Description: "With all attempts and waits. Of dependencies that were made with Options, or lull.WithTiming.",
				Queries:     []Query{{"p50", quantile("0.5", calls)}, {"p95", quantile("0.95", calls)}, {"p99", quantile("0.99", calls)}},
			},
			{
				Title: "Duration of attempts", Kind: "timeseries", Unit: "s", Width: 8, Height: 8,
				Description: "A call whose first attempt succeeds is one attempt; the others are counted one by one.",
				Queries:     []Query{{"p50", quantile("0.5", attempts)}, {"p95", quantile("0.95", attempts)}, {"p99", quantile("0.99", attempts)}},
			},
		}},
		{"What keeps retries in bounds", []Panel{
			{
				Title: "Retry budget", Kind: "timeseries", Unit: "none", Width: 6, Height: 8,
				Description: "Retries that each process would pay for now; the least of all processes.",
				Queries:     []Query{{"{{dependency}}", "min by (dependency) (retry_budget_tokens{" + dep + "})"}},
			},
			{
				Title: "Retries that the budget refused", Kind: "timeseries", Unit: "reqps", Width: 6, Height: 8,
				Description: "Of these calls the first failure was final.",
				Queries:     []Query{{"{{dependency}}", byDependency("retry_budget_denied_total", "")}},
			},
			{
				Title: "Circuit breakers", Kind: "state-timeline", Unit: "none", Width: 12, Height: 8,
				Description: "0 closed, 1 half-open, 2 open: the worst of all processes.",
				Queries:     []Query{{"{{dependency}}", `max by (dependency) (2 * retry_breaker_state{` + dep + `,state="open"} + ignoring (state) retry_breaker_state{` + dep + `,state="half-open"})`}},
			},
			{
				Title: "Changes of circuit breakers", Kind: "timeseries", Unit: "none", Width: 8, Height: 8,
				Description: "In the window.",
				Queries:     []Query{{"{{dependency}} to {{to}}", "sum by (dependency, to) (increase(retry_breaker_transitions_total{" + dep + "}" + over + "))"}},
			},
			{
				Title: "What servers said about retries", Kind: "timeseries", Unit: "reqps", Width: 8, Height: 8,
				Description: "honoured: a retry waited for as long as the server asked. too_long, dont_retry: the call ended instead.",
				Queries:     []Query{{"{{result}}", "sum by (result) (rate(retry_server_hints_total{" + dep + "}" + over + "))"}},
			},
			{
				Title: "Hedges", Kind: "timeseries", Unit: "reqps", Width: 8, Height: 8,
				Description: "Attempts beside others that were begun, and refused.",
				Queries:     []Query{{"{{result}}", "sum by (result) (rate(retry_hedges_total{" + dep + "}" + over + "))"}},
			},
		}},
		{"Servers: admission", []Panel{
			{
				Title: "Requests refused", Kind: "timeseries", Unit: "reqps", Stacked: true, Width: 8, Height: 8,
				Description: "By reason, and whether they were first attempts, retries or hedges.",
				Queries:     []Query{{"{{reason}} {{attempt_class}}", `sum by (reason, attempt_class) (rate(admission_shed_total{admission=~"$admission"}` + over + "))"}},
			},
			{
				Title: "In flight, and the limit", Kind: "timeseries", Unit: "none", Width: 8, Height: 8,
				Description: "Of all processes.",
				Queries: []Query{
					{"in flight", `sum(admission_in_flight{admission=~"$admission"})`}, {"waiting", `sum(admission_waiting{admission=~"$admission"})`},
					{"limit", `sum(admission_limit{admission=~"$admission"})`},
				},
			},
			{
				Title: "Wait of those that waited", Kind: "timeseries", Unit: "s", Width: 8, Height: 8,
				Description: "Before they were admitted or refused.",
				Queries:     []Query{{"p99", quantile("0.99", `sum by (le) (rate(admission_queue_wait_seconds_bucket{admission=~"$admission"}`+over+"))")}},
			},
		}},
		{"Consumers of queues", []Panel{
			{
				Title: "Deliveries by outcome", Kind: "timeseries", Unit: "reqps", Stacked: true, Width: 8, Height: 8,
				Description: "What became of messages.",
				Queries:     []Query{{"{{outcome}}", `sum by (outcome) (rate(consumer_deliveries_total{queue=~"$queue"}` + over + "))"}},
			},
			{
				Title: "Dead letters", Kind: "bargauge", Unit: "none", Width: 8, Height: 8,
				Description: "Since the process began, by reason.",
				Queries:     []Query{{"{{reason}}", `sum by (reason) (consumer_dlq_total{queue=~"$queue"})`}},
			},
			{
				Title: "Attempt that a delivery was", Kind: "timeseries", Unit: "none", Width: 8, Height: 8,
				Description: "The 99th percentile: near the most that the policy allows, messages are about to become dead letters.",
				Queries:     []Query{{"p99", quantile("0.99", `sum by (le) (rate(consumer_attempt_bucket{queue=~"$queue"}`+over+"))")}},
			},
		}},
	}
}

// Fill puts values for the variables of an expression.
func Fill(expr, window string) string {
	return strings.NewReplacer("$dependency", ".*", "$admission", ".*", "$queue", ".*", "$__rate_interval", window).Replace(expr)
}

type object = map[string]any

// Dashboard is the dashboard as Grafana imports it.
func Dashboard() ([]byte, error) {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	variable := func(name, query string) object {
		return object{
			"name": name, "type": "query", "datasource": source, "query": object{"query": query, "refId": name},
			"refresh": 2, "multi": true, "includeAll": true, "allValue": ".*", "sort": 1,
			"current": object{"text": "All", "value": "$__all"},
		}
	}
	var panels []object
	id, y := 0, 0
	for _, row := range Rows() {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": row.Title, "collapsed": false, "panels": []object{}, "gridPos": object{"x": 0, "y": y, "w": 24, "h": 1}})
		y++
		x, height := 0, 0
		for _, p := range row.Panels {
			if x+p.Width > 24 {
				x, y = 0, y+height
			}
			id++
			panels = append(panels, p.grafana(id, x, y, source))
			x, height = x+p.Width, p.Height
		}
		y += height
	}
	return json.MarshalIndent(object{
		"title": "lull: retries", "uid": "lull-retries", "description": "Calls under lull's policies, by the metrics of package lullotel.",
		"tags": []string{"lull", "retries"}, "schemaVersion": 39, "version": 1, "editable": true, "graphTooltip": 1,
		"time": object{"from": "now-1h", "to": "now"}, "refresh": "30s", "timezone": "browser",
		"templating": object{"list": []object{
			{"name": "datasource", "type": "datasource", "query": "prometheus", "current": object{}},
			variable("dependency", "label_values(retry_calls_total, dependency)"),
			variable("admission", "label_values(admission_limit, admission)"),
			variable("queue", "label_values(consumer_deliveries_total, queue)"),
		}},
		"panels": panels,
	}, "", "\t")
}

func (p Panel) grafana(id, x, y int, source object) object {
	format, instant := "time_series", p.Kind == "bargauge"
	if p.Kind == "heatmap" {
		format = "heatmap"
	}
	var targets []object
	for i, q := range p.Queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.Expr, "legendFormat": q.Legend, "format": format,
			"instant": instant, "range": !instant,
		})
	}
	custom := object{"lineWidth": 1, "fillOpacity": 10}
	options := object{}
	switch {
	case p.Stacked:
		custom["fillOpacity"], custom["stacking"] = 60, object{"mode": "normal", "group": "A"}
	case p.Kind == "heatmap":
		options["calculate"] = false
		options["yAxis"] = object{"unit": p.Unit}
	case p.Kind == "state-timeline":
		custom = object{"fillOpacity": 80, "lineWidth": 0}
		options["mergeValues"] = true
	}
	defaults := object{"unit": p.Unit, "min": 0, "custom": custom}
	if p.Kind == "state-timeline" {
		defaults["mappings"] = []object{{"type": "value", "options": object{
			"0": object{"text": "closed", "color": "green", "index": 0}, "1": object{"text": "half-open", "color": "yellow", "index": 1}, "2": object{"text": "open", "color": "red", "index": 2},
		}}}
	}
	return object{
		"id": id, "type": p.Kind, "title": p.Title, "description": p.Description, "datasource": source,
		"gridPos": object{"x": x, "y": y, "w": p.Width, "h": p.Height}, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}}, "options": options,
	}
}
