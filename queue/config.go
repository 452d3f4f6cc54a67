package queue

import (
	"cmp"
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
)

// What the zero Config means.
const (
	defaultConcurrency = 16
	defaultBatch       = 10
	DefaultLease       = 30 * time.Second
	defaultQuickWait   = time.Second
	defaultDrain       = 30 * time.Second
)

// The bounds of what Validate lets pass.
const (
	maxConcurrency = 100_000
	minLease       = 100 * time.Millisecond
	maxLease       = 12 * time.Hour
	maxQuick       = 10
)

// A Config sets how a Consumer works. It is plain, comparable data; the zero Config is
// the recommended one. How often and when a message is tried again is not set here but
// by the dependency's [lull.Policy].
type Config struct {
	// Concurrency is how many messages are handled at a time. No more than these are
	// fetched. Zero: 16. Up to 100,000.
	Concurrency int
	// Batch is how many messages are asked for in one call at most. Zero: 10, the most
	// that SQS gives. Up to Concurrency.
	Batch int

	// Lease is how long a message stays this consumer's when the consumer falls silent. It is
	// extended every third of that for as long as the handler runs, so it must only outlast a pause
	// of the network or of the process. If the broker cannot extend leases, it must outlast the
	// attempt. Zero: 30 s. From 100 ms to 12 h. A broker with fixed leases uses its own length.
	Lease time.Duration
	// Margin is how long before the end of the lease the handler's context ends, so
	// that there is time to settle. Zero: a tenth of the lease, at most 5 s. Less than
	// half of Lease.
	Margin time.Duration

	// Quick is how often, within one delivery, the handler is run again in this process
	// after a transient failure, before the message goes back to the broker: for blips
	// that are over in less time than a redelivery takes. These are no attempts: a message has
	// Policy.Attempts times 1 + Quick runs at most. Each is paid for by the retry budget. A policy of
	// one attempt has none. Zero: none. Up to 10.
	Quick int
	// QuickWait is the longest wait before such a run. If the policy draws a longer
	// one, or the lease ends before it, the message goes back to the broker. Zero: 1 s.
	QuickWait time.Duration

	// Drain is how long the handlers that run may continue when Run is to stop. Then
	// their contexts end, with the cause ErrDraining. Zero: 30 s. Negative: they end at
	// once.
	Drain time.Duration
}

// Validate reports everything that is wrong with c at once, each problem naming its
// field, the value and what is allowed; nil if nothing is.
func (c Config) Validate() error {
	var l problem.List
	d := c.WithDefaults()
	l.Check(d.Concurrency >= 1 && d.Concurrency <= maxConcurrency, "Concurrency", c.Concurrency, "1 to 100000 messages, or 0 for the default of 16")
	l.Check(d.Batch >= 1 && d.Batch <= max(d.Concurrency, 1), "Batch", c.Batch, "1 message to as many as Concurrency, or 0 for the default of 10")
	l.Check(d.Lease >= minLease && d.Lease <= maxLease, "Lease", c.Lease, "a duration from 100ms to 12h, or 0 for the default of 30s")
	l.Check(c.Margin >= 0 && c.Margin < max(d.Lease/2, 1), "Margin", c.Margin, "less than half of Lease, or 0 for the default of a tenth")
	l.Check(c.Quick >= 0 && c.Quick <= maxQuick, "Quick", c.Quick, "0 to 10 runs")
	l.Check(c.QuickWait >= 0, "QuickWait", c.QuickWait, "a positive duration, or 0 for the default of 1s")
	l.Units(c)
	return l.Err()
}

// WithDefaults returns c with its defaults in place of zeros, except for Margin.
func (c Config) WithDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	c.Batch = cmp.Or(c.Batch, max(min(defaultBatch, c.Concurrency), 1))
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.QuickWait = cmp.Or(c.QuickWait, defaultQuickWait)
	c.Drain = cmp.Or(c.Drain, defaultDrain)
	return c
}

// Policy is a starting point for the dependency of a Consumer: ten attempts of at most
// 30 s, with waits below 1, 2, 4, ... 256 s (about four minutes in all on average), timeouts
// repeated, no deadline, and a circuit breaker that stays open for 1 s, then 2, 4,
// up to 30 s. Backoff.Cap is the longest wait with more attempts, and HintLimit the longest
// that a handler may ask for.
//
// It differs from the zero Policy because nobody waits for the answer, and because a probe of the breaker is an attempt
// of some message.
func Policy() lull.Policy {
	return lull.Policy{
		Attempts:       10,
		AttemptTimeout: 30 * time.Second,
		Deadline:       lull.NoTimeout,
		Backoff:        backoff.Schedule{Base: time.Second, Cap: 10 * time.Minute},
		HintLimit:      time.Hour,
		Timeouts:       lull.TimeoutsAlways,
		Breaker:        breaker.Config{OpenFor: time.Second},
	}
}

// WorstCase is the longest time from a message's first delivery to its end. Each attempt takes as long as it may and
// fails, and the longest wait follows (of the backoff, or as the server asks). Its worker is killed at that moment as
// often as the policy allows, and each lease must lapse. It is math.MaxInt64 if nothing bounds an attempt.
//
// Not included: waiting before the first delivery, for busy or paused consumers, or to be handled alone; broken
// connections; deferrals; late delays. The broker must keep messages for longer than this: its retention, and the limit
// on a message's age.
func (c Config) WorstCase(p lull.Policy, capabilities Capabilities) time.Duration {
	c = c.WithDefaults()
	p = p.WithDefaults()
	allowed, broker := p.MaxAttempts(), capabilities.engine()
	if p.AttemptTimeout <= 0 && !bounded(capabilities) {
		return math.MaxInt64
	}
	longest := c.longestRun(capabilities)
	run := longest
	if p.AttemptTimeout > 0 {
		run = min(run, p.AttemptTimeout)
	}
	delivery := run
	if allowed > 1 {
		wait := min(c.QuickWait, p.LongestWait(allowed-1))
		for range c.Quick {
			delivery = saturating.Add(delivery, saturating.Add(wait, run))
		}
	}
	delivery = min(delivery, longest)
	crashed := delivery
	if capabilities.Leases {
		crashed = min(saturating.Add(delivery, c.Lease), longest)
	}
	var sum time.Duration
	for n := 1; n <= allowed; n++ {
		failed := saturating.Add(sum, delivery)
		next := failed
		if n < allowed {
			next = saturating.Add(failed, p.LongestRedelivery(n, broker))
			if d := p.Deadline; d > 0 {
				// No retry begins after the deadline. But a lease may lapse after it, and
				// the message that is delivered then gets its attempt.
				next = min(next, max(d, failed))
			}
		}
		if !capabilities.Losses {
			next = max(next, saturating.Add(sum, crashed))
		}
		sum = next
	}
	crashes, waits := p.WorstCrashes(broker)
	if capabilities.Losses { // or the last attempt is the last crash
		sum = saturating.Add(saturating.Add(sum, max(crashed-delivery, 0)), waits)
		crashes--
	}
	for range crashes {
		sum = saturating.Add(sum, crashed)
	}
	return sum
}

// bounded reports whether the broker ends an attempt at some time.
func bounded(capabilities Capabilities) bool {
	return capabilities.Leases && (!capabilities.Extends || capabilities.MaxLease > 0)
}

// longestRun returns how long one delivery can be kept out.
func (c Config) longestRun(capabilities Capabilities) time.Duration {
	switch {
	case !bounded(capabilities):
		return math.MaxInt64
	case capabilities.Extends:
		return capabilities.MaxLease
	}
	return c.Lease
}
