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
	Width              int // of 24
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

// Of which dependencies, controllers and queues.
const (
	dep  = `dependency=~"$dependency"`
	gate = `admission=~"$admission"`
	line = `queue=~"$queue"`
)

// of selects the series of a metric.
func of(metric string, where ...string) string { return metric + "{" + strings.Join(where, ",") + "}" }

func rate(series string) string     { return "rate(" + series + "[$__rate_interval])" }
func increase(series string) string { return "increase(" + series + "[$__rate_interval])" }

// by adds up, or whatever the verb is, and keeps the labels. They are the legend.
func by(verb, what string, labels ...string) Query {
	return Query{"{{" + strings.Join(labels, "}} {{") + "}}", verb + " by (" + strings.Join(labels, ", ") + ") (" + what + ")"}
}

// quantiles of a histogram, such as 0.99 with the legend p99.
func quantiles(what string, all ...string) (queries []Query) {
	for _, q := range all {
		queries = append(queries, Query{"p" + (q + "0")[2:4], "histogram_quantile(" + q + ", " + by("sum", what, "le").Expr + ")"})
	}
	return queries
}

// graph is a panel of lines over time.
func graph(title, unit string, width int, description string, queries ...Query) Panel {
	return Panel{Title: title, Description: description, Kind: "timeseries", Unit: unit, Width: width, Queries: queries}
}

// areas is a graph whose values are stacked.
func areas(title, unit string, width int, description string, queries ...Query) Panel {
	p := graph(title, unit, width, description, queries...)
	p.Stacked = true
	return p
}

// panel is one of another kind.
func panel(kind, title, unit string, width int, description string, queries ...Query) Panel {
	p := graph(title, unit, width, description, queries...)
	p.Kind = kind
	return p
}

