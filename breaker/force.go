package breaker

import (
	"math"
	"time"
)

// ForceOpen refuses every call until Auto or ForceClosed.
func (b *Breaker) ForceOpen(now time.Duration) {
	b.mu.Lock()
	defer b.unlock()
	if b.word.Load() == 0 {
		return
	}
	b.forced = true
	b.openings, b.outageFrom = 0, now
	b.gate.Store(math.MaxInt64)
	if b.state() != Open {
		b.changeState(Open, Change{Reason: Forced, At: now})
	}
}

// ForceClosed admits every call until Auto or ForceOpen. Calls are counted.
func (b *Breaker) ForceClosed(now time.Duration) {
	b.mu.Lock()
	defer b.unlock()
	b.forced = true
	if b.state() != Closed {
		b.close(now, 0, Forced, 0)
	}
}

// Auto ends ForceOpen and ForceClosed. After ForceOpen a probe decides; after ForceClosed
// the breaker stays closed until the next failure is judged.
func (b *Breaker) Auto(now time.Duration) {
	b.mu.Lock()
	defer b.unlock()
	if !b.forced {
		return
	}
	b.forced = false
	if b.state() == Open {
		b.outageFrom = now // what was before is not known
		b.gate.Store(int64(now))
	}
}

// Forced reports whether ForceOpen or ForceClosed is in force.
func (b *Breaker) Forced() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.forced
}
