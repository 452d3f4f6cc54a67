// Package outlier chooses an endpoint for each call, learns from how the call ended, and leaves
// out for a while the endpoints that do worse than the others: by a row of failures, or by their
// success rate, and only if the difference is larger than chance explains.
//
// Each Pick is followed by one Done. Failures that the caller or the request caused are Neutral.
// A retry avoids the endpoints in its [Tried]. Every method takes the time since an epoch that
// the caller chooses; a sweep that is due is made by the next call. Pick and Done together take
// 23 ns with three endpoints, without allocation. A set takes 1 KB, and 740 bytes for each
// endpoint. The page docs/mechanisms.md has the argument, the statistics and their sources,
// figures, assumptions, limits, and how Envoy, gRPC and Istio differ.
package outlier
