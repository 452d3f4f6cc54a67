package lullgrpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/option"
)

// DefaultReplayBuffer is the number of bytes of messages that a stream keeps for another attempt,
// as in gRPC itself.
const DefaultReplayBuffer = 256 << 10

type options struct {
	rules       []*rule            // the first is for methods that no other rule names
	byPattern   map[string]int     // the index of the rule
	idempotency map[string]bool    // by pattern, from the options
	throttle    *budget.GRPCConfig // of each target; nil: the policy's budget counts
	configs     []configured       // service configs, until they are made rules
	wiring      []lull.Option      // of dependencies
	size        int                // the most targets
	buffer      int                // bytes a stream keeps
	wholeStream bool               // an attempt's timeout lasts until a stream is answered
	kinds       map[codes.Code]engine.VerdictKind
	classifier  func(Failure) lull.Verdict
	pick        func(ctx context.Context, target, method string) *lull.Dependency
}

type configured struct {
	config  ServiceConfig
	reading ServiceConfigOptions
}

func defaultOptions(p lull.Policy) options {
	return options{
		rules: []*rule{{policy: p}}, byPattern: make(map[string]int), idempotency: make(map[string]bool),
		kinds: make(map[codes.Code]engine.VerdictKind), size: 1024, buffer: DefaultReplayBuffer,
	}
}

// An Option wires a Client. It fails if its argument is invalid.
type Option func(*options) error

// WithPolicy puts the methods that patterns name under a policy of their own. They have a
// dependency of their own for each target, with its own budget and breaker. It is named after the
// target and the first pattern.
//
// A pattern is "/service/method", "/service/" for all methods of a service, or "/" for all methods.
// The longest that fits counts.
func WithPolicy(p lull.Policy, patterns ...string) Option {
	return func(o *options) error {
		if len(patterns) == 0 {
			return errors.New("lullgrpc: WithPolicy: want at least one pattern")
		}
		return o.addRule("WithPolicy", rule{policy: p}, patterns)
	}
}

// WithIdempotent declares the methods that patterns name (see WithPolicy) idempotent: carrying a
// call out twice has the effect of once, so it may be repeated.
func WithIdempotent(patterns ...string) Option {
	return func(o *options) error { return o.declareIdempotent("WithIdempotent", true, patterns) }
}

// WithNotIdempotent declares the opposite. It also overrules the method's descriptor and service
// config.
func WithNotIdempotent(patterns ...string) Option {
	return func(o *options) error { return o.declareIdempotent("WithNotIdempotent", false, patterns) }
}

func (o *options) declareIdempotent(option string, yes bool, patterns []string) error {
	for _, p := range patterns {
		if !isPattern(p) {
			return fmt.Errorf("lullgrpc: %s(%q): %s", option, p, wantPattern)
		}
		if before, declared := o.idempotency[p]; declared && before != yes {
			return fmt.Errorf("lullgrpc: %s(%q): the opposite was said of the same pattern", option, p)
		}
		o.idempotency[p] = yes
	}
	return nil
}

// WithServiceConfig puts the methods that sc configures under its settings. What it does not set
// comes from the client's policy. A retryPolicy decides how often, how far apart and after which
// status a method is retried; a hedgingPolicy decides the same for attempts that run side by side.
// Either of them declares the method idempotent. A retryThrottling replaces the retry budget, for
// all methods of a target together. [MethodConfig.Policy] lists what cannot be carried over. A
// config that was made in code must be one that [ParseServiceConfig] would take.
func WithServiceConfig(sc ServiceConfig, r ServiceConfigOptions) Option {
	return func(o *options) error {
		if err := sc.plain().Validate(); err != nil {
			return fmt.Errorf("lullgrpc: WithServiceConfig: %w", err)
		}
		if r.MaxCallAttempts < 0 {
			return fmt.Errorf("lullgrpc: WithServiceConfig: MaxCallAttempts is %d: want a positive number, or 0 for the default of %d", r.MaxCallAttempts, DefaultMaxCallAttempts)
		}
		if sc.Throttling != nil {
			throttle := *sc.Throttling
			o.throttle = &throttle
		}
		o.configs = append(o.configs, configured{sc, r})
		return nil
	}
}

// WithDependencies makes pick choose the dependency of a call, instead of one for each target. If
// it returns nil, the target's is used. It must be safe for concurrent use.
func WithDependencies(pick func(ctx context.Context, target, method string) *lull.Dependency) Option {
	return option.Set(func(o *options) { o.pick = pick })
}

// WithTargets bounds how many targets are remembered at a time. Those not called for the longest
// are forgotten first. The default is 1024.
func WithTargets(n int) Option {
	return option.If(n > 0, func(o *options) { o.size = n }, "lullgrpc: WithTargets(%d): want a positive number of targets", n)
}

// With wires the dependencies that the client makes: observers, a budget of another kind, a source
// of randomness. A lull.WithClassifier is refused: use WithClassifier of this package.
func With(opts ...lull.Option) Option {
	return option.Set(func(o *options) { o.wiring = append(o.wiring, opts...) })
}

// WithObserver sends every event of the client's dependencies to o.
func WithObserver(o event.Observer) Option { return With(lull.WithObserver(o)) }

// WithReplayBuffer bounds the messages that a stream keeps for another attempt, in bytes before
// compression, plus 5 for each message's frame. A stream that sends more is committed to its
// attempt. Zero keeps nothing: a stream is committed when it sends its first message. The default
// is DefaultReplayBuffer.
func WithReplayBuffer(bytes int) Option {
	return option.If(bytes >= 0, func(o *options) { o.buffer = bytes },
		"lullgrpc: WithReplayBuffer(%d): want a number of bytes, or 0 to keep none", bytes)
}

// WithStreamTimeouts makes the policy's AttemptTimeout and Deadline bound a stream until its first
// response, instead of until it is open. It is for services whose streams answer at once. It cuts a
// stream that stays silent, or uploads, for longer.
func WithStreamTimeouts() Option {
	return option.Set(func(o *options) { o.wholeStream = true })
}

// WithCode makes a status of the given code mean kind, instead of the verdict of [Classify]:
// WithCode(codes.Internal, lull.KindTransient). The server's hint about the next attempt counts as
// before. In methods with a retryPolicy or hedgingPolicy of a service config, its list of codes
// overrules this.
func WithCode(code codes.Code, kind engine.VerdictKind) Option {
	return func(o *options) error {
		if code == codes.OK || code > codes.Unauthenticated {
			return fmt.Errorf("lullgrpc: WithCode(%v): want a code from 1 to 16", code)
		}
		if kind > lull.KindPermanent {
			return fmt.Errorf("lullgrpc: WithCode(%v, %v): want success, transient, rate_limited, overloaded or permanent", code, kind)
		}
		o.kinds[code] = kind
		return nil
	}
}

// WithClassifier makes classify decide what a failed attempt means, instead of [Classify], WithCode
// and service configs. It must be safe for concurrent use.
func WithClassifier(classify func(Failure) lull.Verdict) Option {
	return option.Set(func(o *options) { o.classifier = classify })
}
