package idempotency

import (
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
)

// WithClock makes m's clock run ahead of the wall's by what advance has been told.
func WithClock(m *Memory) (advance func(time.Duration)) {
	var ahead atomic.Int64
	m.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

// SetClock makes m's clock stand at what set was told last.
func SetClock(m *Memory) (set func(time.Duration)) {
	epoch := time.Unix(1e9, 0)
	at := epoch
	m.now = func() time.Time { return at }
	return func(now time.Duration) { at = epoch.Add(now) }
}

// Bytes is what m counts of its keys and records.
func Bytes(m *Memory) int { return m.bytes }

// Holders is of how many callers m counts what they hold.
func Holders(m *Memory) int { return len(m.held) }

// SetRand makes m draw the waits before it calls its store again from random.
func SetRand(m *Middleware, random func() uint64) {
	for _, d := range []**lull.Dependency{&m.claims, &m.saves} {
		*d, _ = lull.NewDependency((*d).Name(), (*d).Policy(), lull.WithClassifier(classify), lull.WithRand(random))
	}
}
