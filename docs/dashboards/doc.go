// Package dashboards has a dashboard for Grafana (lull.json), recording rules and alerts for
// Prometheus (rules.yml), and the programs that generate and test them. Both use the metrics of
// package lullotel.
//
// To use them, import lull.json in Grafana, and name rules.yml under rule_files in
// prometheus.yml. docs/runbooks.md explains what to do when an alert fires.
//
// lull.json is generated from [Rows]: go test -run Dashboard -update.
//
// The tests start a Prometheus of their own. A program with an outage sends its metrics to it
// (OTLP over HTTP, by OpenTelemetry's exporter). The tests compare the result of every panel's
// expression with the sum of that program's events. The two must be equal. promtool tests the
// alerts (alerts.test.yml). .ci/install-prometheus builds both programs. Without them these
// tests are skipped, and fail if CI is set. (Debian's packages leave the OTLP receiver out, as
// of 3.5.)
//
// docs/dashboard.png shows the panels as [Render] draws them, from the answers of that
// Prometheus in such a run: go test -tags servers -run Panels -args -picture FILE.html, then
// chromium --headless --screenshot=FILE.png --window-size=1500,1620 --hide-scrollbars FILE.html.
package dashboards
