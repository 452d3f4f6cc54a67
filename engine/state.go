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
// may be called concurrently. It is two words; what it remembers is allocated when there
// is something to remember.
type State struct {
	mem      atomic.Pointer[memory]
	answered answered // kept if the plan notes answers
}

// identity is shared by all versions of a state (Update).
type identity struct {
	latest  atomic.Pointer[State] // the version that new calls are made on; nil: the first
	changed func(breaker.Change)  // learns of the breaker's changes; nil: nobody does
	fleet   bool                  // shared by all states of a fleet
}

// memory holds what a state is, and the parts that remember. Parts that are switched off
// are nil.
type memory struct {
	plan *Plan
	id   atomic.Pointer[identity] // nil: it was never updated, and nobody observes it
	// blank: there is nothing to remember yet, so there are no parts, and many states may share
	// it. It stays so while the plan is lazy and no call has failed.
	blank bool

	budget   budget.Budget
	breaker  *breaker.Breaker
	limiter  *bulkhead.Limiter
	throttle *throttle.Throttle
	hedger   *hedge.Hedger
	// emptyHints is how many retries at the time that the server asked for have failed since
	// one last succeeded.
	failedHints   atomic.Int32
	latestTimeout atomic.Int64 // when the attempt began that began last, of those that timed out
	// patience is nil until an attempt times out whose call was near its deadline.
	patience atomic.Pointer[patience]
}

// noteTimeout keeps in mind that an attempt that began then timed out.
func (m *memory) recordTimeout(began time.Duration) {
	for {
		last := m.latestTimeout.Load()
		if last >= int64(began) || m.latestTimeout.CompareAndSwap(last, int64(began)) {
			return
		}
	}
}

// Init makes s a state under p that remembers nothing. Changed, if not nil, learns of
// every change of its breaker, on the goroutine of the call that made it.
func (p *Plan) Init(s *State, changed func(breaker.Change)) {
	if changed == nil {
		s.mem.Store(p.fresh)
		return
	}
	s.mem.Store(p.blankMemory(&identity{changed: changed}))
}

// InitFleet makes each of the fleet a state under p, as Init does: one for each process of
// a simulated fleet. They cannot be updated.
func (p *Plan) InitFleet(fleet []State, changed func(breaker.Change)) {
	m := p.blankMemory(&identity{changed: changed, fleet: true})
	for i := range fleet {
		fleet[i].mem.Store(m)
	}
}

// memory is that of a state that has nothing to remember.
func (p *Plan) blankMemory(id *identity) *memory {
	m := &memory{plan: p, blank: !p.empty}
	m.id.Store(id)
	return m
}

// Current is the version of s that a call which begins now is made on, to its end.
func (s *State) Current() *State {
	if id := s.mem.Load().id.Load(); id != nil {
		if v := id.latest.Load(); v != nil {
			return v
		}
	}
	return s
}

// Plan is the plan of this version of s; nil if it was not made by a plan.
func (s *State) Plan() *Plan {
	if m := s.mem.Load(); m != nil {
		return m.plan
	}
	return nil
}

// Breaker is the circuit breaker, for looking at it and for forcing it open or closed; nil
// if Policy.Breaker.Off.
func (s *State) Breaker() *breaker.Breaker { return s.Current().memory().breaker }

// Budget is the retry budget; nil if Policy.Budget.Unlimited.
func (s *State) Budget() budget.Budget { return s.Current().memory().budget }

// Limiter is the concurrency limit; nil if there is none.
func (s *State) Limiter() *bulkhead.Limiter { return s.Current().memory().limiter }

// Throttle is the client's own throttle; nil if Policy.Throttle is off.
func (s *State) Throttle() *throttle.Throttle { return s.Current().memory().throttle }

// Hedger decides when attempts run beside one another; nil if Policy.Hedge is off.
func (s *State) Hedger() *hedge.Hedger { return s.Current().memory().hedger }

