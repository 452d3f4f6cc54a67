package idempotency

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
)

// WithClock makes m's clock move by advance alone.
func WithClock(m *Memory) (advance func(time.Duration)) {
	var ahead atomic.Int64
	m.now = func() time.Time { return time.Unix(1e9, 0).Add(time.Duration(ahead.Load())) }
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

// SetClock makes m's clock stand at the latest time given to set.
func SetClock(m *Memory) (set func(time.Duration)) {
	epoch := time.Unix(1e9, 0)
	at := epoch
	m.now = func() time.Time { return at }
	return func(now time.Duration) { at = epoch.Add(now) }
}

// Bytes returns the size of m's keys and records, as m counts it.
func Bytes(m *Memory) int { return m.bytes }

// Holders is of how many callers m counts what they hold.
func Holders(m *Memory) int { return len(m.held) }

// SetRand makes m draw the waits before it calls its store again from random.
func SetRand(m *Middleware, random func() uint64) {
	for _, d := range []**lull.Dependency{&m.claims, &m.saves} {
		*d, _ = lull.NewDependency((*d).Name(), (*d).Policy(), lull.WithClassifier(classify), lull.WithRand(random))
	}
}
