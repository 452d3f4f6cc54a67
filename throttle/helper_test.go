package throttle

import (
	"math"
	"time"
)

const sec = time.Second

// unlucky is the lowest number, which any probability refuses.
func unlucky() uint64 { return 0 }

// at is a number of seconds as a time.
func at(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// learns reports n outcomes at now.
func learns(t *Throttle, now time.Duration, o Evidence, n int) {
	for range n {
		t.Done(now, o)
	}
}

// near reports whether two numbers are the same but for the last digits.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b)) }
