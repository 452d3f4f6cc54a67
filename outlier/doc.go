// Package outlier chooses an endpoint for each call, and learns from how the call
// ended. It leaves out for a while the endpoints that do worse than the others.
//
// After Config.Consecutive failures in a row an endpoint is compared with what the others did
// since the second of them. At each sweep (ten in an Interval) an endpoint is ejected if
//
//	rate < median - max(Factor × 1.4826 × MAD, Floor),   Factor 3.5, Floor 0.2
//
// of the success rates of the others (Iglewicz and Hoaglin, 1993). In both ways the difference
// must be larger than chance explains, by a likelihood ratio (Wilks, 1938). Ejections grow from
// BaseEjection to MaxEjection. At most MaxEjected of the endpoints are out at a time, and never
// the last. Pick chooses two of the healthy endpoints at random, and takes the one with fewer
// calls in flight (Mitzenmacher, 2001). A retry avoids the endpoints in its [Tried].
//
// Each Pick is followed by one Done; a call without a Done is in flight for ever. Failures
// caused by the caller or the request are Neutral. Every method takes the time since an epoch
// that the caller chooses, and a sweep that is due is made by the next call. Pick and Done
// together take 23 ns with three endpoints, without allocation. A set takes 1 KB, and 740 bytes
// for each endpoint. The page docs/mechanisms.md has the argument, the statistics and their
// sources, figures, assumptions, limits, and how Envoy, gRPC and Istio differ.
package outlier
