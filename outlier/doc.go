// Package outlier chooses an endpoint for each call, learns from how the call ended,
// and leaves out for a while the endpoints that do worse than the others.
//
// docs/outlier.md has the argument: why callers should do this, the statistics and their
// sources, figures, limits, and how Envoy, gRPC and Istio differ.
//
// # What is judged
//
// By default each endpoint is compared with the others. There are two ways to be found.
//
// A row of failures, at once: from Config.Consecutive (5) failures in a row an endpoint is
// compared with the results of the others since the row's second failure. This finds dead
// endpoints within few calls.
//
// The success rate, at each of the ten sweeps in an Interval (10 s): endpoints with
// Config.MinCalls (5) in the last Interval are compared with each other. This finds
// endpoints that fail some of their calls. An endpoint is ejected if
//
//	rate < median - max(Factor × 1.4826 × MAD, Floor),   Factor 3.5, Floor 0.2
//
// where median is that of the others' success rates, and MAD is the median of their
// distances from it (Iglewicz and Hoaglin, 1993). In both ways the difference must be
// larger than chance explains, by a likelihood ratio (Wilks, 1938): a set finds a false
// outlier in about one interval of a thousand at worst.
//
// # Ejection
//
// The first ejection lasts BaseEjection (30 s), the second twice that, up to MaxEjection
// (300 s), plus a Jitter of up to a tenth of BaseEjection. Each Interval in which the
// endpoint stays in takes one step back. It comes back with the first sweep after its time,
// and is judged anew by real calls. At most MaxEjected (50 %) of the endpoints, but at least
// one ([Limit]), are out at a time, and never the last. If no endpoint is healthy, or a
// smaller share than Config.Panic, Pick chooses among all.
//
// # Choice
//
// Pick draws two of the healthy endpoints and takes the one with fewer calls under way
// (Mitzenmacher, 2001); [Choice] has the others. A retry avoids the endpoints in its [Tried].
//
// # Assumptions
//
// Endpoints can do the same work and get the same kind of calls. Results are independent,
// and caused by the endpoint; failures caused by the caller or the request are Neutral. Each
// Pick is followed by one Done: a forgotten call is under way for ever.
//
// A Set has no clock and starts no goroutine: every method takes the time, since an epoch of
// the caller's choice, and a sweep is made by the first call after it was due. There are no
// active health checks, zones, priorities or weights; make a set for each zone. Slow
// endpoints are not ejected. With more than half of the endpoints sick, their rate is the
// usual one; that is a case for a breaker.
//
// # Cost
//
// Pick and Done of a success together take 23 ns with three endpoints and 29 with a hundred,
// without allocation. A failure takes 20 ns more. A sweep takes 0.2 µs for three endpoints
// and 9 for a hundred. A set takes 1 KB, and 740 bytes for each endpoint.
package outlier
