// Package waits tells whether two backoff schedules wait alike.
package waits

import (
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/saturating"
)

// Same tells whether a and b draw each of the first retries waits from the same range,
// evenly. Fields that make no difference until then make none: with one retry nothing
// grows.
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
	return !oddly(a) && !oddly(b)
}

// oddly: a wait is not drawn evenly, or depends on the one before.
func oddly(s backoff.Schedule) bool {
	return s.Kind == backoff.Ethernet || s.Jitter == backoff.Decorrelated && s.Kind == backoff.Exponential
}

// Patience is a ThrottleBase for policies with that schedule that were read of a form
// which does not retry throttled failures at all: lull does, and so with more patience
// than other failures.
func Patience(s backoff.Schedule) time.Duration {
	return max(lull.DefaultThrottleBase, saturating.Add(s.Ceiling(1), s.Ceiling(1)))
}

// Range is the shortest and the longest wait before the given retry.
func Range(s backoff.Schedule, retry int) [2]time.Duration {
	shortest := s.Delay(retry, 0, func() uint64 { return 0 })
	longest := s.Delay(retry, 0, func() uint64 { return math.MaxUint64 })
	return [2]time.Duration{shortest, max(longest, s.Max(retry))}
}
