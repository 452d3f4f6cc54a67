package lullgrpc

import (
	"cmp"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
)

// Reading is how a retry policy is read where the implementations of gRPC differ,
// or let their users choose. The zero Reading is how grpc-go reads it today.
type Reading struct {
	// OldJitter spreads a wait over [0, c], as the proposal had it until August
	// 2024 and grpc-dotnet still has it, instead of [0.8c, 1.2c].
	OldJitter bool
	// MaxCallAttempts is what larger values of maxAttempts count as, like
	// grpc.WithMaxCallAttempts. Zero: 5.
	MaxCallAttempts int
}

// DefaultMaxCallAttempts is what larger values of maxAttempts count as, in all
// implementations of gRPC.
const DefaultMaxCallAttempts = 5

// A Loss is something that could not be carried over from one form of a policy to
// the other, or not as it was.
type Loss struct {
	Field string // of the form it was in
	Why   string
}

// String is both.
func (l Loss) String() string { return l.Field + ": " + l.Why }

// losses collects them.
type losses []Loss

func (l *losses) note(lost bool, field, why string) {
	if lost {
		*l = append(*l, Loss{field, why})
	}
}

// Policy is base, with what the config says of its methods in place of what base
// says. The losses are what is done otherwise than gRPC would. A retryThrottling is
// not among the things that a policy has; [WithServiceConfig] sees to it, and to the
// status codes.
func (mc MethodConfig) Policy(base lull.Policy, r Reading) (lull.Policy, []Loss) {
	p := base
	var lost losses
	if mc.Timeout > 0 {
		p.Deadline = mc.Timeout
		p.AttemptTimeout = min(p.AttemptTimeout, p.Deadline)
	}
	atMost := cmp.Or(r.MaxCallAttempts, DefaultMaxCallAttempts)
	if h := mc.Hedging; h != nil && mc.Retry == nil {
		n := min(h.MaxAttempts, atMost)
		lost.note(n > hedge.MaxAttempts, "hedgingPolicy.maxAttempts", "at most 5 attempts run side by side")
		lost.codes("hedgingPolicy.hedgingDelay", "hedgingPolicy.nonFatalStatusCodes", h.NonFatalStatusCodes, base)
		p.Attempts = 1
		p.Hedge = hedge.Config{
			Attempts: min(n, hedge.MaxAttempts),
			Delay:    cmp.Or(h.HedgingDelay, hedge.AtOnce),
			Share:    -1, // the throttle bounds hedges, and nothing else
			InFlight: -1,
		}
	}
	if mc.Retry == nil {
		return p, lost
	}
	retry := *mc.Retry
	p.Hedge = hedge.Config{} // a policy retries or hedges
	p.Attempts = min(retry.MaxAttempts, atMost)
	p.Backoff = backoff.Schedule{
		Base:   min(retry.InitialBackoff, retry.MaxBackoff),
		Cap:    retry.MaxBackoff,
		Factor: max(retry.BackoffMultiplier, 1),
	}
	if !r.OldJitter {
		p.Backoff.Jitter = backoff.Proportional
		p.Backoff.Cap = withJitter(retry.MaxBackoff)
	}
	if t := retry.PerAttemptRecvTimeout; t > 0 {
		p.AttemptTimeout = t
		if p.Deadline > 0 {
			p.AttemptTimeout = min(t, p.Deadline)
		}
	}
	lost.note(retry.BackoffMultiplier < 1, "retryPolicy.backoffMultiplier", "waits do not shrink; they stay the same")
	lost.codes("retryPolicy.initialBackoff", "retryPolicy.retryableStatusCodes", retry.RetryableStatusCodes, base)
	return p, lost
}

// codes notes what is made of codes that are to be retried or hedged, given the
// names of the field that has them and of that which has the wait.
func (l *losses) codes(wait, field string, list []codes.Code, base lull.Policy) {
	l.note(slices.Contains(list, codes.ResourceExhausted), wait,
		"after RESOURCE_EXHAUSTED waits grow from the policy's ThrottleBase, where that is more")
	l.note(slices.Contains(list, codes.DeadlineExceeded) && base.Timeouts != lull.TimeoutsAlways, field,
		"DEADLINE_EXCEEDED is retried as the policy's Timeouts says")
}

// withJitter is the longest wait that a fifth more makes of c, rounded up so that
// c is what it leaves before jitter.
func withJitter(c time.Duration) time.Duration {
	if c > math.MaxInt64/6*5 {
		return math.MaxInt64
	}
	return c + (c+4)/5
}

