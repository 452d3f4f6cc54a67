package lullgrpc

import (
	"reflect"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/serviceconfig"
)

// A ServiceConfig is the part of a gRPC service config that is about retries, as plain data.
// [ParseServiceConfig] reads it from JSON, [ServiceConfigOf] makes it from a policy, and
// json.Marshal writes it.
type ServiceConfig struct {
	Methods []MethodConfig
	// Throttling is the retryThrottling of the whole server; nil: none.
	Throttling *budget.GRPCConfig
	// Ignored are the JSON paths of the fields that were skipped: unknown fields, and those that
	// only concern gRPC, such as loadBalancingConfig. It is not written.
	Ignored []string
}

// MethodConfig is the configuration of some methods.
type MethodConfig struct {
	Names []MethodName // empty: it applies to nothing
	// Timeout bounds the call, with the deadline of its context. Zero: nothing does.
	Timeout time.Duration
	// At most one of the two. If both are nil, gRPC neither retries the method nor hedges it.
	Retry   *RetryPolicy
	Hedging *HedgingPolicy
}

// A MethodName names one method, or all methods of a service if Method is empty, or all methods if
// both are empty.
type MethodName struct{ Service, Method string }

// pattern returns the name in the form of options.
func (n MethodName) pattern() string { return serviceconfig.MethodName(n).Pattern() }

// A RetryPolicy is a retryPolicy. It has no defaults: all fields but the last are required.
type RetryPolicy struct {
	MaxAttempts          int // from 2, the first included; more than 5 count as 5 (see ServiceConfigOptions)
	InitialBackoff       time.Duration
	MaxBackoff           time.Duration
	BackoffMultiplier    float64
	RetryableStatusCodes []codes.Code
	// PerAttemptRecvTimeout is an experiment of gRPC core and grpc-java. Zero: none.
	PerAttemptRecvTimeout time.Duration
}

// A HedgingPolicy is a hedgingPolicy.
type HedgingPolicy struct {
	MaxAttempts  int           // from 2, the first included; more than 5 count as 5 (see ServiceConfigOptions)
	HedgingDelay time.Duration // zero: all attempts are sent at once
	// NonFatalStatusCodes are the codes after which other attempts may still succeed, so the next
	// one is sent at once. None: any failure ends the call.
	NonFatalStatusCodes []codes.Code
}

// ParseServiceConfig reads a gRPC service config in JSON. The error lists everything that is wrong,
// one problem a line, each with its line and its path:
//
//	line 4: methodConfig[0].retryPolicy.maxAttempts is 1: want a whole number from 2
//
// errors.As finds it as a [engine.Problems]. It stops after a hundred problems.
//
// Unknown fields are skipped, as the format demands, and listed in ServiceConfig.Ignored. The names
// of fields and of status codes are taken in any case, as in grpc-go; other implementations insist
// on "maxAttempts". OK among the codes to retry is refused, as in grpc-java: it has no sensible
// meaning. A timeout must be positive: one of zero fails every call.
func ParseServiceConfig(data []byte) (ServiceConfig, error) {
	c, err := serviceconfig.Parse(data)
	if err != nil {
		return ServiceConfig{}, err
	}
	return convertStruct[ServiceConfig](c), nil
}

// Method returns the configuration of a method ("/service/method"): the one that names it, else the
// one that names its service, else the one for all.
func (sc ServiceConfig) Method(method string) (MethodConfig, bool) {
	for _, p := range serviceconfig.Patterns(method) {
		for _, mc := range sc.Methods {
			if slices.ContainsFunc(mc.Names, func(n MethodName) bool { return n.pattern() == p }) {
				return mc, true
			}
		}
	}
	return MethodConfig{}, false
}

// MarshalJSON writes the config as gRPC reads it, on one line. Durations have as many decimals as
// they need: "0.1s".
func (sc ServiceConfig) MarshalJSON() ([]byte, error) { return sc.plain().MarshalJSON() }

// The package serviceconfig does the work, without codes.Code.

// plain returns sc without the types of gRPC.
func (sc ServiceConfig) plain() serviceconfig.Config { return convertStruct[serviceconfig.Config](sc) }

// convertStruct returns v as a To, field by field: a type that differs from v's in the names of types, and maybe lacks a field.
func convertStruct[To any](v any) (to To) {
	convertValue(reflect.ValueOf(&to).Elem(), reflect.ValueOf(v))
	return to
}

func convertValue(to, v reflect.Value) {
	switch {
	case v.Type().ConvertibleTo(to.Type()):
		to.Set(v.Convert(to.Type()))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if field := to.FieldByName(v.Type().Field(i).Name); field.IsValid() {
				convertValue(field, v.Field(i))
			}
		}
	case v.IsNil():
	case v.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		convertValue(to.Elem(), v.Elem())
	default:
		to.Set(reflect.MakeSlice(to.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			convertValue(to.Index(i), v.Index(i))
		}
	}
}

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
