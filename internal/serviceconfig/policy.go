package serviceconfig

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/waits"
	"github.com/lullgo/lull/throttle"
)

// Reading is how a retry policy is read where the implementations of gRPC differ, or let their
// users choose. The zero Reading is that of grpc-go today.
type Reading struct {
	// OldJitter spreads a wait over [0, c] instead of [0.8c, 1.2c]. The proposal had this until
	// August 2024, and grpc-dotnet still has it.
	OldJitter bool
	// MaxCallAttempts is the limit of maxAttempts, like grpc.WithMaxCallAttempts. Zero: 5.
	MaxCallAttempts int
	// Alone: only the policy can hold the status codes, as in a file. Then RateLimitedBase and
	// Timeouts express as much of them as they can, and the rest is a loss. Otherwise the driver
	// has the list (lullgrpc.WithServiceConfig), and the two stay as they are.
	PolicyOnly bool
}

// DefaultMaxCallAttempts is the limit of maxAttempts in all implementations of gRPC.
const DefaultMaxCallAttempts = 5

// Policy returns base with the settings of the methods, and what is done otherwise than in gRPC. A
// retryThrottling is not one of them; see [Budget].
func (mc MethodConfig) Policy(base lull.Policy, r Reading) (lull.Policy, []Loss) {
	p := base
	var lost losses
	if mc.Timeout > 0 {
		p.Deadline = mc.Timeout
		p.AttemptTimeout = min(p.AttemptTimeout, p.Deadline)
	}
	switch {
	case mc.Retry != nil:
		lost.readRetry(&p, *mc.Retry, r)
	case mc.Hedging != nil:
		lost.readHedging(&p, *mc.Hedging, r)
	}
	return p, lost
}

func (lost *losses) readRetry(p *lull.Policy, retry RetryPolicy, r Reading) {
	atMost := cmp.Or(r.MaxCallAttempts, DefaultMaxCallAttempts)
	p.Hedge = hedge.Config{} // a policy retries or hedges
	p.Attempts = min(retry.MaxAttempts, atMost)
	p.Backoff = r.Waits(retry)
	if t := retry.PerAttemptRecvTimeout; t > 0 {
		p.AttemptTimeout = choice.Either(p.Deadline > 0, min(t, p.Deadline), t)
		lost.changed(r.PolicyOnly, "retryPolicy.perAttemptRecvTimeout", "gRPC heeds it only where the experiment with hedging is on; lull bounds each attempt by it")
	}
	lost.changed(r.PolicyOnly && retry.MaxAttempts > atMost, "retryPolicy.maxAttempts", fmt.Sprintf("counts as %d, in gRPC as here", atMost))
	lost.changed(retry.BackoffMultiplier < 1, "retryPolicy.backoffMultiplier", "waits do not shrink; they stay the same")
	lost.readCodes(p, "retryPolicy.initialBackoff", "retryPolicy.retryableStatusCodes", retry.RetryableStatusCodes, r)
}

// Waits returns the waits of a retry policy as a schedule.
func (r Reading) Waits(retry RetryPolicy) backoff.Schedule {
	s := backoff.Schedule{
		Base:   atLeastShortest(min(retry.InitialBackoff, retry.MaxBackoff)),
		Cap:    atLeastShortest(retry.MaxBackoff),
		Factor: max(retry.BackoffMultiplier, 1),
	}
	if !r.OldJitter {
		s.Jitter = backoff.Proportional
		s.Cap = atLeastShortest(withJitter(retry.MaxBackoff))
	}
	return s
}

// withJitter is the longest wait with a fifth added to c, rounded up so that c is the wait before jitter.
func withJitter(c time.Duration) time.Duration {
	if c > math.MaxInt64/6*5 {
		return math.MaxInt64
	}
	return c + (c+4)/5
}

func (lost *losses) readHedging(p *lull.Policy, h HedgingPolicy, r Reading) {
	atMost := cmp.Or(r.MaxCallAttempts, DefaultMaxCallAttempts)
	n := min(h.MaxAttempts, atMost)
	lost.changed(r.PolicyOnly && h.MaxAttempts > atMost, "hedgingPolicy.maxAttempts", fmt.Sprintf("counts as %d, in gRPC as here", atMost))
	lost.changed(n > hedge.MaxAttempts, "hedgingPolicy.maxAttempts", "at most 5 attempts run side by side")
	p.Attempts = 1
	p.Hedge = hedge.Config{
		Attempts: min(n, hedge.MaxAttempts),
		Delay:    cmp.Or(atLeastShortest(h.HedgingDelay), hedge.AtOnce),
		Share:    -1, // the throttle bounds hedges, and nothing else
		InFlight: -1,
	}
	lost.readCodes(p, "hedgingPolicy.hedgingDelay", "hedgingPolicy.nonFatalStatusCodes", h.NonFatalStatusCodes, r)
	if r.PolicyOnly && p.RateLimitedBase == waits.SameWhenRateLimited {
		p.Backoff = backoff.Schedule{Kind: backoff.Constant} // the next one is sent at once
	}
}

