package rivals

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
)

// mechanisms are single ones, each on top of the same waits as full-jitter, so
// that a difference is theirs alone.
func mechanisms() []Preset {
	strict := Budget{Finagle: FinagleConfig{TTL: 10 * second, Percent: 0.1}}
	warm := func(calls int) Budget { b := strict; b.Warmup = calls; return b }
	all := []Preset{{
		Name: "ratio-10", Title: "full-jitter, retries at most 10 % of the calls of the last 10 s",
		Source: `Site Reliability Engineering (2016), chapter 21, "Deciding to retry"; the window as in Finagle`,
		Note:   "Strict: fractions of a retry are rounded down, so a process with fewer than ten calls in its window has no retries at all. That is why it recovers with large fleets. Arrivals earn, so in an outage the load is 1.1 times the normal one.",
		Budget: strict,
	}, {
		Name: "ratio-10-warmup-10", Title: "ratio-10, but not for the first 10 calls of a process",
		Source: "retry budgets as often published, with a minimum number of calls before they count",
		Note:   "Retries during the warm-up are not charged afterwards. Each process brings its own: ten calls, times the size of the fleet, are retried without limit.",
		Budget: warm(10),
	}, {
		Name: "ratio-10-warmup-100", Title: "ratio-10, but not for the first 100 calls of a process",
		Source: "as ratio-10-warmup-10",
		Note:   "As ratio-10-warmup-10.",
		Budget: warm(100),
	}, {
		Name: "token-bucket", Title: "full-jitter, a bucket of 10 tokens, 0.1 earned by each success",
		Source: `Brooker, "Fixing retries with token buckets and circuit breakers" (2022)`,
		Note:   "Recovers where budgets earned by arrivals do not, in small fleets; a fleet of M processes has 10 M retries that nobody earned.",
		Budget: Budget{Bucket: budget.Config{Stock: 10, Ratio: 0.1}},
	}, {
		Name: "token-bucket-arrivals", Title: "token-bucket, but earned by each call that begins",
		Source: "mbrooker/simulator_example, retry_sim, which deposits at the start of a call",
		Note:   "Beside token-bucket it shows what a budget loses that earns while everything fails.",
		Budget: Budget{Bucket: budget.Config{Stock: 10, Ratio: 0.1, Earn: budget.Arrivals}},
	}, {
		Name: "budget-aws-legacy", Title: "full-jitter with the retry quota of the AWS SDKs (500 tokens, 5 a retry, 10 after a timeout)",
		Source: "as aws-legacy-standard",
		Note:   "The quota alone. For the SDK's own attempts and waits see aws-legacy-standard.",
		Budget: Budget{AWS: awsLegacyQuota()},
	}, {
		Name: "budget-aws-2.1", Title: "full jitter from 50 ms with the retry quota of AWS retry behavior 2.1 (500 tokens, 14 a retry)",
		Source: "as aws-standard-2.1",
		Note:   "The quota alone, with the 50 ms of that behaviour. For the SDK's own attempts see aws-standard-2.1.",
		Policy: fullJitter(50 * ms), Budget: Budget{AWS: awsQuota21()},
	}, {
		Name: "budget-finagle", Title: "full-jitter with Finagle's default budget: 20 % of calls and 10 retries a second",
		Source: "as finagle",
		Note:   "The floor is per process: M processes may send 10 M retries a second, whatever the service can bear.",
		Budget: Budget{Finagle: finagleDefault()},
	}, {
		Name: "breaker-5s", Title: "full-jitter, a circuit breaker that opens for 5 s when half of at least 20 calls in 10 s fail",
		Source: "this module's simulations; window, rate and number as in Hystrix and cep21/circuit",
		Note:   "No budget. The open time neither grows nor has jitter. Needs 20 calls in 10 s in each process; a large fleet of quiet processes is never cut off.",
		Policy: breakerFor(5 * second),
	}, {
		Name: "breaker-30s", Title: "breaker-5s, but open for 30 s",
		Source: "as breaker-5s",
		Note:   "The last opening goes on after the service is well again: slower to recover than breaker-5s.",
		Policy: breakerFor(30 * second),
	}, {
		Name: "budget10+breaker5s", Title: "ratio-10 and breaker-5s together",
		Source: "as ratio-10 and breaker-5s",
		Note:   "The budget holds the volume down until the breaker has seen enough.",
		Policy: breakerFor(5 * second), Budget: strict,
	}}
	for i := range all {
		if p := &all[i]; p.Policy == (lull.Policy{}) {
			p.Policy = fullJitter(100 * ms)
		}
		all[i].Reads = everything
	}
	return all
}

// breakerFor is full jitter with a breaker that opens for the given time.
func breakerFor(open time.Duration) lull.Policy {
	p := fullJitter(100 * ms)
	p.Breaker = fixedBreaker(10*second, 0.5, 20, open)
	return p
}
