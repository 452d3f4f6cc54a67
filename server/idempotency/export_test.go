package idempotency

import "github.com/lullgo/lull"

// Bytes returns the size of m's keys and records, as m counts it.
func Bytes(m *MemoryStore) int { return m.bytes }

// Holders is of how many callers m counts what they hold.
func Holders(m *MemoryStore) int { return len(m.held) }

// SetRand makes m draw the waits before it calls its store again from random.
func SetRand(m *Middleware, random func() uint64) {
	for _, d := range []**lull.Dependency{&m.claims, &m.saves} {
		*d, _ = lull.NewDependency((*d).Name(), (*d).Policy(), lull.WithClassifier(classify), lull.WithRand(random))
	}
}