// readCodes expresses in the policy what it can of codes that are to be retried or hedged, and records
// the rest. The arguments name the field with the codes and the one with the wait.
func (lost *losses) readCodes(p *lull.Policy, wait, field string, list []Code, r Reading) {
	rateLimited, timeouts := slices.Contains(list, ResourceExhausted), slices.Contains(list, DeadlineExceeded)
	if !r.PolicyOnly {
		lost.changed(rateLimited, wait, "after RESOURCE_EXHAUSTED waits grow from the policy's RateLimitedBase, where that is more")
		lost.changed(timeouts && p.Timeouts != lull.TimeoutsAlways, field, "DEADLINE_EXCEEDED is retried as the policy's Timeouts says")
		return
	}
	p.Timeouts = choice.Either(timeouts, lull.TimeoutsAlways, lull.TimeoutsNever)
	var not, also []string
	if rateLimited {
		p.RateLimitedBase = waits.SameWhenRateLimited
	} else {
		p.RateLimitedBase = waits.Patience(p.Backoff)
		also = append(also, ResourceExhausted.String())
	}
	if !slices.Contains(list, Unavailable) {
		also = append(also, Unavailable.String())
	}
	for _, c := range list {
		if c != ResourceExhausted && c != DeadlineExceeded && c != Unavailable {
			not = append(not, c.String())
		}
	}
	var parts []string
	if len(not) > 0 {
		parts = append(parts, "does not retry "+strings.Join(not, ", "))
	}
	if len(also) > 0 {
		parts = append(parts, "also retries "+strings.Join(also, ", "))
	}
	lost.changed(len(parts) > 0, field, "a policy has no list of codes: lull "+strings.Join(parts, " and ")+" (lullgrpc.WithServiceConfig takes the list, in code)")
}

// Budget returns the budget that comes nearest to a retryThrottling: it has as many retries in
// stock as the throttle pays for before the first success, and earns as fast.
func Budget(t budget.GRPCConfig) (budget.Config, []Loss) {
	var lost losses
	b := budget.Config{
		Stock: max(float64((t.MaxTokens+1)/2-1), 1), // the bucket must stay above its half
		Ratio: min(max(math.Trunc(t.TokenRatio*1000+1e-6)/1000, 0.001), budget.MaxRatio),
	}
	lost.changed(true, "retryThrottling", "gRPC stops all retries while failures outnumber successes × tokenRatio, for all methods of a server together; a budget counts retries, for each dependency, and keeps what it has earned beyond its stock for ten seconds")
	return b, lost
}

// atLeastShortest is d, or the shortest time that a policy allows, since no timer is as quick.
func atLeastShortest(d time.Duration) time.Duration {
	if d > 0 {
		return max(d, problem.ShortestDuration)
	}
	return d
}

// Of returns the policy as a service config for the given methods (none: for all methods) and for clients without lull, and
// what could not be carried over. The error is that of the policy's Validate, or about names that are wrong or given twice.
// gRPC retries these methods even if they are not safe to repeat, so name those that are. A policy that hedges after a fixed
// delay becomes a hedgingPolicy. grpc-java, grpc-dotnet and grpc-node follow it; grpc-go and gRPC core ignore it, and then
// do not retry.
func Of(p lull.Policy, names ...MethodName) (Config, []Loss, error) {
	if err := p.Validate(); err != nil {
		return Config{}, nil, err
	}
	p = p.WithDefaults()
	if len(names) == 0 {
		names = []MethodName{{}}
	}
	var lost losses
	mc := MethodConfig{Names: slices.Clone(names), Timeout: max(p.Deadline, 0)}
	lost.add(waits.Bounded(p), "AttemptTimeout", "gRPC does not bound an attempt")
	c := Config{}
	attempts := p.MaxAttempts()
	switch hedged := p.Hedge.Attempts > 1; {
	case hedged && p.Hedge.Delay != 0:
		mc.Hedging = lost.hedgingPolicy(p)
	case hedged:
		lost.changed(true, "Hedge", "gRPC cannot learn when to hedge, so the policy is written as one that retries as often")
		mc.Retry = lost.retryPolicy(p, attempts)
	case attempts > 1:
		mc.Retry = lost.retryPolicy(p, attempts)
	}
	if mc.Retry != nil || mc.Hedging != nil {
		c.Throttling = lost.throttling(p.Budget)
		lost.add(p.Nested == engine.NestedNever, "Nested", "gRPC retries what is done on behalf of a retry as well")
	}
	lost.add(!p.Breaker.Off, "Breaker", "gRPC has no circuit breaker; its outlier detection is configured with the load balancing")
	lost.add(p.Throttle.Mode != throttle.Off, "Throttle", "gRPC does not hold attempts back")
	lost.add(p.Limit.InFlight > 0, "Limit", "gRPC does not limit the calls in flight")
	c.Methods = []MethodConfig{mc}
	if err := c.Validate(); err != nil {
		return Config{}, nil, err // the names
	}
	return c, lost, nil
}

// minWait is the shortest wait that is written: gRPC does not allow zero.
const minWait = time.Millisecond

