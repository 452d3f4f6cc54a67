// Package edge finds the refusal that is worth an event: the first one after a grant.
// Budgets share it, so that each of them reports an outage once.
package edge

import "sync/atomic"

// An Edge remembers whether the last decision was a refusal. The zero Edge has seen
// none. It is safe for concurrent use.
type Edge struct{ refused atomic.Bool }

// RecordGrant records a grant.
func (e *Edge) RecordGrant() {
	if e.refused.Load() {
		e.refused.Store(false)
	}
}

// RecordRefusal records a refusal, and reports whether it is the first one after a grant.
func (e *Edge) RecordRefusal() bool { return !e.refused.Load() && !e.refused.Swap(true) }