// Rows is the dashboard.
func Rows() []Row {
	const first, again, degraded, resent = `outcome="success_first"`, `outcome="success_retry"`, `outcome="degraded"`, `resend="true"`
	sum := func(legend, what string) Query { return Query{legend, "sum(" + what + ")"} }
	each := func(metric string, where ...string) Query {
		return by("sum", rate(of(metric, append([]string{dep}, where...)...)), "dependency")
	}
	share := func(part, whole Query) Query { return Query{part.Legend, part.Expr + " / " + whole.Expr} }
	changes := by("sum", increase(of("retry_breaker_transitions_total", dep)), "dependency", "to")
	changes.Legend = "{{dependency}} to {{to}}"
	took := of("retry_call_duration_seconds_bucket", dep)
	return []Row{
		{"What callers get, and what it costs", []Panel{
			areas("Calls by result", "reqps", 12,
				"Calls per second whose first attempt succeeded, that succeeded after a retry, that a fallback answered, and that failed in the end. Retries hide the second from callers: it is the early warning.",
				sum("first attempt", rate(of("retry_calls_total", dep, first))),
				sum("after retry", rate(of("retry_calls_total", dep, again))),
				sum("degraded", rate(of("retry_calls_total", dep, degraded))),
				sum("failed", rate(of("retry_calls_total", dep, `outcome=~"failed_.*|canceled"`)))),
			graph("Amplification", "none", 4,
				"Attempts per call. 1 is no retries; a budget of 10 % keeps it below 1.1. Below 1: calls that were refused before their first attempt.",
				share(each("retry_attempts_total"), each("retry_calls_total"))),
			graph("Retries by endpoint", "reqps", 4,
				"Attempts per second beyond the first of their call, by dependency and operation.",
				by("sum", rate(of("retry_attempts_total", dep, resent)), "dependency", "operation")),
			graph("Degraded answers", "percentunit", 4,
				"The share of calls that failed and whose fallback answered (lull.DoOr).",
				share(each("retry_calls_total", degraded), each("retry_calls_total"))),
			graph("Retries that helped", "percentunit", 6,
				"The share of retries that succeeded. Near 0: they only add load.",
				share(each("retry_calls_total", again), each("retry_attempts_total", resent))),
			areas("Failed calls by reason", "reqps", 6,
				"Why no further attempt was made.",
				by("sum", rate(of("retry_call_failures_total", dep)), "reason")),
			areas("Failed attempts by error", "reqps", 6,
				"Attempts that failed, whether or not their call did.",
				by("sum", rate(of("retry_attempt_failures_total", dep)), "error_type")),
			panel("bargauge", "Outcomes", "none", 6,
				"Calls in the window, by outcome.",
				by("sum", increase(of("retry_calls_total", dep)), "outcome")),
		}},
		{"Time", []Panel{
			areas("Calls held", "none", 6,
				"Calls that ended, by how long they held their callers: so many were in progress on average, in attempts and in waits.",
				by("sum", rate(of("retry_held_seconds_total", dep)), "in")),
			panel("heatmap", "Waits before retries", "s", 6,
				"How long retries wait, as drawn. One narrow band is missing jitter.",
				by("sum", increase(of("retry_delay_seconds_bucket", dep)), "le")),
			graph("Duration of calls", "s", 6,
				"With all attempts and waits. Of dependencies that were made with Options, or lull.WithTiming.",
				quantiles(rate(took), "0.5", "0.95", "0.99")...),
			graph("Duration of attempts", "s", 6,
				"A call whose first attempt succeeds is one attempt; the others are counted one by one.",
				quantiles(rate(of("retry_attempt_duration_seconds_bucket", dep))+" or "+
					rate(of("retry_call_duration_seconds_bucket", dep, first)), "0.5", "0.95", "0.99")...),
		}},
		{"What keeps retries in bounds", []Panel{
			graph("Retry budget", "none", 6,
				"Retries that each process would pay for now; the least of all processes.",
				by("min", of("retry_budget_tokens", dep), "dependency")),
			graph("Retries that the budget refused", "reqps", 6,
				"Of these calls the first failure was final.",
				each("retry_budget_denied_total")),
			panel("state-timeline", "Circuit breakers", "none", 12,
				"0 closed, 1 half-open, 2 open: the worst of all processes.",
				by("max", "2 * "+of("retry_breaker_state", dep, `state="open"`)+" + ignoring (state) "+
					of("retry_breaker_state", dep, `state="half-open"`), "dependency")),
			graph("Changes of circuit breakers", "none", 8,
				"In the window.",
				changes),
			graph("What servers said about retries", "reqps", 8,
				"honoured: a retry waited for as long as the server asked. too_long, dont_retry: the call ended instead.",
				by("sum", rate(of("retry_server_hints_total", dep)), "result")),
			graph("Hedges", "reqps", 8,
				"Attempts beside others that were begun, and refused.",
				by("sum", rate(of("retry_hedges_total", dep)), "result")),
			graph("Budget left of its stock", "percentunit", 12,
				"The least of all processes. Above 1: tokens of the window.",
				by("min", of("retry_budget_tokens", dep)+" / "+of("retry_budget_stock", dep), "dependency")),
			graph("Cooldowns", "s", 12,
				"For how long a circuit or a throttle still holds attempts back, or a server has asked to; the longest of all processes.",
				by("max", of("retry_cooldown_seconds", dep), "dependency", "cause")),
		}},
		{"Servers: admission", []Panel{
			areas("Requests refused", "reqps", 8,
				"By reason, and whether they were first attempts, retries or hedges.",
				by("sum", rate(of("admission_shed_total", gate)), "reason", "attempt_class")),
			graph("In flight, and the limit", "none", 8,
				"Of all processes.",
				sum("in flight", of("admission_in_flight", gate)),
				sum("waiting", of("admission_waiting", gate)),
				sum("limit", of("admission_limit", gate))),
			graph("Wait of those that waited", "s", 8,
				"Before they were admitted or refused.",
				quantiles(rate(of("admission_queue_wait_seconds_bucket", gate)), "0.99")...),
		}},
		{"Consumers of queues", []Panel{
			areas("Deliveries by outcome", "reqps", 8,
				"What became of messages.",
				by("sum", rate(of("consumer_deliveries_total", line)), "outcome")),
			panel("bargauge", "Dead letters", "none", 8,
				"Since the process began, by reason.",
				by("sum", of("consumer_dlq_total", line), "reason")),
			graph("Attempt that a delivery was", "none", 8,
				"The 99th percentile: near the most that the policy allows, messages are about to become dead letters.",
				quantiles(rate(of("consumer_attempt_bucket", line)), "0.99")...),
		}},
	}
}

// Fill puts values for the variables of an expression.
func Fill(expr, window string) string {
	return strings.NewReplacer("$dependency", ".*", "$admission", ".*", "$queue", ".*", "$__rate_interval", window).Replace(expr)
}

// panelHeight is that of each panel, in Grafana's rows.
const panelHeight = 8

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
		x := 0
		for _, p := range row.Panels {
			if x+p.Width > 24 {
				x, y = 0, y+panelHeight
			}
			id++
			panels = append(panels, p.grafana(id, x, y, source))
			x += p.Width
		}
		y += panelHeight
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
		"gridPos": object{"x": x, "y": y, "w": p.Width, "h": panelHeight}, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}}, "options": options,
	}
}
