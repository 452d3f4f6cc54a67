package lint

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/lullgo/lull/breaker"
)

func breakerRules() []Rule {
	return []Rule{{
		ID:       "breaker-cannot-trip",
		Severity: Warning,
		Title:    "The circuit breaker cannot open",
		Why: `A circuit breaker refuses calls to a dependency that only fails. So callers learn of the
failure at once instead of after a timeout, and the dependency gets no load. If the rules of
a breaker can never be met, it has no effect.

The rule finds breakers that are off, that only count (metrics_only: a note), or that have
every rule switched off. It also finds breakers whose only rule is about calls slower than
any call can be, and breakers whose only rules are rates that need more calls in their
window than are made (if the file gives the rate).`,
		Sources: []Source{
			{"Nygard, Release It!, 2nd edition, Circuit Breaker", "https://pragprog.com/titles/mnee2/release-it-second-edition/"},
			{"Polly, circuit breaker: MinimumThroughput", "https://www.pollydocs.org/strategies/circuit-breaker.html"},
			{"resilience4j, CircuitBreaker: minimumNumberOfCalls", "https://resilience4j.readme.io/docs/circuitbreaker"},
		},
		Bad: `dependencies:
  stock: {breaker: {consecutive: -1}}
`,
		Good: `dependencies:
  stock: {breaker: {consecutive: -1, failure_rate: 50%, min_calls: 20}}
`,
		check: eachPolicy(breakerCannotTrip),
	}, {
		ID:       "breaker-trips-on-one",
		Severity: Warning,
		Title:    "One failed call opens the circuit breaker",
		Why: `One failure is no evidence about the next call. If a breaker opens on it, each single
failure becomes a short outage: all calls are refused until a probe has succeeded. A fleet
of such breakers keeps load from a healthy dependency. A share of failures is evidence only
over enough calls. Polly requires at least 2 calls, and has 100 by default, like
resilience4j.

The rule finds consecutive: 1 without a consecutive_for, and rates that a single call among
min_calls reaches: 5 % of 20 calls is 1 call.`,
		Sources: []Source{
			{"Polly, circuit breaker: MinimumThroughput", "https://www.pollydocs.org/strategies/circuit-breaker.html"},
			{"resilience4j, CircuitBreaker: minimumNumberOfCalls", "https://resilience4j.readme.io/docs/circuitbreaker"},
		},
		Bad: `dependencies:
  stock: {breaker: {failure_rate: 50%, min_calls: 1}}
`,
		Good: `dependencies:
  stock: {breaker: {failure_rate: 50%, min_calls: 20}}
`,
		check: eachPolicy(breakerTripsOnOne),
	}}
}

func breakerCannotTrip(p *pass, d *dependency) {
	c := d.Policy.Breaker
	worst := d.Policy.WorstCase()
	minCalls := cmp.Or(c.MinCalls, breaker.DefaultMinCalls)
	window := cmp.Or(c.Window, breaker.DefaultWindow)
	report := func(s Severity, field, message string, steps []Step, fix Fix) {
		p.reportAs(s, d.in, d.at(field), message, steps, fix)
	}
	switch {
	case c.Off:
		report(Warning, "breaker.off", fmt.Sprintf("the circuit breaker of %s is off: calls go on while there is nothing but failures", d.Name), nil,
			d.write("or leave breaker out: the default opens after 3 failures in a row that last 2s", "breaker.off", "false"))
		return
	case c.MetricsOnly:
		report(Note, "breaker.metrics_only", fmt.Sprintf("the circuit breaker of %s only counts: it refuses no call", d.Name), nil,
			Fix{Text: "has it been watched for long enough? Then " + d.write("", "breaker.metrics_only", "false").Text})
		return
	case c.Consecutive >= 0:
		return
	}
	fix := d.write("then it opens after 3 failures in a row that last 2s", "breaker.consecutive", "0")
	never := fmt.Sprintf("the circuit breaker of %s can never open: ", d.Name)
	most := d.Rate * window.Seconds()
	switch {
	case !(c.FailureRate > 0) && !(c.SlowRate > 0):
		report(Warning, "breaker.consecutive", never+"all its rules are off",
			[]Step{
				{"failures in a row that open it (breaker.consecutive)", "none", ""},
				{"share of failures (breaker.failure_rate)", "none", ""},
				{"share of slow calls (breaker.slow_rate)", "none", ""},
			}, fix)
	case d.Rate > 0 && most < float64(minCalls):
		report(Warning, "breaker.min_calls", fmt.Sprintf("%sa process makes %s calls in its window of %s, and it needs %d", never, number(most), pretty(window), minCalls),
			[]Step{
				{"calls in a window: " + number(d.Rate) + " a second for " + pretty(window), number(most), ""},
				{"of which a rate needs (breaker.min_calls)", strconv.Itoa(minCalls), ""},
			}, fix)
	case !(c.FailureRate > 0) && c.SlowCall >= worst:
		report(Warning, "breaker.slow_call", fmt.Sprintf("%sno call takes longer than %s, and slow is more than %s", never, pretty(worst), pretty(c.SlowCall)),
			[]Step{
				{"slow is what takes longer than", pretty(c.SlowCall), ""},
				{"the longest that a call can take", pretty(worst), ""},
			}, fix)
	}
}

func breakerTripsOnOne(p *pass, d *dependency) {
	c := d.Policy.Breaker
	if c.Off || c.MetricsOnly {
		return
	}
	if c.Consecutive == 1 && c.ConsecutiveFor < 0 {
		p.report(d.in, d.at("breaker.consecutive"),
			fmt.Sprintf("one failed call to %s opens its circuit breaker", d.Name),
			[]Step{
				{"failures in a row that open it (breaker.consecutive)", "1", ""},
				{"and for how long there must be nothing else (breaker.consecutive_for)", "no time", ""},
			},
			d.write("then it takes 3 failures in a row that last 2s", "breaker.consecutive", "0", "breaker.consecutive_for", "0"))
		return
	}
	minCalls := cmp.Or(c.MinCalls, breaker.DefaultMinCalls)
	for _, r := range []struct {
		field, what string
		rate        float64
	}{{"breaker.failure_rate", "failed", c.FailureRate}, {"breaker.slow_rate", "slow", c.SlowRate}} {
		if !(r.rate > 0) || r.rate*float64(minCalls) > 1+1e-9 {
			continue
		}
		field, fields := r.field, []string{"breaker.min_calls", strconv.Itoa(enoughCalls(r.rate))}
		if r.rate >= 0.1 {
			field = "breaker.min_calls"
		} else {
			fields = []string{r.field, "50%"}
			if minCalls < breaker.DefaultMinCalls {
				fields = append(fields, "breaker.min_calls", strconv.Itoa(breaker.DefaultMinCalls))
			}
		}
		p.report(d.in, d.at(field),
			fmt.Sprintf("one %s call to %s opens its circuit breaker: it is %s of the %s that are enough to judge by", r.what, d.Name, roughly(1/float64(minCalls)), count(minCalls, "call")),
			[]Step{
				{"calls that are enough (breaker.min_calls)", strconv.Itoa(minCalls), ""},
				{r.what + " calls that open it: " + percent(r.rate) + " of them", "× " + number(r.rate), number(r.rate * float64(minCalls))},
			},
			d.write("a share means something only over enough calls", fields...))
		return
	}
}

// enoughCalls is the number of calls of which rate is ten, but at least the default.
func enoughCalls(rate float64) int {
	return max(breaker.DefaultMinCalls, int(10/rate+0.5))
}
