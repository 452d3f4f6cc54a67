// Package rivals holds the retry policies of clients that are in use, as data:
// the AWS SDKs, gRPC, Envoy, Istio, Linkerd, Finagle, Polly, resilience4j,
// tenacity, several Go libraries, loops written by hand, and single mechanisms.
// So a team can simulate its present clients in an outage before it changes
// anything.
//
//	p, err := rivals.Find(name) // such as "aws-standard-2.1"
//	...
//	d, err := lull.NewDependency("orders", p.Policy, p.Options()...)
//
// Policies of lull's own, to start from, are in package preset.
//
// A program that imports this package can name in policy files (package config) those
// that a policy describes completely, for example "preset: go-retryablehttp". The
// program lull does.
//
// Presets run on the same engine as every other policy. The preset's Note has the
// differences between that engine and the client. Presets are plain, comparable data.
//
// A preset has the number of attempts, the waits between them, what pays for retries, and what stops calls: the client's
// documented defaults, or the example of its documentation, unless the title has others. Source names the version and the
// place, and Reads what the client makes of a failure. The timeout of an attempt and the status codes that are worth a retry
// are the scenario's. Pools, host selection, outlier ejection and hedging are not part of a preset.
//
// Some differences are the same for all presets. A wait that would cross the deadline ends the call at once. A wait that the
// server asked for gets jitter upwards. The budget is asked before the wait. The breaker stands around the retries, counts
// the results of calls, and stops the retries of calls in flight when it opens.
package rivals
