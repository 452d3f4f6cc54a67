package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/throttle"
)

// A State is the memory of one process about one dependency. Plan.Init makes it. Its methods
// may be called concurrently. It is four words; what it remembers is allocated when there
// is something to remember.
type State struct {
	id   atomic.Pointer[identity] // nil: it was never updated, and nobody observes it
	plan *Plan
	// mem is nil until there is something to remember. It stays so while the plan is lazy
	// and no call has failed.
	mem      atomic.Pointer[memory]
	answered answered // kept if the plan notes answers
}

// identity is shared by all versions of a state (Update).
type identity struct {
	latest  atomic.Pointer[State] // the version that new calls are made on; nil: the first
	changed func(breaker.Change)  // learns of the breaker's changes; nil: nobody does
	fleet   bool                  // shared by all states of a fleet
}

// memory holds the parts that remember. Parts that are switched off are nil.
type memory struct {
	budget   budget.Budget
	timeouts *budget.Ratio // pays for retries of attempts that timed out, beside the budget
	breaker  *breaker.Breaker
	limiter  *bulkhead.Limiter
	throttle *throttle.Throttle
	hedger   *hedge.Hedger
	// emptyHints is how many retries at the time that the server asked for have failed since
	// one last succeeded.
	emptyHints atomic.Int32
	// patience is nil until an attempt times out whose call was near its deadline.
	patience atomic.Pointer[patience]
}

// nothing is the memory of a state that has nothing to remember.
var nothing = new(memory)

// Init makes s a state under p that remembers nothing. Changed, if not nil, learns of
// every change of its breaker, on the goroutine of the call that made it.
func (p *Plan) Init(s *State, changed func(breaker.Change)) {
	var id *identity
	if changed != nil {
		id = &identity{changed: changed}
	}
	p.init(s, id)
}

// InitFleet makes each of the fleet a state under p, as Init does: one for each process of
// a simulated fleet. They cannot be updated.
func (p *Plan) InitFleet(fleet []State, changed func(breaker.Change)) {
	id := &identity{changed: changed, fleet: true}
	for i := range fleet {
		p.init(&fleet[i], id)
	}
}

func (p *Plan) init(s *State, id *identity) {
	s.plan = p
	s.id.Store(id)
	if p.empty {
		s.mem.Store(nothing)
	}
}

// Current is the version of s that a call which begins now is made on, to its end.
func (s *State) Current() *State {
	if id := s.id.Load(); id != nil {
		if v := id.latest.Load(); v != nil {
			return v
		}
	}
	return s
}

// Plan is the plan of this version of s.
func (s *State) Plan() *Plan { return s.plan }

// Breaker is the circuit breaker, for looking at it and for forcing it open or closed; nil
// if Policy.Breaker.Off.
func (s *State) Breaker() *breaker.Breaker { return s.Current().remember().breaker }

// Budget is the retry budget; nil if Policy.Budget.Unlimited.
func (s *State) Budget() budget.Budget { return s.Current().remember().budget }

// Limiter is the concurrency limit; nil if there is none.
func (s *State) Limiter() *bulkhead.Limiter { return s.Current().remember().limiter }

// Throttle is the client's own throttle; nil if Policy.Throttle is off.
func (s *State) Throttle() *throttle.Throttle { return s.Current().remember().throttle }

// Hedger decides when attempts run beside one another; nil if Policy.Hedge is off.
func (s *State) Hedger() *hedge.Hedger { return s.Current().remember().hedger }

// CircuitClosed reports whether there is no breaker, or it is closed at now. It makes
// nothing to remember.
func (s *State) CircuitClosed(now time.Duration) bool {
	return s.Current().mem.Load().closed(now)
}

// closed is CircuitClosed. m may be nil.
func (m *memory) closed(now time.Duration) bool {
	return m == nil || m.breaker == nil || m.breaker.State(now) == breaker.Closed
}

// remember is the memory, made when it is first asked for.
func (s *State) remember() *memory {
	if m := s.mem.Load(); m != nil {
		return m
	}
	m := s.newMemory(nil)
	if !s.mem.CompareAndSwap(nil, m) {
		m = s.mem.Load()
	}
	return m
}

