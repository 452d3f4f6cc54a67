package backoff

import (
	"math"
	"math/bits"
	"time"

	"github.com/lullgo/lull/internal/chance"
)

// Delay returns how long to wait before the given retry. Retry 1 is the second attempt; a
// retry below 1 counts as 1. prev is what Delay returned for the retry before, or zero;
// only Decorrelated uses it. rnd returns 64 uniform random bits, such as math/rand/v2's
// Uint64, and is called at most once; nil stands for the middle of every range.
//
// The result is never negative and never more than Max(retry).
func (s Schedule) Delay(retry int, prev time.Duration, rnd func() uint64) time.Duration {
	retry = s.step(retry)
	if retry == 0 {
		return 0
	}
	if s.Kind == Ethernet {
		return s.slot() * uniform(0, etherWindow(retry)-1, rnd)
	}
	p := s.plan()
	c := s.ceiling(p, retry)
	if s.Jitter == Decorrelated {
		lo := max(p.base, p.floor)
		return min(uniform(lo, times(max(prev, lo), 3, math.MaxInt64), rnd), c)
	}
	lo, hi := s.spread(p, c)
	return uniform(lo, hi, rnd)
}

// Ceiling returns the wait before the given retry without jitter. For Decorrelated and
// Ethernet it is the longest possible wait.
func (s Schedule) Ceiling(retry int) time.Duration {
	retry = s.step(retry)
	if retry == 0 {
		return 0
	}
	if s.Kind == Ethernet {
		return s.slot() * (etherWindow(retry) - 1)
	}
	return s.ceiling(s.plan(), retry)
}

// Max returns the longest wait that Delay can return for the given retry. It equals
// Ceiling, except for Proportional, whose jitter goes both ways.
func (s Schedule) Max(retry int) time.Duration {
	c := s.Ceiling(retry)
	if s.Jitter != Proportional || s.Kind == Ethernet || s.step(retry) == 0 {
		return c
	}
	_, hi := s.spread(s.plan(), c)
	return hi
}

// Limit returns after how many retries the schedule gives up: 1 for Immediate, 15 for
// Ethernet, 0 (never) for all others. FastFirst does not add to it.
func (s Schedule) Limit() int {
	switch s.Kind {
	case Immediate:
		return 1
	case Ethernet:
		return etherAttempts - 1
	}
	return 0
}

// step returns the number of the retry without the immediate ones, from 1; 0 is an
// immediate retry.
func (s Schedule) step(retry int) int {
	retry = max(retry, 1)
	if s.FastFirst {
		retry--
	}
	if s.Kind == Immediate {
		return 0
	}
	return retry
}

func (s Schedule) ceiling(p plan, retry int) time.Duration {
	var c time.Duration
	switch {
	case s.Jitter == Decorrelated:
		// Each wait is at most three times the one before, the first three times the base.
		c = grow(max(p.base, p.floor), 3, retry, p.cap)
	case s.Kind == Constant:
		c = p.base
	case s.Kind == Linear:
		c = times(p.base, retry, p.cap)
	default:
		c = grow(p.base, p.factor, retry-1, p.cap)
	}
	c = max(c, p.floor)
	if s.Jitter == Proportional {
		// 5/6 of the cap leave room for a fifth more. Limiting the result to the cap would
		// send a part of the fleet back together.
		c = min(c, p.cap/6*5+p.cap%6*5/6)
	}
	return c
}

// spread returns the range that jitter draws from, both ends included. The floor raises the
// lower end of the range, so draws stay uniform. To raise the draws instead would put many
// of them on the floor.
func (s Schedule) spread(p plan, c time.Duration) (lo, hi time.Duration) {
	switch s.Jitter {
	case None:
		lo, hi = c, c
	case Equal:
		lo, hi = c/2, c
	case Proportional:
		lo, hi = c-c/5, c+c/5
	default:
		lo, hi = 0, c
	}
	lo = max(lo, p.floor)
	return lo, max(lo, hi)
}

// uniform draws from [lo, hi]. It calls rnd only if there is a choice.
func uniform(lo, hi time.Duration, rnd func() uint64) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(chance.UpTo(uint64(hi-lo), rnd))
}

// times returns d×n, or limit if that is less. None of the three is negative.
func times(d time.Duration, n int, limit time.Duration) time.Duration {
	if hi, lo := bits.Mul64(uint64(d), uint64(n)); hi == 0 && lo < uint64(limit) {
		return time.Duration(lo)
	}
	return limit
}

// grow returns d × factor^n, or limit if that is less. The factor is at least 1. Squaring
// is quicker than math.Pow, and rounds the same on every machine.
func grow(d time.Duration, factor float64, n int, limit time.Duration) time.Duration {
	if n == 0 || factor == 1 {
		return min(d, limit)
	}
	v := float64(d)
	for ; n > 0 && v < float64(limit); n >>= 1 {
		if n&1 == 1 {
			v *= factor
		}
		factor *= factor
	}
	// A NaN (nothing times infinity) is also the limit.
	if !(v < float64(limit)) {
		return limit
	}
	return min(time.Duration(v), limit)
}

// etherWindow returns the number of slots to choose from after the given collision.
func etherWindow(retry int) time.Duration {
	return 1 << min(retry, etherDoublings)
}
