// Package saturating adds durations without overflow: what would lie beyond the
// longest duration is the longest duration, and so compares as later than all
// that is real.
package saturating

import (
	"math"
	"time"
)

// Add is t+d, or the longest duration if that is less. d must not be negative.
func Add(t, d time.Duration) time.Duration {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

// Since is to-from, held at the longest duration, and zero when to lies before
// from: clocks of different goroutines may be read out of order.
func Since(from, to time.Duration) time.Duration {
	if to <= from {
		return 0
	}
	if d := to - from; d > 0 {
		return d
	}
	return math.MaxInt64
}
