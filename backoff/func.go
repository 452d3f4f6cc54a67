package backoff

import (
	"time"

	"github.com/lullgo/lull/internal/chance"
)

// A Func is a schedule as a function: Schedule.Delay is one, and so may be
// anything of the user's own that keeps to its contract. It must be safe for
// concurrent use, and it is only as pure as its author makes it.
type Func func(retry int, prev time.Duration, rnd func() uint64) time.Duration

// A JitterFunc is a user's own jitter. It is given the floor and the ceiling of
// the wait and a source of 64 uniform random bits that is never nil, and returns
// the wait. It must be safe for concurrent use.
type JitterFunc func(floor, ceiling time.Duration, rnd func() uint64) time.Duration

// With returns the schedule with j in place of its Jitter. What j returns is
// brought into [Floor, Cap], so the cap holds, but j may go beyond Max: its worst
// case is Cap at every retry. An immediate retry stays immediate, and j is not
// asked. A nil j changes nothing.
func (s Schedule) With(j JitterFunc) Func {
	if j == nil {
		return s.Delay
	}
	s.Jitter = Full // whose ceiling is the plain one
	p := s.plan()
	if s.Kind == Ethernet {
		p.floor, p.cap = 0, s.slot()*(1<<etherDoublings-1)
	}
	return func(retry int, _ time.Duration, rnd func() uint64) time.Duration {
		if s.step(retry) == 0 {
			return 0
		}
		if rnd == nil {
			rnd = func() uint64 { return chance.Middle }
		}
		return min(max(j(p.floor, s.Ceiling(retry), rnd), p.floor), p.cap)
	}
}
