package breaker

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// One of so many calls, at the rate before the breaker opened, passes as a sample. It shows
// that the dependency is back while a probe hangs.
const sampleCalls = 16

const sampled = math.MaxUint32

func (b *Breaker) sample(now time.Duration) (Ticket, bool) {
	if int64(now) < b.sampleAt.Load() {
		return Ticket{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.forced || b.state() == Closed || int64(now) < b.sampleAt.Load() {
		return Ticket{}, false
	}
	b.setSample(now)
	return Ticket{start: now, gen: b.outageGen, probe: sampled}, true
}

// setSample sets when the next sample may pass. The lock is held.
func (b *Breaker) setSample(now time.Duration) {
	if b.callGap == 0 {
		b.sampleAt.Store(math.MaxInt64)
		return
	}
	b.sampleAt.Store(int64(saturating.Add(now, sampleCalls*time.Duration(min(b.callGap, float32(time.Hour))))))
}

// doneSample is Done for a sample. A success counts like a probe's; a failure changes
// nothing.
func (b *Breaker) doneSample(now time.Duration, t Ticket, o Evidence) {
	if o != Success {
		return
	}
	b.mu.Lock()
	defer b.unlock()
	b.catchUp(now)
	took := saturating.Since(t.start, now)
	if b.state() == Closed || b.forced || t.gen != b.outageGen || b.tooSlow(took) {
		return
	}
	if b.state() == Open {
		b.gate.Store(math.MinInt64)
		b.changeState(HalfOpen, Change{Reason: OpenTimePassed, At: now})
	}
	b.probeSucceeded(now, took)
}
