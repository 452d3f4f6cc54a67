// Package serviceconfig reads and writes what a gRPC service config says of retries
// (gRFC A6), and turns it into lull's policies and back. It needs neither gRPC nor YAML.
// lullgrpc and the converter of policy files are built on it: a config means the same in
// both, and has the same mistakes.
//
// A service config is read as the implementations of gRPC read it where they agree, and
// as grpc-go where they do not (see [Reading]). Everything that is wrong is reported at
// once, each problem with its place and its path:
//
//	line 4: methodConfig[0].retryPolicy.maxAttempts is 1: want a whole number from 2
//
// # What is lost
//
// A policy of lull and a service config have attempts, deadline, waits and hedging in
// common. What one of them has and the other has not is reported as a [Loss]; nothing
// goes missing in silence. Waits are compared as they are drawn, not by their fields: of a
// call with one retry nothing is lost because the one can grow in ways that the other
// cannot.
//
// The retryThrottling becomes a budget, and a budget a retryThrottling, as near as they
// come: it pays as many retries before the first success, and earns as fast. gRPC counts
// failures, though, and lull successes, so that is always reported as changed.
package serviceconfig
