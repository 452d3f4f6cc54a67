// Package dashboards has a dashboard for Grafana (lull.json), recording rules and alerts for
// Prometheus (rules.yml), and their tests. Both use the metrics of package lullotel.
//
// To use them, import lull.json in Grafana, and name rules.yml under rule_files in
// prometheus.yml. docs/errors.md explains what to do when an alert fires.
//
// lull.json has Grafana's own form. Change it in Grafana and export it, or change the text.
//
// The tests start a Prometheus of their own, and send it the metrics of a program with an outage
// (OTLP over HTTP). Each panel's expression must return the sum of that program's events. promtool tests
// the alerts (alerts.test.yml). .ci/install-prometheus builds both programs. Without them these tests are
// skipped, and fail if CI is set.
package dashboards
