// Package convert turns what other systems say of retries into lull's policy files, and
// back: gRPC service configs, Istio's VirtualServices and DestinationRules, Envoy's
// routes and clusters, and HTTPRoutes of the Kubernetes Gateway API.
//
// # Why a report
//
// No two of these systems say the same things. A converter that is silent about the
// difference makes files that look right: a retry budget that bounds what is under way
// becomes one that bounds what is made; a POST that was never repeated is, from now on.
// Nobody reads a generated file as carefully as one that they wrote. So everything that
// could not be carried over, or not as it was, is in a [Report], with the place of the
// field, its value and the reason:
//
//	shop.yaml:14:52: changed: spec.http[0].retries.retryOn is "5xx": a policy has no such list: lull also retries 429 ...
//	policies.yaml:6:22: lost: dependencies.api.attempt_timeout is 1s: gRPC does not bound an attempt
//
// Entries are lost, changed, assumed or aside; see [Kind]. The readers mark what they read.
// What is left is aside if it is known to be about something else, and lost otherwise,
// whatever it is called.
//
// # Two rules
//
// What the other side cannot say is left out, and not imitated by something that does
// more. lull's recommended breaker opens after failures that span two seconds; the nearest
// that Envoy has would eject after as many in two milliseconds, so nothing is written.
// What comes near (outlier detection for a breaker that does open at once, retry budgets
// of all kinds for one another) is written, and reported as changed.
//
// What a file does not say is as its system does it, as far as a policy can say that, not
// as lull recommends it. [Options].Base changes that. The figures are those of package
// preset.
//
// # What can be relied on
//
// What both sides can say goes there and back unchanged; waits are compared as they are
// drawn, not by their fields. What comes back otherwise is in the report. What is written
// is valid for the system that it is for, by that system's own rules, and the same for
// the same input. These are tests over random policies, configs and routes; the cases
// that the projects publish are tests, too (testdata/README.md has their sources).
//
// Going from one proxy to another, what no policy holds is handed on beside it: which
// failures are retried, the exact retry budget, outlier detection, the choice of hosts.
//
// # What it does not do
//
// It does not route. A policy says how calls are made, not where they go, so what is
// written for a proxy has one route for each dependency, which is to be put where it
// belongs. It does not know what it does not read: a limit that another file sets is not
// there. It does not merge into files that exist, and has no templates: what Helm or
// Kustomize make of a file is to be converted, not the file.
//
// docs/convert.md has the tables of what becomes of what.
//
// # Cost
//
// A file of a hundred routes takes some ten milliseconds (go test -bench .). Files of up to 16 MiB, 10,000
// documents, 100,000 aliased values and 20,000 dependencies are read. Nothing keeps state; everything may be
// called by any number of goroutines at once, on values that are not shared.
package convert
