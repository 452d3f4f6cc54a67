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

// Reading is how a retry policy is read where the implementations of gRPC differ,
// or let their users choose. The zero Reading is how grpc-go reads it today.
type Reading struct {
	// OldJitter spreads a wait over [0, c], as the proposal had it until August
	// 2024 and grpc-dotnet still has it, instead of [0.8c, 1.2c].
	OldJitter bool
	// MaxCallAttempts is what larger values of maxAttempts count as, like
	// grpc.WithMaxCallAttempts. Zero: 5.
	MaxCallAttempts int
	// Alone: nobody but the policy knows of the status codes, as is the case in a file.
	// Then ThrottleBase and Timeouts say what they can of them, and the rest is a loss. If
	// not, the driver has the list (lullgrpc.WithServiceConfig), and they stay as they are.
	Alone bool
}

// DefaultMaxCallAttempts is what larger values of maxAttempts count as, in all
// implementations of gRPC.
const DefaultMaxCallAttempts = 5

// sameWhenThrottled is the smallest ThrottleBase that is not the default: a throttled
// failure waits like any other.
const sameWhenThrottled = time.Nanosecond

// Policy is base, with what the config says of its methods in place of what base
// says. The losses are what is done otherwise than gRPC would. A retryThrottling is
// none of the methods'; see [Budget].
func (mc MethodConfig) Policy(base lull.Policy, r Reading) (lull.Policy, []Loss) {
	p := base
	var lost losses
	if mc.Timeout > 0 {
		p.Deadline = mc.Timeout
		p.AttemptTimeout = min(p.AttemptTimeout, p.Deadline)
	}
	switch {
	case mc.Retry != nil:
		lost.retry(&p, *mc.Retry, r)
	case mc.Hedging != nil:
		lost.hedging(&p, *mc.Hedging, r)
	}
	return p, lost
}

func (lost *losses) retry(p *lull.Policy, retry RetryPolicy, r Reading) {
	atMost := cmp.Or(r.MaxCallAttempts, DefaultMaxCallAttempts)
	p.Hedge = hedge.Config{} // a policy retries or hedges
	p.Attempts = min(retry.MaxAttempts, atMost)
	p.Backoff = r.Waits(retry)
	if t := retry.PerAttemptRecvTimeout; t > 0 {
		p.AttemptTimeout = t
		if p.Deadline > 0 {
			p.AttemptTimeout = min(t, p.Deadline)
		}
		lost.changed(r.Alone, "retryPolicy.perAttemptRecvTimeout", "gRPC heeds it only where the experiment with hedging is on; lull bounds each attempt by it")
	}
	lost.changed(r.Alone && retry.MaxAttempts > atMost, "retryPolicy.maxAttempts", fmt.Sprintf("counts as %d, in gRPC as here", atMost))
	lost.changed(retry.BackoffMultiplier < 1, "retryPolicy.backoffMultiplier", "waits do not shrink; they stay the same")
	lost.codes(p, "retryPolicy.initialBackoff", "retryPolicy.retryableStatusCodes", retry.RetryableStatusCodes, r)
}

// Waits are those of a retry policy as a schedule.
func (r Reading) Waits(retry RetryPolicy) backoff.Schedule {
	s := backoff.Schedule{
		Base:   timer(min(retry.InitialBackoff, retry.MaxBackoff)),
		Cap:    timer(retry.MaxBackoff),
		Factor: max(retry.BackoffMultiplier, 1),
	}
	if !r.OldJitter {
		s.Jitter = backoff.Proportional
		s.Cap = timer(withJitter(retry.MaxBackoff))
	}
	return s
}

// withJitter is the longest wait that a fifth more makes of c, rounded up so that
// c is what it leaves before jitter.
func withJitter(c time.Duration) time.Duration {
	if c > math.MaxInt64/6*5 {
		return math.MaxInt64
	}
	return c + (c+4)/5
}

func (lost *losses) hedging(p *lull.Policy, h HedgingPolicy, r Reading) {
	atMost := cmp.Or(r.MaxCallAttempts, DefaultMaxCallAttempts)
	n := min(h.MaxAttempts, atMost)
	lost.changed(r.Alone && h.MaxAttempts > atMost, "hedgingPolicy.maxAttempts", fmt.Sprintf("counts as %d, in gRPC as here", atMost))
	lost.changed(n > hedge.MaxAttempts, "hedgingPolicy.maxAttempts", "at most 5 attempts run side by side")
	p.Attempts = 1
	p.Hedge = hedge.Config{
		Attempts: min(n, hedge.MaxAttempts),
		Delay:    cmp.Or(timer(h.HedgingDelay), hedge.AtOnce),
		Share:    -1, // the throttle bounds hedges, and nothing else
		InFlight: -1,
	}
	lost.codes(p, "hedgingPolicy.hedgingDelay", "hedgingPolicy.nonFatalStatusCodes", h.NonFatalStatusCodes, r)
	if r.Alone && p.ThrottleBase == sameWhenThrottled {
		p.Backoff = backoff.Schedule{Kind: backoff.Constant} // the next one is sent at once
	}
}

// codes says in the policy what it can of codes that are to be retried or hedged, and
// notes the rest, given the names of the field that has them and of that which has the
// wait.
func (lost *losses) codes(p *lull.Policy, wait, field string, list []Code, r Reading) {
	throttled, timeouts := slices.Contains(list, ResourceExhausted), slices.Contains(list, DeadlineExceeded)
	if !r.Alone {
		lost.changed(throttled, wait, "after RESOURCE_EXHAUSTED waits grow from the policy's ThrottleBase, where that is more")
		lost.changed(timeouts && p.Timeouts != lull.TimeoutsAlways, field, "DEADLINE_EXCEEDED is retried as the policy's Timeouts says")
		return
	}
	p.Timeouts = lull.TimeoutsNever
	if timeouts {
		p.Timeouts = lull.TimeoutsAlways
	}
	var not, also []string
	if throttled {
		p.ThrottleBase = sameWhenThrottled
	} else {
		p.ThrottleBase = waits.Patience(p.Backoff)
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

// Budget is what comes nearest to a retryThrottling: it has as many retries in stock as
// the throttle pays for before the first success, and earns as fast.
func Budget(t budget.GRPCConfig) (budget.Config, []Loss) {
	var lost losses
	b := budget.Config{
		Stock: max(float64((t.MaxTokens+1)/2-1), 1), // the bucket must stay above its half
		Ratio: min(max(math.Trunc(t.TokenRatio*1000+1e-6)/1000, 0.001), budget.MaxRatio),
	}
	lost.changed(true, "retryThrottling", "gRPC stops all retries while failures outnumber successes × tokenRatio, for all methods of a server together; a budget counts retries, for each dependency, and keeps what it has earned beyond its stock for ten seconds")
	return b, lost
}

// timer is d, or what a policy allows for the shortest of times: no timer is as quick.
func timer(d time.Duration) time.Duration {
	if d > 0 {
		return max(d, problem.ShortestDuration)
	}
	return d
}
