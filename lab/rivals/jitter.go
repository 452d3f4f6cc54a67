package rivals

import (
	"math"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/chance"
)

// Jitter is a client's own, where none of package backoff's is the same. The zero
// Jitter leaves it to Policy.Backoff.
type Jitter struct {
	// Low and High spread a wait: it is the schedule's ceiling times a factor drawn
	// evenly from [Low, High]. Both zero: not this one.
	Low, High float64
	// Smooth is Polly's "decorrelated jitter V2" on Policy.Backoff.Base (see
	// smooth). Not with Low and High.
	Smooth bool
}

// wait is the schedule with this jitter; nil if it keeps its own.
func (j Jitter) wait(s backoff.Schedule) backoff.Func {
	switch {
	case j == Jitter{}:
		return nil
	case j.Smooth:
		return smooth(s)
	}
	return func(retry int, _ time.Duration, rnd func() uint64) time.Duration {
		c := float64(s.Ceiling(retry))
		low, high := nanoseconds(c*j.Low), nanoseconds(c*j.High)
		return low + time.Duration(chance.UpTo(uint64(high-low), rnd))
	}
}

func nanoseconds(x float64) time.Duration {
	if x < math.MaxInt64 {
		return time.Duration(max(x, 0))
	}
	return math.MaxInt64
}