// ServiceConfigOf is the policy as a service config for the given methods, all if
// none are given, for clients that know nothing of lull; and what could not be
// carried over. gRPC then retries those methods whether they are safe to repeat or
// not: name those that are. A policy that hedges after a fixed delay becomes a
// hedgingPolicy, which grpc-java, grpc-dotnet and grpc-node act upon; grpc-go and
// gRPC core read over it, and do not retry then.
func ServiceConfigOf(p lull.Policy, names ...MethodName) (ServiceConfig, []Loss, error) {
	if err := p.Validate(); err != nil {
		return ServiceConfig{}, nil, err
	}
	p = p.WithDefaults()
	if len(names) == 0 {
		names = []MethodName{{}}
	}
	var lost losses
	mc := MethodConfig{Names: slices.Clone(names), Timeout: max(p.Deadline, 0)}
	lost.note(p.AttemptTimeout > 0, "AttemptTimeout", "gRPC does not bound an attempt")
	sc := ServiceConfig{}
	switch hedged := p.Hedge.Attempts > 1; {
	case hedged && p.Hedge.Delay != 0:
		mc.Hedging = lost.hedgingPolicy(p)
	case hedged:
		lost.note(true, "Hedge", "gRPC cannot learn when to hedge, so the policy is written as one that retries as often")
		p.Attempts = p.Hedge.Attempts
		mc.Retry = lost.retryPolicy(p)
	case p.Attempts > 1:
		mc.Retry = lost.retryPolicy(p)
	}
	if mc.Retry != nil || mc.Hedging != nil {
		sc.Throttling = lost.throttling(p.Budget)
	}
	lost.note(!p.Breaker.Off, "Breaker", "gRPC has no circuit breaker; its outlier detection is configured with the load balancing")
	lost.note(p.Limit.Limit > 0, "Limit", "gRPC does not limit the calls in flight")
	sc.Methods = []MethodConfig{mc}
	return sc, lost, nil
}

// retryPolicy is what becomes of a policy that has its defaults.
func (lost *losses) retryPolicy(p lull.Policy) *RetryPolicy {
	s := p.Backoff
	last := cmp.Or(s.Limit(), 1000)
	r := &RetryPolicy{
		MaxAttempts:          min(p.Attempts, last+1),
		InitialBackoff:       s.Ceiling(1),
		MaxBackoff:           s.Ceiling(last),
		BackoffMultiplier:    cmp.Or(s.Factor, backoff.DefaultFactor),
		RetryableStatusCodes: []codes.Code{codes.Unavailable},
	}
	if s.FastFirst {
		r.InitialBackoff = s.Ceiling(2)
	}
	switch {
	case s.Jitter == backoff.Decorrelated:
		r.BackoffMultiplier = 3
	case s.Kind == backoff.Constant, s.Kind == backoff.Immediate:
		r.BackoffMultiplier = 1
	}
	const least = time.Millisecond
	lost.note(p.Attempts > DefaultMaxCallAttempts, "Attempts", "gRPC clients make at most 5, if they are not told otherwise")
	lost.note(s.Kind > backoff.Exponential && s.Kind != backoff.Constant, "Backoff.Kind", "gRPC knows exponential waits only")
	lost.note(r.InitialBackoff < least, "Backoff.Base", "gRPC must wait for something: 1ms")
	lost.note(s.Jitter != backoff.Proportional, "Backoff.Jitter", "gRPC spreads by a fifth up and down")
	lost.note(s.Floor > 0, "Backoff.Floor", "gRPC has none")
	lost.note(s.FastFirst, "Backoff.FastFirst", "gRPC waits before the first retry as well")
	lost.leftOut(p, "retryableStatusCodes", "retry RESOURCE_EXHAUSTED after the same wait as UNAVAILABLE")
	r.InitialBackoff = max(r.InitialBackoff, least)
	r.MaxBackoff = max(r.MaxBackoff, r.InitialBackoff)
	return r
}

// hedgingPolicy is what becomes of a policy that hedges after a fixed delay.
func (lost *losses) hedgingPolicy(p lull.Policy) *HedgingPolicy {
	lost.note(p.Hedge.Share >= 0, "Hedge.Share", "gRPC hedges every call that is late, however many are, if its throttle does not stop it")
	lost.note(p.Hedge.InFlight >= 0, "Hedge.InFlight", "gRPC does not bound the hedges in flight")
	lost.leftOut(p, "nonFatalStatusCodes", "send the next attempt at once after RESOURCE_EXHAUSTED")
	return &HedgingPolicy{
		MaxAttempts:         p.Hedge.Attempts,
		HedgingDelay:        max(p.Hedge.Delay, 0),
		NonFatalStatusCodes: []codes.Code{codes.Unavailable},
	}
}

// leftOut notes what is lost because of the codes that are not in a list.
func (lost *losses) leftOut(p lull.Policy, list, would string) {
	lost.note(true, "ThrottleBase", "gRPC would "+would+", so it is left out of "+list)
	lost.note(p.Timeouts != lull.TimeoutsNever, "Timeouts", "gRPC would retry DEADLINE_EXCEEDED whether anybody is answered or not, so it is left out of "+list)
	lost.note(true, "HintLimit", "gRPC waits for as long as a server asks")
}

// throttling is the throttle that comes nearest to a budget: it pays as many
// retries before the first success, and earns as fast.
func (lost *losses) throttling(c budget.Config) *budget.GRPCConfig {
	if c.Unlimited {
		return nil
	}
	lost.note(true, "Budget", "gRPC throttles by failures: it stops all retries while failures outnumber successes × tokenRatio, and forgets nothing in between")
	stock := math.Ceil(cmp.Or(c.Stock, budget.DefaultStock))
	return &budget.GRPCConfig{
		MaxTokens:  int(min(2*(stock+1), 1000)),
		TokenRatio: max(cmp.Or(c.Ratio, budget.DefaultRatio), 0.001),
	}
}
