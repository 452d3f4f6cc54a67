// Package convert converts retry settings of other systems into lull's policy files, and back: gRPC
// service configs, Istio's VirtualServices and DestinationRules, Envoy's routes and clusters,
// HTTPRoutes of the Kubernetes Gateway API, Envoy Gateway's BackendTrafficPolicies, and Dapr's
// Resiliency.
//
// # Why a report
//
// No two of these systems have the same settings. If a converter does not report the differences,
// its files look right and are wrong: a budget for concurrent retries becomes one for all retries;
// a POST that was never repeated is repeated from now on. Nobody reads a generated file as
// carefully as one that they wrote. So everything that could not be carried over, or not unchanged,
// is in a [Report], with the place of the field, its value and the reason:
//
//	shop.yaml:14:52: changed: spec.http[0].retries.retryOn is "5xx": a policy has no such list: lull also retries 429 ...
//	policies.yaml:6:22: lost: dependencies.api.attempt_timeout is 1s: gRPC does not bound an attempt
//
// Entries are lost, changed, assumed or aside; see [Kind]. The readers mark what they read. A part
// that is not marked is aside if it is known to be about something else; otherwise it is lost,
// whatever its name is.
//
// # Two rules
//
// What the other side cannot express is left out, and not replaced by something that does more.
// lull's recommended breaker opens after failures that span two seconds. The nearest setting of
// Envoy would eject a host after as many failures in two milliseconds, so nothing is written.
// Settings that are similar enough are written and reported as changed: outlier detection for a
// breaker that opens at once, and retry budgets of all kinds for one another.
//
// What a file leaves open is as its system does it by default, as far as a policy can express that,
// and not as lull recommends it. [Options].Base changes that. Package preset has the figures.
//
// # What can be relied on
//
// What both sides can express is unchanged after a conversion there and back. Waits are compared by
// the times that are drawn, not by their fields. Every other difference is in the report. The
// result is valid for its system, by that system's own rules, and the same for the same input.
// Tests check this with random policies, configs and routes, and with the cases that the projects
// publish (testdata/README.md has their sources).
//
// From one proxy to another, settings that no policy can hold are carried over as well: which
// failures are retried, the exact retry budget, outlier detection, the choice of hosts.
//
// # What it does not do
//
// It does not route. A policy describes how calls are made, not where they go, so the result for a
// proxy has one route for each dependency, which users put where it belongs. It does not know the
// limits in files that it is not given. It does not merge into existing files. It does not know
// templates: convert the output of Helm or Kustomize.
//
// docs/convert.md has tables of all settings.
//
// # Cost
//
// A file of a hundred routes takes some ten milliseconds (go test -bench .). Files of up to 16 MiB,
// 10,000 documents, 100,000 aliased values and 20,000 dependencies are read. Nothing keeps state;
// everything may be called concurrently, on values that are not shared.
package convert
