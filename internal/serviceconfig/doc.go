// Package serviceconfig reads and writes the part of gRPC service configs about retries (gRFC A6),
// and converts it into lull's policies and back. It needs neither gRPC nor YAML. lullgrpc and the
// converter of policy files use it, so that a config has the same meaning and the same mistakes in
// both.
//
// A service config is read as the implementations of gRPC read it. Where they differ it is read as
// grpc-go does (see [Reading]). All mistakes are reported together, each with its place and its
// path:
//
//	line 4: methodConfig[0].retryPolicy.maxAttempts is 1: want a whole number from 2
//
// # What is lost
//
// A policy of lull and a service config both have attempts, a deadline, waits and hedging. What
// only one of them has is reported as a [Loss]. Waits are compared by the times that are drawn, not
// by their fields: for a call with one retry it does not matter how waits grow.
//
// A retryThrottling becomes a budget that pays for as many retries before the first success, and
// earns as fast; the inverse holds for a budget. gRPC counts failures, though, and lull successes,
// so that is always reported as changed.
package serviceconfig
