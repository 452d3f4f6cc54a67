package engine

import (
	"time"

	"github.com/lullgo/lull/budget"
)

// RepeatConflict decides whether a transaction that was rolled back because of another one is run
// again at once, inside of its attempt. Such a conflict is the answer of a healthy database, and
// the other transaction is usually over by then. It is for the first conflict of a call. After a
// second one the driver calls Call.Next, which waits.
//
// The call must be repeatable (spec; forRetry: it is made for a request which is itself a retry),
// the circuit closed, and the budget must pay. If ok, the driver runs the transaction again, and
// calls settle when it has ended.
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
	b := s.memory().budget
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
