package lullgrpc

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/serviceconfig"
)

// ServiceConfigOptions selects how a retry policy is read, where the implementations of gRPC differ or let their
// users choose. The zero ServiceConfigOptions is that of grpc-go today.
type ServiceConfigOptions struct {
	// OldJitter spreads a wait over [0, c] instead of [0.8c, 1.2c]. The proposal had it until
	// August 2024, and grpc-dotnet still has it.
	OldJitter bool
	// MaxCallAttempts is the upper limit of maxAttempts, like grpc.WithMaxCallAttempts. Zero: 5.
	// One: there are no retries and no hedges, where that option would take it for 5.
	MaxCallAttempts int
}

// DefaultMaxCallAttempts is the upper limit of maxAttempts in all implementations of gRPC.
const DefaultMaxCallAttempts = serviceconfig.DefaultMaxCallAttempts

// A Loss is a setting that could not be carried over from one form of a policy to the other, or not
// unchanged.
type Loss struct {
	Field string // of the form that was read
	Why   string
}

// String returns both.
func (l Loss) String() string { return l.Field + ": " + l.Why }

// Policy returns base with the config's settings for its methods. The losses list what it does
// differently from gRPC. A policy has no retryThrottling and no status codes: [WithServiceConfig]
// applies these.
func (mc MethodConfig) Policy(base lull.Policy, r ServiceConfigOptions) (lull.Policy, []Loss) {
	p, lost := convertStruct[serviceconfig.MethodConfig](mc).Policy(base, convertStruct[serviceconfig.Reading](r))
	return p, convertStruct[[]Loss](lost)
}

// ServiceConfigOf returns the policy as a service config for the given methods, for clients without
// lull, and what could not be carried over. Without names it is for all methods. Losses are judged
// by the waits that are drawn, and by the attempts that gRPC makes, 5 at most: a field that makes
// no difference there is no loss. It returns the error of the policy's Validate, and an error for
// names that are empty or given twice.
//
// gRPC then retries those methods whether they are safe to repeat or not: name those that are. A
// policy that hedges after a fixed delay becomes a hedgingPolicy, which grpc-java, grpc-dotnet and
// grpc-node support. grpc-go and gRPC core ignore it, and then do not retry.
func ServiceConfigOf(p lull.Policy, names ...MethodName) (ServiceConfig, []Loss, error) {
	c, lost, err := serviceconfig.Of(p, convertStruct[[]serviceconfig.MethodName](names)...)
	if err != nil {
		return ServiceConfig{}, nil, err
	}
	return convertStruct[ServiceConfig](c), convertStruct[[]Loss](lost), nil
}