// retryPolicy converts a policy that has its defaults and makes that many attempts.
func (lost *losses) retryPolicy(p lull.Policy, attempts int) *RetryPolicy {
	s := p.Backoff
	last := cmp.Or(s.Limit(), 1000)
	r := &RetryPolicy{
		MaxAttempts:       min(attempts, DefaultMaxCallAttempts),
		InitialBackoff:    s.Ceiling(choice.Either(s.FastFirst, 2, 1)),
		MaxBackoff:        longest(s, last),
		BackoffMultiplier: cmp.Or(s.Factor, backoff.DefaultFactor),
	}
	switch {
	case s.Jitter == backoff.Decorrelated:
		r.BackoffMultiplier = 3
	case s.Kind == backoff.Constant, s.Kind == backoff.Immediate:
		r.BackoffMultiplier = 1
	}
	r.InitialBackoff = max(r.InitialBackoff, minWait)
	r.MaxBackoff = max(r.MaxBackoff, r.InitialBackoff)
	lost.changed(attempts > DefaultMaxCallAttempts, "Attempts", "gRPC makes at most 5")
	if !waits.Same(s, Reading{}.Waits(*r), r.MaxAttempts-1) {
		before := len(*lost)
		lost.changed(s.Kind > backoff.Exponential && s.Kind != backoff.Constant, "Backoff.Kind", "gRPC knows exponential waits only")
		lost.changed(s.Ceiling(1) < minWait && !s.FastFirst, "Backoff.Base", "gRPC must wait for something: 1ms")
		lost.changed(s.Jitter != backoff.Proportional, "Backoff.Jitter", "gRPC spreads by a fifth up and down")
		lost.add(s.Floor > 0, "Backoff.Floor", "gRPC has none")
		lost.add(s.FastFirst, "Backoff.FastFirst", "gRPC waits before the first retry as well")
		lost.changed(len(*lost) == before, "Backoff", "gRPC's waits are rounded otherwise")
	}
	r.RetryableStatusCodes = lost.codesFor(p, s.Ceiling(1), "retryableStatusCodes", "retry RESOURCE_EXHAUSTED after the same wait as UNAVAILABLE")
	return r
}

// longest is the longest wait before jitter, whether it is ever reached or not.
func longest(s backoff.Schedule, last int) time.Duration {
	if s.Kind == backoff.Exponential && s.Jitter != backoff.Decorrelated {
		s.Factor = 2 // with 1 it would never be reached
	}
	return s.Ceiling(last)
}

// hedgingPolicy converts a policy that hedges after a fixed delay.
func (lost *losses) hedgingPolicy(p lull.Policy) *HedgingPolicy {
	lost.add(p.Hedge.Share >= 0, "Hedge.Share", "gRPC hedges every call that is late, however many are, if its throttle does not stop it")
	lost.add(p.Hedge.InFlight >= 0, "Hedge.InFlight", "gRPC does not bound the hedges in flight")
	return &HedgingPolicy{
		MaxAttempts:         p.Hedge.Attempts,
		HedgingDelay:        max(p.Hedge.Delay, 0),
		NonFatalStatusCodes: lost.codesFor(p, 0, "nonFatalStatusCodes", "send the next attempt at once after RESOURCE_EXHAUSTED"),
	}
}

// codesFor returns the codes of a list, and records the loss of those that it does not have.
func (lost *losses) codesFor(p lull.Policy, wait time.Duration, list, would string) []Code {
	codes := []Code{Unavailable}
	if p.RateLimitedBase <= max(wait, waits.SameWhenRateLimited) && (wait > 0 || p.Backoff.Ceiling(1) <= waits.SameWhenRateLimited) {
		codes = append(codes, ResourceExhausted)
	} else {
		lost.add(true, "RateLimitedBase", "gRPC would "+would+", so it is left out of "+list)
	}
	switch p.Timeouts {
	case lull.TimeoutsAlways:
		codes = append(codes, DeadlineExceeded)
	case engine.TimeoutsWhenAnswered:
		lost.changed(true, "Timeouts", "gRPC would retry DEADLINE_EXCEEDED whether anybody is answered or not, so it is left out of "+list)
	}
	lost.add(p.HintLimit < math.MaxInt64, "HintLimit", "gRPC waits for as long as a server asks")
	return codes
}

// throttling is the throttle that comes nearest to a budget: it pays for as many retries before the
// first success, and earns as fast.
func (lost *losses) throttling(c budget.Config) *budget.GRPCConfig {
	if c.Unlimited {
		return nil
	}
	lost.changed(true, "Budget", "gRPC throttles by failures: it stops all retries while failures outnumber successes × tokenRatio, and forgets nothing in between")
	stock := c.Stock
	if c.Window == 0 {
		stock = cmp.Or(stock, budget.DefaultStock)
	}
	stock = max(math.Ceil(stock), 1)
	return &budget.GRPCConfig{
		MaxTokens:  int(min(2*(stock+1), 1000)),
		TokenRatio: max(math.Round(cmp.Or(c.Ratio, budget.DefaultRatio)*1000)/1000, 0.001),
	}
}