// CircuitClosed reports whether there is no breaker, or it is closed at now. It makes
// nothing to remember.
func (s *State) CircuitClosed(now time.Duration) bool {
	return s.Current().mem.Load().closed(now)
}

func (m *memory) closed(now time.Duration) bool {
	return m.breaker == nil || m.breaker.State(now) == breaker.Closed
}

// remember is the memory, made when it is first asked for.
func (s *State) memory() *memory {
	for {
		m := s.mem.Load()
		if !m.blank {
			return m
		}
		if made := m.plan.newMemory(m.id.Load(), nil); s.mem.CompareAndSwap(m, made) {
			return made
		}
	}
}

// remember is a memory of nothing, but for a budget that is there already, if any.
func (p *Plan) newMemory(id *identity, retryBudget budget.Budget) *memory {
	m := &memory{plan: p, budget: retryBudget}
	m.id.Store(id)
	// The policy was validated, so nothing here can fail.
	switch {
	case retryBudget != nil:
	case p.parts.Budget != nil:
		m.budget = p.parts.Budget()
	case !p.policy.Budget.Unlimited:
		m.budget, _ = budget.New(p.policy.Budget)
	}
	switch {
	case p.breakers == nil:
	case id == nil || id.changed == nil:
		m.breaker = p.breakers.New()
	default:
		m.breaker = p.breakers.New(id.changed)
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
func (s *State) mustRecord(began time.Duration) bool {
	m := s.mem.Load()
	if !m.plan.notesAnswers {
		return false
	}
	since, due := s.answered.sinceLatest(began)
	if m.blank && since < m.plan.quietGap && s.answered.latestStart() >= 0 {
		s.memory()
	}
	return due
}

// answeredFrom is when the latest attempt began that was answered, as far as was
// noted, under this policy or the current one.
func (s *State) latestAnsweredStart() time.Duration {
	return max(s.answered.latestStart(), s.Current().answered.latestStart())
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
	id := s.mem.Load().id.Load()
	if id != nil && id.fleet {
		return errors.New("the states of a fleet share one policy, which cannot be updated")
	}
	old := s.Current()
	was := old.Plan()
	if p.WithDefaults() == was.policy {
		return nil
	}
	plan, err := NewPlan(p, was.parts)
	if err != nil {
		return err
	}
	if id == nil {
		id = new(identity)
		s.identify(id)
	}
	v := new(State)
	v.mem.Store(plan.blankMemory(id))
	v.answered.word.Store(old.answered.word.Load())
	if !was.empty && !(old.mem.Load().blank && was.lazy && plan.lazy) {
		v.mem.Store(plan.inherit(now, id, old.memory()))
	}
	id.latest.Store(v)
	return nil
}

// identify gives s, which has none, an identity. Calls may make its memory meanwhile.
func (s *State) identify(id *identity) {
	for {
		m := s.mem.Load()
		if !m.blank && m != m.plan.fresh { // its own
			m.id.Store(id)
			return
		}
		if s.mem.CompareAndSwap(m, m.plan.blankMemory(id)) {
			return
		}
	}
}

// updates is held by Update: one for all, since a state that was never called is to stay
// small.
var updates sync.Mutex

// inherit is a memory that takes over at now what m remembers under an old policy.
func (p *Plan) inherit(now time.Duration, id *identity, m *memory) *memory {
	is, was := p.policy, m.plan.policy
	var retryBudget budget.Budget
	if p.parts.Budget != nil || is.Budget == was.Budget {
		retryBudget = m.budget
	}
	mine := p.newMemory(id, retryBudget)
	if retryBudget == nil && m.budget != nil && mine.budget != nil {
		budget.Inherit(now, mine.budget, m.budget)
	}
	mine.latestTimeout.Store(m.latestTimeout.Load())
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
	mine.failedHints.Store(m.failedHints.Load())
	return mine
}
