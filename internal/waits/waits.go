// Package waits compares the waits and timeouts of policies with those of other systems.
package waits

import (
	"math"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
)

// Same reports whether a and b draw each of the first retries waits evenly from the same
// range. Fields without an effect on these waits do not matter.
func Same(a, b backoff.Schedule, retries int) bool {
	var before [2]time.Duration
	for n := 1; n <= retries; n++ {
		now := Range(a, n)
		if now != Range(b, n) {
			return false
		}
		if n > 2 && now == before && Range(a, retries) == now && Range(b, retries) == now {
			break // neither grows any more
		}
		before = now
	}
	if a == b || retries < 1 {
		return true
	}
	return !drawnUnevenly(a) && !drawnUnevenly(b)
}

// drawnUnevenly reports whether a wait is not drawn evenly, or depends on the one before.
func drawnUnevenly(s backoff.Schedule) bool {
	return s.Kind == backoff.Ethernet || s.Jitter == backoff.Decorrelated && s.Kind == backoff.Exponential
}

// SameWhenRateLimited is the RateLimitedBase with which a rate-limited failure waits like
// any other.
const SameWhenRateLimited = time.Nanosecond

// Patience returns a RateLimitedBase for a policy of a system that does not retry
// rate-limited failures. lull retries them, but waits longer than after other failures.
func Patience(s backoff.Schedule) time.Duration {
	return max(engine.DefaultRateLimitedBase, saturating.Add(s.Ceiling(1), s.Ceiling(1)))
}

// Range returns the shortest and the longest wait before the given retry.
func Range(s backoff.Schedule, retry int) [2]time.Duration {
	shortest := s.Delay(retry, 0, func() uint64 { return 0 })
	longest := s.Delay(retry, 0, func() uint64 { return math.MaxUint64 })
	return [2]time.Duration{shortest, max(longest, s.Max(retry))}
}

// Bounded reports whether an attempt ends before the call does.
func Bounded(p engine.Policy) bool {
	return p.AttemptTimeout > 0 && (p.Deadline <= 0 || p.AttemptTimeout < p.Deadline)
}
