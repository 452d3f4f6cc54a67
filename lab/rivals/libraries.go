package rivals

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/bulkhead"
)

func libraries() []Preset {
	timeouts := Reads{Timeouts: true}
	return []Preset{{
		Name: "finagle", Title: "Finagle's automatic requeues: at once, 20 % of calls and 10 a second over 10 s",
		Source: "twitter/finagle@4feb34cb, service/RetryBudget.scala, Retries.scala and RequeueFilter.scala",
		Note: "Requeues are for requests that were never sent or were refused (nacks), not for timeouts. One call may have a fifth of the balance, at least 20 retries; the preset has 20. " +
			"The floor is per process. For the same budget on ordinary retries see budget-finagle.",
		Policy: attemptsAndWaits(21, atOnce), Budget: Budget{Finagle: finagleDefault()},
	}, {
		Name: "polly", Title: "Polly v8, RetryStrategyOptions: 3 retries, one every 2 s",
		Source: "App-vNext/Polly@173d6d1d, Polly.Core/Retry/RetryStrategyOptions.cs and RetryConstants.cs",
		Note:   "UseJitter is false and the waits are constant unless set: callers that failed together return together.",
		Policy: attemptsAndWaits(4, every(2*second)), Reads: timeouts,
	}, {
		Name: "dotnet-standard", Title: ".NET's AddStandardResilienceHandler: 3 retries with jitter from 2 s, breaker 10 % of 100 in 30 s, 10 s an attempt, 30 s in all",
		Source: "dotnet/extensions@188c41c1, Microsoft.Extensions.Http.Resilience, HttpStandardResilienceOptions.cs and HttpRetryStrategyOptions.cs, over Polly's defaults; jitter: Polly.Core/Retry/RetryHelper.cs",
		Note: "Its breaker stands inside the retries and counts attempts. The engine's learns calls: fewer of them, and later. Its limit of 1000 is on calls, the engine's on attempts in flight. " +
			"Successive waits are independent here from the third on (see Jitter.Smooth).",
		Policy: dotnet(), Jitter: Jitter{Smooth: true}, Reads: Reads{Timeouts: true, RetryAfter: true},
	}, {
		Name: "resilience4j", Title: "resilience4j, RetryConfig.ofDefaults: 3 attempts, one every 500 ms",
		Source: "resilience4j/resilience4j@af9e7c97, RetryConfig.java and IntervalFunction.java",
		Policy: attemptsAndWaits(3, every(500*ms)), Reads: timeouts,
	}, {
		Name: "resilience4j-breaker", Title: "resilience4j with CircuitBreakerConfig.ofDefaults: half of at least 100 calls fail, open for 60 s, 10 probes",
		Source: "resilience4j/resilience4j@af9e7c97, CircuitBreakerConfig.java; time-based variant of its window of 100",
		Note: "The default window is the last 100 calls, which the engine's breaker does not have: the preset's is resilience4j's other kind, the last 100 s. " +
			"It opens later than a window of calls would in a process with more than one call a second. Of 10 probes fewer than half may fail there; here none may. The usual order of decorators has the breaker inside the retries.",
		Policy: resilience4jBreaker(), Reads: timeouts,
	}, {
		Name: "tenacity", Title: "tenacity's documented way: wait_random_exponential(multiplier=1, max=60), stop_after_attempt(7)",
		Source: "jd/tenacity, README and tenacity/wait.py (the exponent counts from 0)",
		Note:   "Full jitter below 1, 2, 4 ... 32 s. Both are examples of the README, for wait and for stop; a wait alone never stops.",
		Policy: attemptsAndWaits(7, backoff.Schedule{Base: second, Cap: 60 * second}), Reads: timeouts,
	}, {
		Name: "tenacity-default", Title: "tenacity's bare @retry: again at once, for ever",
		Source: "jd/tenacity, tenacity/__init__.py: stop_never, wait_none",
		Note:   "The engine ends it after 1000 attempts.",
		Policy: attemptsAndWaits(mostAttempts, atOnce), Reads: timeouts,
	}, {
		Name: "cenkalti", Title: "cenkalti/backoff: from 500 ms, × 1.5 up to 60 s, ± 50 %, for 15 minutes",
		Source: "cenkalti/backoff v5.0.3 (the same numbers in v7.0.3), exponential.go and retry.go",
		Note: "Any number of tries; the engine allows 1000. The jitter comes after the cap, so waits reach 90 s. It heeds a wait that the operation returns as a RetryAfterError, " +
			"but none of its own accord. It is ended by the 15 minutes, which the engine also ends an attempt by.",
		Policy: cenkalti(), Jitter: Jitter{Low: 0.5, High: 1.5}, Reads: timeouts,
	}, {
		Name: "go-retryablehttp", Title: "hashicorp/go-retryablehttp: 4 retries after 1, 2, 4 and 8 s, no jitter",
		Source: "hashicorp/go-retryablehttp v0.7.8, client.go: DefaultBackoff, DefaultRetryPolicy",
		Note:   "Retry-After of 429 and 503 is kept to exactly and without a limit. It repeats POST as well: what the scenario says is not idempotent, the engine does not.",
		Policy: attemptsAndWaits(5, backoff.Schedule{Jitter: backoff.None, Base: second, Cap: 30 * second}), Reads: Reads{Timeouts: true, RetryAfter: true},
	}, {
		Name: "failsafe-go", Title: "failsafe-go with a budget: 3 attempts at once, retries at most 20 % of executions, or 3",
		Source: "failsafe-go/failsafe-go v0.9.8, retrypolicy/retry.go and budget/budget.go",
		Note:   "The budget counts what is running at the moment, not what was run.",
		Policy: attemptsAndWaits(3, atOnce), Budget: Budget{Running: Running{Ratio: 0.2, Min: 3}}, Reads: timeouts,
	}, {
		Name: "failsafe-go-50ms", Title: "failsafe-go with its budget of 20 % and 3 retries, one every 50 ms",
		Source: "as failsafe-go; the waits are those under which its budget was measured",
		Note: "Calls that wait count as executions and their retries as nothing, so the budget hardly ever refuses: with attempts of 1 ms and everything failing it let 4.0 attempts a call pass, as if there were none. " +
			"The engine asks before the wait where failsafe-go asks after it.",
		Policy: attemptsAndWaits(4, every(50*ms)), Budget: Budget{Running: Running{Ratio: 0.2, Min: 3, Delay: 50 * ms}}, Reads: timeouts,
	}}
}

func dotnet() lull.Policy {
	p := attemptsAndWaits(4, backoff.Schedule{Base: 2 * second, Cap: 24 * time.Hour})
	p.AttemptTimeout, p.Deadline = 10*second, 30*second
	p.Breaker = fixedBreaker(30*second, 0.1, 100, 5*second)
	p.Limit = bulkhead.Config{InFlight: 1000}
	return p
}

func resilience4jBreaker() lull.Policy {
	p := attemptsAndWaits(3, every(500*ms))
	p.Breaker = fixedBreaker(100*second, 0.5, 100, 60*second)
	p.Breaker.Probes = 10
	return p
}

func cenkalti() lull.Policy {
	// Proportional jitter stands in for the ± 50 % where Options are not used; its
	// Cap, which holds after jitter, leaves the ceiling at 60 s.
	p := attemptsAndWaits(1000, backoff.Schedule{Jitter: backoff.Proportional, Base: 500 * ms, Factor: 1.5, Cap: 72 * second})
	p.Deadline = 15 * time.Minute
	return p
}
