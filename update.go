package lull

import (
	"errors"
	"sync"
	"time"

	"github.com/lullgo/lull/budget"
)

// Update changes the policy of d, for the calls that start from then on; calls that are
// under way end under the policy that they began with. What d remembers it keeps: a
// part (budget, breaker, throttle, hedging, concurrency limit) whose configuration is
// the same goes on as it is, an open circuit stays open and a budget that is spent stays
// spent even if theirs has changed (Inherit of packages breaker and budget). A
// throttle, a limit or hedging whose configuration has changed begins anew; calls
// that are in flight then count under the old limit.
//
// Options stay as they are; of a dependency with WithBudget, the budget. A policy that does not
// validate is refused, and changes nothing. So is a dependency that Clones has made. Update may be called
// concurrently with everything else. What Breaker, Budget and the like have returned
// before may be that of the old policy: ask again.
//
// Update is for drivers on the real clock ([Do], [Drive], lullhttp). A driver with a clock
// of its own calls UpdateAt.
func (d *Dependency) Update(p Policy) error { return d.UpdateAt(d.Now(), p) }

// UpdateAt is Update for a driver with a clock of its own: now is the time on it. The clock
// must be the one that [Dependency.Start] was given.
func (d *Dependency) UpdateAt(now time.Duration, p Policy) error {
	d.made()
	if d.id.fleet {
		return errors.New("dependencies made by Clones share one policy, which cannot be updated")
	}
	updates.Lock()
	defer updates.Unlock()
	old := d.current()
	if p.WithDefaults() == old.plan.policy {
		return nil
	}
	fresh, err := newPlan(p, old.plan.epoch, old.plan.options)
	if err != nil {
		return &policyError{d.id.name, err}
	}
	v := &Dependency{id: d.id, plan: fresh}
	v.answered.word.Store(old.answered.word.Load())
	if old.plan.empty || old.plan.lazy && old.state.Load() == nil && fresh.lazy {
		d.id.latest.Store(v) // nothing is remembered
		return nil
	}
	v.inherit(now, old.remember(), old.plan.policy)
	d.id.latest.Store(v)
	return nil
}

// updates is held by Update: one for all, since a dependency that was never called is to
// stay small.
var updates sync.Mutex

// inherit takes over at now what was remembered under an old policy.
func (d *Dependency) inherit(now time.Duration, s *state, was Policy) {
	is := d.plan.policy
	var pays budget.Budget
	if d.plan.newBudget != nil || is.Budget == was.Budget {
		pays = s.budget
	}
	mine := d.newState(pays)
	if pays == nil && s.budget != nil && mine.budget != nil {
		budget.Inherit(now, mine.budget, s.budget)
	}
	mine.failure.Store(s.failure.Load())
	if s.timeouts != nil && mine.timeouts != nil {
		mine.timeouts = s.timeouts
	}
	switch {
	case s.breaker == nil || mine.breaker == nil:
	case is.breakerConfig() == was.breakerConfig():
		mine.breaker = s.breaker
	default:
		mine.breaker.Inherit(now, s.breaker)
	}
	if is.Throttle == was.Throttle {
		mine.throttle = s.throttle
	}
	if is.Hedge == was.Hedge {
		mine.hedger = s.hedger
	}
	if is.Limit == was.Limit {
		mine.limiter = s.limiter
	}
	mine.patience.Store(s.patience.Load())
	d.state.Store(mine)
}