// newMemory is a memory of nothing, but for a budget that is there already, if any.
func (s *State) newMemory(retryBudget budget.Budget) *memory {
	p := s.plan
	m := &memory{budget: retryBudget}
	// The policy was validated, so nothing here can fail.
	switch {
	case retryBudget != nil:
	case p.parts.Budget != nil:
		m.budget = p.parts.Budget()
	case !p.policy.Budget.Unlimited:
		m.budget, _ = budget.New(p.policy.Budget)
	}
	id := s.id.Load()
	switch {
	case p.breakers == nil:
	case id == nil || id.changed == nil:
		m.breaker = p.breakers.New()
	default:
		m.breaker = p.breakers.New(id.changed)
	}
	if p.policy.Timeouts == TimeoutsWhenAnswered && m.budget != nil {
		m.timeouts, _ = budget.NewRatio(budget.Config{Ratio: TimeoutRatio, Window: timeoutWindow})
	}
	if p.throttles != nil {
		m.throttle = p.throttles.New()
	}
	if p.hedges != nil {
		m.hedger = p.hedges.New()
	}
	if p.limited {
		m.limiter, _ = bulkhead.New(p.policy.Limit)
	}
	return m
}

// due reports whether the answer to an attempt that began then is to be noted. A process
// whose calls are so close together that they earn more than the stock that its budget
// starts with has something to remember.
func (s *State) due(began time.Duration) bool {
	if !s.plan.notesAnswers {
		return false
	}
	since, due := s.answered.since(began)
	if s.plan.lazy && since < s.plan.quietGap && s.mem.Load() == nil && s.answered.latest() >= 0 {
		s.remember()
	}
	return due
}

// answeredFrom is when the latest attempt began that was answered, as far as was
// noted, under this policy or the current one.
func (s *State) answeredFrom() time.Duration {
	return max(s.answered.latest(), s.Current().answered.latest())
}

// Update changes the policy for the calls that start from now on; calls that are under way
// end under the policy that they began with. A part of the memory (budget, breaker,
// throttle, hedging, concurrency limit) whose configuration is the same continues as it is.
// An open circuit stays open and a budget that is spent stays spent even if their
// configuration has changed (Inherit of packages breaker and budget). A throttle, a limit
// or hedging whose configuration has changed begins anew; calls that are in flight then
// count under the old limit.
//
// Parts of the plan stay. A policy that does not validate is refused, and changes nothing;
// so is a state of a fleet.
func (s *State) Update(now time.Duration, p Policy) error {
	updates.Lock()
	defer updates.Unlock()
	id := s.id.Load()
	if id != nil && id.fleet {
		return errors.New("the states of a fleet share one policy, which cannot be updated")
	}
	old := s.Current()
	if p.WithDefaults() == old.plan.policy {
		return nil
	}
	plan, err := NewPlan(p, old.plan.parts)
	if err != nil {
		return err
	}
	if id == nil {
		id = new(identity)
		s.id.Store(id)
	}
	v := new(State)
	plan.init(v, id)
	v.answered.word.Store(old.answered.word.Load())
	if !old.plan.empty && !(old.mem.Load() == nil && old.plan.lazy && plan.lazy) {
		v.mem.Store(v.inherit(now, old.remember(), old.plan.policy))
	}
	id.latest.Store(v)
	return nil
}

// updates is held by Update: one for all, since a state that was never called is to stay
// small.
var updates sync.Mutex

// inherit is a memory that takes over at now what m remembers under an old policy.
func (s *State) inherit(now time.Duration, m *memory, was Policy) *memory {
	is := s.plan.policy
	var retryBudget budget.Budget
	if s.plan.parts.Budget != nil || is.Budget == was.Budget {
		retryBudget = m.budget
	}
	mine := s.newMemory(retryBudget)
	if retryBudget == nil && m.budget != nil && mine.budget != nil {
		budget.Inherit(now, mine.budget, m.budget)
	}
	if m.timeouts != nil && mine.timeouts != nil {
		mine.timeouts = m.timeouts
	}
	switch {
	case m.breaker == nil || mine.breaker == nil:
	case is.breakerConfig() == was.breakerConfig():
		mine.breaker = m.breaker
	default:
		mine.breaker.Inherit(now, m.breaker)
	}
	if is.Throttle == was.Throttle {
		mine.throttle = m.throttle
	}
	if is.Hedge == was.Hedge {
		mine.hedger = m.hedger
	}
	if is.Limit == was.Limit {
		mine.limiter = m.limiter
	}
	mine.patience.Store(m.patience.Load())
	mine.emptyHints.Store(m.emptyHints.Load())
	return mine
}
