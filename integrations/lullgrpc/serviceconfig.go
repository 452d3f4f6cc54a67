package lullgrpc

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"

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
	MaxAttempts          int // from 2, the first included; more than 5 count as 5 (see Reading)
	InitialBackoff       time.Duration
	MaxBackoff           time.Duration
	BackoffMultiplier    float64
	RetryableStatusCodes []codes.Code
	// PerAttemptRecvTimeout is an experiment of gRPC core and grpc-java. Zero: none.
	PerAttemptRecvTimeout time.Duration
}

// A HedgingPolicy is a hedgingPolicy.
type HedgingPolicy struct {
	MaxAttempts  int           // from 2, the first included; more than 5 count as 5 (see Reading)
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
	return configOf(c), nil
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

// The package serviceconfig does the work, without codes.Code. The functions below convert the
// types.

// plain returns sc without the types of gRPC.
func (sc ServiceConfig) plain() serviceconfig.Config {
	return serviceconfig.Config{Methods: each(sc.Methods, MethodConfig.plain), Throttling: sc.Throttling, Ignored: sc.Ignored}
}

func configOf(c serviceconfig.Config) ServiceConfig {
	return ServiceConfig{Methods: each(c.Methods, methodConfigOf), Throttling: c.Throttling, Ignored: c.Ignored}
}

func (mc MethodConfig) plain() serviceconfig.MethodConfig {
	p := serviceconfig.MethodConfig{
		Names:   each(mc.Names, func(n MethodName) serviceconfig.MethodName { return serviceconfig.MethodName(n) }),
		Timeout: mc.Timeout,
	}
	if r := mc.Retry; r != nil {
		p.Retry = &serviceconfig.RetryPolicy{
			MaxAttempts:           r.MaxAttempts,
			InitialBackoff:        r.InitialBackoff,
			MaxBackoff:            r.MaxBackoff,
			BackoffMultiplier:     r.BackoffMultiplier,
			RetryableStatusCodes:  each(r.RetryableStatusCodes, plainCode),
			PerAttemptRecvTimeout: r.PerAttemptRecvTimeout,
		}
	}
	if h := mc.Hedging; h != nil {
		p.Hedging = &serviceconfig.HedgingPolicy{
			MaxAttempts:         h.MaxAttempts,
			HedgingDelay:        h.HedgingDelay,
			NonFatalStatusCodes: each(h.NonFatalStatusCodes, plainCode),
		}
	}
	return p
}

func methodConfigOf(p serviceconfig.MethodConfig) MethodConfig {
	mc := MethodConfig{
		Names:   each(p.Names, func(n serviceconfig.MethodName) MethodName { return MethodName(n) }),
		Timeout: p.Timeout,
	}
	if r := p.Retry; r != nil {
		mc.Retry = &RetryPolicy{
			MaxAttempts:           r.MaxAttempts,
			InitialBackoff:        r.InitialBackoff,
			MaxBackoff:            r.MaxBackoff,
			BackoffMultiplier:     r.BackoffMultiplier,
			RetryableStatusCodes:  each(r.RetryableStatusCodes, codeOfPlain),
			PerAttemptRecvTimeout: r.PerAttemptRecvTimeout,
		}
	}
	if h := p.Hedging; h != nil {
		mc.Hedging = &HedgingPolicy{
			MaxAttempts:         h.MaxAttempts,
			HedgingDelay:        h.HedgingDelay,
			NonFatalStatusCodes: each(h.NonFatalStatusCodes, codeOfPlain),
		}
	}
	return mc
}

func plainCode(c codes.Code) serviceconfig.Code   { return serviceconfig.Code(c) }
func codeOfPlain(c serviceconfig.Code) codes.Code { return codes.Code(c) }

// each returns f of each element of list. Nil stays nil.
func each[A, B any](list []A, f func(A) B) []B {
	if list == nil {
		return nil
	}
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = f(a)
	}
	return out
}
