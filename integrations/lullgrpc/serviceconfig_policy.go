package lullgrpc

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/serviceconfig"
)

// Reading is how a retry policy is read where the implementations of gRPC differ,
// or let their users choose. The zero Reading is how grpc-go reads it today.
type Reading struct {
	// OldJitter spreads a wait over [0, c], as the proposal had it until August
	// 2024 and grpc-dotnet still has it, instead of [0.8c, 1.2c].
	OldJitter bool
	// MaxCallAttempts is what larger values of maxAttempts count as, like
	// grpc.WithMaxCallAttempts. Zero: 5. One: there are no retries and no hedges, where
	// that option would take it for 5.
	MaxCallAttempts int
}

// DefaultMaxCallAttempts is what larger values of maxAttempts count as, in all
// implementations of gRPC.
const DefaultMaxCallAttempts = serviceconfig.DefaultMaxCallAttempts

// A Loss is something that could not be carried over from one form of a policy to
// the other, or not as it was.
type Loss struct {
	Field string // of the form it was in
	Why   string
}

// String is both.
func (l Loss) String() string { return l.Field + ": " + l.Why }

func lossOf(l serviceconfig.Loss) Loss { return Loss{l.Field, l.Why} }

// Policy is base, with what the config says of its methods in place of what base
// says. The losses are what is done otherwise than gRPC would. A retryThrottling is
// not among the things that a policy has; [WithServiceConfig] sees to it, and to the
// status codes.
func (mc MethodConfig) Policy(base lull.Policy, r Reading) (lull.Policy, []Loss) {
	p, lost := mc.plain().Policy(base, serviceconfig.Reading{OldJitter: r.OldJitter, MaxCallAttempts: r.MaxCallAttempts})
	return p, each(lost, lossOf)
}

// ServiceConfigOf is the policy as a service config for the given methods, all if
// none are given, for clients that know nothing of lull; and what could not be
// carried over. Waits are compared as they are drawn, and of the attempts that gRPC
// makes, 5 at most: a field that makes no difference there is no loss. The error is
// that of the policy's Validate, or tells of names that name nothing or are given
// twice.
//
// gRPC then retries those methods whether they are safe to repeat or not: name those
// that are. A policy that hedges after a fixed delay becomes a hedgingPolicy, which
// grpc-java, grpc-dotnet and grpc-node act upon; grpc-go and gRPC core read over it,
// and do not retry then.
func ServiceConfigOf(p lull.Policy, names ...MethodName) (ServiceConfig, []Loss, error) {
	plain := MethodConfig{Names: names}.plain().Names
	c, lost, err := serviceconfig.Of(p, plain...)
	if err != nil {
		return ServiceConfig{}, nil, err
	}
	return configOf(c), each(lost, lossOf), nil
}
