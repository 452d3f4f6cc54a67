// Package serviceconfig reads and writes the part of gRPC service configs about retries (gRFC A6), and converts it into lull's
// policies and back, for lullgrpc and lull convert. It reads as grpc-go does where the implementations of gRPC differ (see [Reading]).
// All mistakes are reported together, each with its place and its path. What only one of the two forms has is reported as a [Loss].
//
// Waits are compared by the times that are drawn, not by their fields: for a call with one retry it does not matter how waits grow.
// A retryThrottling becomes a budget that pays for as many retries before the first success, and earns as fast; the inverse holds
// for a budget. gRPC counts failures, though, and lull successes, so that is always reported as changed.
package serviceconfig
