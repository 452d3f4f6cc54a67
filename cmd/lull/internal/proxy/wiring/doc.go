// Package wiring is what "lull proxy" takes from larger modules: metrics for Prometheus, traces over OTLP, the budget of a
// fleet, and stores for Idempotency-Keys.
package wiring
