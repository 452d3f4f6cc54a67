package breaker

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// Inherit gives b the knowledge of the breaker that it replaces, because the configuration
// was changed. If from is not closed, b is open until the same time, but not for longer
// than its own OpenMax; its next open time grows from there. Counts are kept if the Window
// is the same. What was forced stays forced. Listeners are not called.
//
// b must be unused. from may be in use; results of calls that it admitted do not reach b.
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
