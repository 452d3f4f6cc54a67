// Package outlier chooses an endpoint for each call, and learns from how the call
// ended. It leaves out for a while the endpoints that do worse than the others.
//
// docs/mechanisms.md has the argument: why callers should do this, the statistics and their
// sources, figures, limits, and how Envoy, gRPC and Istio differ.
//
// # What is judged
//
// By default each endpoint is compared with the others, in two ways.
//
// The first is a row of failures. After Config.Consecutive (5) failures in a row an
// endpoint is compared at once with the results of the others since the second failure
// of the row. This finds dead endpoints within few calls.
//
// The second is the success rate. There are ten sweeps in an Interval (10 s). At each
// sweep the endpoints that had at least Config.MinCalls (5) in the last Interval are
// compared with each other. This finds endpoints that fail some of their calls. An
// endpoint is ejected if
//
//	rate < median - max(Factor × 1.4826 × MAD, Floor),   Factor 3.5, Floor 0.2
//
// where median is the median of the success rates of the others, and MAD is the median
// of their distances from it (Iglewicz and Hoaglin, 1993). In both ways the difference
// must be larger than chance explains, by a likelihood ratio (Wilks, 1938). At worst a
// set finds a false outlier in about one interval of a thousand.
//
// # Ejection
//
// The first ejection lasts BaseEjection (30 s), the second twice that, and so on up to
// MaxEjection (300 s). A Jitter of up to a tenth of BaseEjection is added. Each
// Interval without an ejection takes one such step back. The endpoint comes back with
// the first sweep after its time, and is then judged by new calls.
//
// At most MaxEjected (50 %) of the endpoints are out at a time, but at least one may be
// ([Limit]), and never the last. Pick chooses among all endpoints if none is healthy,
// or if the share of healthy ones is smaller than Config.Panic.
//
// # Choice
//
// Pick chooses two of the healthy endpoints at random, and takes the one with fewer
// calls in flight (Mitzenmacher, 2001). [Choice] has the other ways. A retry avoids the
// endpoints in its [Tried].
//
// # Assumptions
//
// Endpoints can do the same work and get the same kind of calls. Results are
// independent, and caused by the endpoint. Failures caused by the caller or the request
// are Neutral. Each Pick is followed by one Done. A call without a Done is in flight
// for ever.
//
// A Set has no clock and starts no goroutine. Every method takes the time since an
// epoch that the caller chooses. A sweep that is due is made by the next call. There
// are no active health checks, zones, priorities or weights: make a set for each zone.
// Slow endpoints are not ejected. If more than half of the endpoints are sick, the
// median is the rate of a sick one, and no sick one is found. A breaker is for that case.
//
// # Cost
//
// Pick and Done of a success together take 23 ns with three endpoints and 29 with a hundred,
// without allocation. A failure takes 20 ns more. A sweep takes 0.2 µs for three endpoints
// and 9 for a hundred. A set takes 1 KB, and 740 bytes for each endpoint.
package outlier
