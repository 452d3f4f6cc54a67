package breaker

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// Inherit has a breaker that takes the place of another, because its configuration was
// changed, go on from what that knows. An outage stays one: if from is not closed, b
// opens until the same time, at the latest until its own longest open time is over, and
// the next open time is as long as it would have been. Calls that were counted are
// still, if both have the same Window. What is forced stays forced. Listeners are not
// called, because nothing has changed.
//
// b must not have been used yet. from may be; what it learns from calls that were
// admitted by it stays with it.
func (b *Breaker) Inherit(now time.Duration, from *Breaker) {
	if from == nil || from.word.Load() == 0 || b.word.Load() == 0 {
		return
	}
	from.mu.Lock()
	defer from.unlock()
	from.catchUp(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outageFrom, b.changedAt, b.closingProbeTook, b.random = from.outageFrom, from.changedAt, from.closingProbeTook, from.random
	b.openings, b.forced, b.streakFrom = from.openings, from.forced, from.streakFrom
	b.streak.Store(from.streak.Load())
	if b.window == from.window {
		b.counted.Store(from.counted.Load())
	}
	if from.state() == Closed {
		return
	}
	until := now // the next call is a probe
	if from.state() == Open {
		until = min(time.Duration(from.gate.Load()), saturating.Add(now, b.openMax))
	}
	if from.forced {
		until = math.MaxInt64
	}
	if b.openFor == 0 {
		b.callGap = from.callGap
	}
	b.outageGen = 1
	b.setSample(now)
	b.gate.Store(int64(until))
	b.word.Store(1<<stateBits | uint64(Open))
}
