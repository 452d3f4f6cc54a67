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
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/waits"
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
		p.AttemptTimeout = t
		if p.Deadline > 0 {
			p.AttemptTimeout = min(t, p.Deadline)
		}
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

// withJitter is the longest wait with a fifth added to c, rounded up so that c is the wait before
// jitter.
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
	p.Timeouts = lull.TimeoutsNever
	if timeouts {
		p.Timeouts = lull.TimeoutsAlways
	}
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
