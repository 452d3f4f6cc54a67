// Package dashboards has a dashboard for Grafana (lull.json), recording rules and alerts for
// Prometheus (rules.yml), and what makes and tests them. Both are on the metrics of package
// lullotel.
//
// To use them: import lull.json in Grafana, and name rules.yml under rule_files in
// prometheus.yml. What to do when an alert fires is in docs/runbooks.md.
//
// lull.json is made from [Rows]: go test -run Dashboard -update.
//
// The tests start a Prometheus of their own, which a program that has an outage in its midst
// sends its metrics to (OTLP over HTTP, by OpenTelemetry's exporter), and hold what every
// panel's expression returns against what the events of that program add up to, to the
// number. The alerts are tested by promtool (alerts.test.yml). Both programs are built by
// .ci/prometheus/install; without them these tests are skipped, and fail if CI is set.
// (Debian's packages leave the OTLP receiver out, as of 3.5.)
//
// docs/dashboard.png shows the panels as [Render] draws them, from the answers of that
// Prometheus in such a run: go test -run Panels -args -picture FILE.html, then
// chromium --headless --screenshot=FILE.png --window-size=1500,1620 --hide-scrollbars FILE.html.
package dashboards
