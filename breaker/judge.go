package breaker

import (
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// A verdict is what the end of a call means for a closed breaker.
type verdict struct {
	opens       bool
	reason      ChangeReason
	part, whole int64         // the figures that it rests on
	from        time.Duration // beginning of the streak, if that is the reason
	took        time.Duration // the call
}

func (v *verdict) open(why ChangeReason, part, whole int64) {
	v.opens, v.reason, v.part, v.whole = true, why, part, whole
}

// judgeRates counts the call, and judges the shares of slow and of failed calls.
func (b *Breaker) judgeRates(now time.Duration, t Ticket, o Evidence, v *verdict) {
	c := b.cohorts()
	if b.tooSlow(v.took) {
		part, whole := b.share(c, &c.slow, now, t.start)
		if whole >= b.minCalls && b.slow.reached(part, whole) {
			v.open(SlowRate, part, whole)
		}
	}
	if o == Failure {
		part, whole := b.share(c, &c.failed, now, t.start)
		if whole >= b.minCalls && b.failure.reached(part, whole) {
			v.open(FailureRate, part, whole)
		}
	}
}

func (b *Breaker) tooSlow(took time.Duration) bool { return b.slow != 0 && took > b.slowCall }

// judgeStreak counts a failure, and judges the number and the length of the row.
func (b *Breaker) judgeStreak(now time.Duration, t Ticket, usual time.Duration, v *verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.word.Load() != closedIn(t.gen) {
		return
	}
	n := b.streak.Add(1)
	if n == 1 {
		b.streakFrom = now
	}
	v.from = b.streakFrom
	needed := b.neededLength(now, n)
	if b.rowFitsSuccesses && v.took < usual {
		needed = max(needed, saturating.Add(usual, usual))
	}
	if !v.opens && n >= b.consecutive && saturating.Since(v.from, now) >= needed {
		v.open(Consecutive, n, n)
	}
}

// A relapse is so many times more failures in one of so many parts of the time.
const (
	relapseFailures = 3
	relapseParts    = 10
)

// neededLength returns how long a row of n failures must last to open the breaker; see
// Config.ConsecutiveFor. The lock is held.
func (b *Breaker) neededLength(now time.Duration, n int64) time.Duration {
	soon := max(b.window, saturating.Add(b.closingProbeTook, b.closingProbeTook))
	if b.consecutiveFor == 0 || saturating.Since(b.changedAt, now) >= soon {
		return b.consecutiveFor
	}
	if n/relapseFailures >= b.consecutive {
		return max(b.consecutiveFor/relapseParts, b.closingProbeTook)
	}
	return max(b.consecutiveFor, b.closingProbeTook)
}

// forget removes a neutral call from the count.
func (b *Breaker) forget(now time.Duration, t Ticket) {
	if !b.counting {
		return
	}
	if slot, remembered := b.cohort(now, t.start); remembered {
		b.cohorts().started.Add(slot, -1)
	}
}

func closedIn(gen uint32) uint64 { return uint64(gen)<<stateBits | uint64(Closed) }
