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
// differences between that engine and the client.
//
// # What a preset is
//
// A preset has the number of attempts, the waits between them and their jitter, what pays for retries, and
// what stops calls: the client's documented defaults, or the example of its documentation, unless the title has
// others. Source names the version and the place. Reads has what the client makes of a failure: most of the
// clients ignore Retry-After, and none of the libraries knows "don't retry". The driver classifies failures, and
// [Reads.Verdict] does it as the client would. Presets are plain, comparable data; they may be changed before use.
//
// The timeout of an attempt and the status codes that are worth a retry are the scenario's: hardly any of these
// clients has the first. Connection pools, host selection, outlier ejection and hedging are not part of a preset
// either. A concurrency limit is part of it only if the client sets one by default.
//
// # What the engine keeps to itself
//
// Some differences are the same for all presets, and are not repeated in each
// Note:
//
//   - A wait that would cross the call's deadline ends the call at once. Most of
//     these clients sleep until the deadline.
//   - A wait that the server asked for gets jitter upwards, and is never cut short.
//     Clients that obey Retry-After mostly come back at exactly that time, in one wave.
//   - The budget is asked before the wait.
//   - A circuit breaker stands around the retries and counts the results of calls.
//     Those of Polly and resilience4j mostly stand inside and count the results of
//     attempts. The engine's breaker counts a call when it starts. When it opens, it
//     stops the retries of calls in flight.
package rivals
