// Package preset holds the retry policies of clients that are in use, as data:
// the AWS SDKs, gRPC, Envoy, Istio, Linkerd, Finagle, Polly, resilience4j,
// tenacity, several Go libraries, loops written by hand, and single mechanisms.
// So a team can simulate its present clients in an outage before it changes
// anything.
//
//	p, err := preset.Find("aws-standard-2.1")
//	d, err := lull.NewDependency("orders", p.Policy, p.Options()...)
//
// [InternalService], [ExternalAPI], [BackgroundWorker] and [Edge] are policies of lull's own to
// start from; docs/which-policy.md chooses among them.
//
// Presets run on the same engine as every other policy. The preset's Note has the
// differences between that engine and the client.
//
// # What a preset is
//
// How many attempts, how long the waits between them and how they are spread,
// what pays for retries, and what stops calls. These are the client's documented
// defaults, unless the title has others; Source names the version and the place.
// Where a client has no default, it is the example of its own documentation.
//
// Reads is the other half: what the client makes of a failure. Most of them do
// not look at Retry-After, none of the libraries knows "don't retry", and some do
// not repeat what timed out. That is classification, the business of the driver
// that plays the client, and [Reads.Verdict] does it.
//
// # What a preset is not
//
// The timeout of an attempt is not part of it, since hardly any of these clients
// has one: NoTimeout leaves it to the scenario, or to the caller's deadline.
// Which status codes are worth a retry is the scenario's too: where a client has
// a list, the preset is that client configured to retry what the scenario calls
// transient. Nor are connection pools, host selection, outlier ejection and
// hedging in it, nor limits on concurrency, unless the client sets one by
// default.
//
// # What the engine keeps to itself
//
// Some differences are the same for all presets, and are not repeated in each
// Note:
//
//   - A wait that would cross the call's deadline ends the call at once. Most of
//     these clients sleep until the deadline.
//   - A wait that the server asked for is spread upwards, and never cut short.
//     Clients that heed Retry-After mostly come back at exactly that time, in one
//     wave.
//   - The budget is asked before the wait.
//   - A circuit breaker stands around the retries and counts the results of calls.
//     Those of Polly and resilience4j mostly stand inside and count the results of
//     attempts. It counts a call where it started, and stops the retries of calls that
//     are under way when it opens.
//
// # Cost
//
// A Preset is plain, comparable data. It may be changed before use, for example to try
// three attempts instead of four. All makes a new slice at each call.
package preset
