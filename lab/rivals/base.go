package rivals

import (
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
)

const (
	ms     = time.Millisecond
	second = time.Second

	// A rate-limited failure waits like any other: the smallest RateLimitedBase that is
	// not the default.
	sameWhenRateLimited = time.Nanosecond
	// A hint of any length is waited for.
	anyHint = time.Duration(math.MaxInt64)
	// As many attempts as a policy may have, for clients that never stop.
	mostAttempts = 1000
)

// attemptsAndWaits is a policy with nothing but attempts and waits. What timed out is a
// failure like any other, unless Reads.Timeouts is set.
func attemptsAndWaits(attempts int, waits backoff.Schedule) lull.Policy {
	return lull.Policy{
		Attempts:        attempts,
		AttemptTimeout:  lull.NoTimeout,
		Deadline:        lull.NoTimeout,
		Backoff:         waits,
		RateLimitedBase: sameWhenRateLimited,
		Timeouts:        lull.TimeoutsAlways,
		Nested:          lull.NestedAlways,
		HintLimit:       anyHint,
		Budget:          budget.Config{Unlimited: true},
		Breaker:         breaker.Config{Off: true},
	}
}

// atOnce is no wait at all.
var atOnce = backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None}

// every is the same wait every time.
func every(d time.Duration) backoff.Schedule {
	return backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: d}
}

// fixedBreaker opens at a rate of failures and nothing else, and for the same time
// each time, without jitter.
func fixedBreaker(window time.Duration, rate float64, calls int, open time.Duration) breaker.Config {
	return breaker.Config{
		Consecutive: -1,
		Window:      window, FailureRate: rate, MinCalls: calls,
		OpenFor: open, OpenMax: open, OpenJitter: -1,
		Probes: 1, ProbeTimeout: noProbeTimeout,
	}
}

// noProbeTimeout: a probe that is never reported is waited for.
const noProbeTimeout = 365 * 24 * time.Hour
