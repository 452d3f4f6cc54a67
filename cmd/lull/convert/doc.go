// Package convert converts retry settings of other systems into lull's policy files, and back. It knows
// gRPC service configs, Istio's VirtualServices and DestinationRules, Envoy's routes and clusters,
// HTTPRoutes of the Kubernetes Gateway API, Envoy Gateway's BackendTrafficPolicies, Dapr's
// Resiliency, resilience4j in Spring's application.yml, and Linkerd's ServiceProfiles ([Formats]).
//
// # Why a report
//
// No two of these systems have the same settings. If a converter does not report the differences,
// its files look right and are wrong. A budget for concurrent retries becomes one for all retries.
// A POST that was never repeated is repeated from now on. Nobody reads a generated file as
// carefully as a file that they wrote. So a [Report] has each setting that is lost or changed, with
// its place, its value and the reason:
//
//	shop.yaml:14:52: changed: spec.http[0].retries.retryOn is "5xx": a policy has no such list: lull also retries 429 ...
//	policies.yaml:6:22: lost: dependencies.api.attempt_timeout is 1s: gRPC does not bound an attempt
//
// Entries are lost, changed, assumed or aside ([Kind]). The readers mark each part of a file that they
// read. A part without a mark is aside if it is known that it is not about calls. Every other part
// without a mark is lost, whatever its name is.
//
// # Two rules
//
// First: if the target cannot express a setting, the setting is left out. It is not replaced with one
// that does more. For example, lull's recommended breaker opens after failures that span two
// seconds. The nearest setting of Envoy would eject a host after as many failures in two
// milliseconds. So nothing is written. Similar settings are written, and are reported as changed:
// outlier detection for a breaker that opens at once, and one kind of retry budget for another.
//
// Second: a setting that a file does not have is given the default of the file's system, as far as a
// policy can express it. It is not given lull's default. [Options].Base changes that. Package preset
// has the figures.
//
// # What can be relied on
//
// A setting that both systems can express is the same after a conversion to the other system and back.
// (Waits are the same if the random times are. Their fields may differ.) Every other difference is in
// the report. The result is valid by the rules of its system. The same input always has the same
// result. Tests check all this with random policies, configs and routes, and with the cases that the
// projects publish (testdata/README.md has their sources).
//
// From one proxy to another, settings that no policy can express are kept, too: which failures are
// retried, the exact retry budget, outlier detection, the choice of hosts.
//
// # What it does not do
//
// It does not route. A policy describes how calls are made, not where they go. So the result for a
// proxy has one route for each dependency. Users put it into their own routes. The package does not
// know the limits in files that it is not given. It does not change existing files. It does not know
// templates: convert the output of Helm or Kustomize. What a file says and no policy can hold, and what
// is decided in none of the files, are the [Facts] of a dependency.
//
// docs/convert.md has tables of all settings.
//
// # Cost
//
// A file of a hundred routes takes some ten milliseconds (go test -bench .). Files may have up to
// 16 MiB, 10,000 documents, 100,000 aliased values and 20,000 dependencies. The package keeps no
// state. All functions may be called concurrently, with values that are not shared.
package convert
