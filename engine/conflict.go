package engine

import (
	"time"

	"github.com/lullgo/lull/budget"
)

// RepeatConflict reports whether a transaction that was rolled back because another one was in
// its way is run again at once, inside the attempt that ran it. A conflict is the answer of a
// healthy database, and usually the other transaction is over by then, so there is nothing to
// wait for. That holds for the first conflict of a call. After a second one the driver hands the
// verdict to Call.Next, which waits.
//
// It asks what Call.Next would ask: may the call be repeated (spec; forRetry is true for a call
// that is made for a request which is itself a retry), is the circuit closed, and does the budget
// pay. If ok, the driver runs the transaction once more and calls settle when that has ended.
func (s *State) RepeatConflict(now time.Duration, spec *Spec, forRetry bool, random func() uint64) (settle func(now time.Duration), ok bool) {
	s = s.Current()
	p := s.Plan()
	switch {
	case spec.Once || spec.NotReplayable || p.attempts <= 1:
		return nil, false
	case (forRetry || spec.ForRetry) && p.policy.Nested == NestedNever:
		return nil, false
	case !s.CircuitClosed(now):
		return nil, false
	}
	b := s.remember().budget
	if b == nil {
		return func(time.Duration) {}, true
	}
	b.Failed(now)
	grant := b.Withdraw(now, budget.Transient, random)
	if !grant.OK {
		return nil, false
	}
	return func(now time.Duration) { b.Release(now, grant.Receipt) }, true
}
