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

// A State is the memory of one process about one dependency. Plan.Init makes it. Its methods may
// be called concurrently. It is two words; the rest is allocated when there is something to
// remember.
type State struct {
	mem      atomic.Pointer[memory]
	answered answered // kept if Plan.notesAnswers
}

// identity is shared by all versions of a state (Update).
type identity struct {
	latest  atomic.Pointer[State] // the version that new calls are made on; nil: the first
	changed func(breaker.Change)  // receives the breaker's changes; may be nil
	fleet   bool                  // shared by all states of a fleet
}

// memory has what a state remembers. Parts that are switched off are nil.
type memory struct {
	plan     *Plan
	id       atomic.Pointer[identity] // nil: never updated, and not observed
	budget   budget.Budget
	breaker  *breaker.Breaker
	limiter  *bulkhead.Limiter
	throttle *throttle.Throttle
	hedger   *hedge.Hedger
	// waiting is how many calls wait for a retry, under this version and others (Update). It is nil
	// if the memory is blank.
	waiting *atomic.Int32
	// failedHints is how many retries in a row have failed at times that the server asked for.
	failedHints   atomic.Int32
	ownWaiting    atomic.Int32 // waiting of the first version
	latestTimeout atomic.Int64 // the latest start of an attempt that timed out
}

func (m *memory) recordTimeout(began time.Duration) {
	for {
		last := m.latestTimeout.Load()
		if last >= int64(began) || m.latestTimeout.CompareAndSwap(last, int64(began)) {
			return
		}
	}
}

// blank reports whether there is nothing to remember yet, so that there are no parts, and states
// may share the memory. It stays so while the plan is lazy and no call has failed.
func (m *memory) blank() bool { return m.waiting == nil }

// Init makes s a state under p that remembers nothing. changed, if not nil, receives every change
// of its breaker, on the goroutine of the call that made it.
func (p *Plan) Init(s *State, changed func(breaker.Change)) {
	if changed == nil {
		s.mem.Store(p.fresh)
		return
	}
	s.mem.Store(p.blankMemory(&identity{changed: changed}))
}

// InitFleet makes each of the fleet a state under p, as Init does: one for each process of a
// simulated fleet. They cannot be updated.
func (p *Plan) InitFleet(fleet []State, changed func(breaker.Change)) {
	m := p.blankMemory(&identity{changed: changed, fleet: true})
	for i := range fleet {
		fleet[i].mem.Store(m)
	}
}

// blankMemory returns the memory of a state that has nothing to remember.
func (p *Plan) blankMemory(id *identity) *memory {
	m := &memory{plan: p}
	if p.Stateless() {
		m.waiting = &m.ownWaiting
	}
	m.id.Store(id)
	return m
}

// Current returns the version of s for calls that begin now.
func (s *State) Current() *State {
	if id := s.mem.Load().id.Load(); id != nil {
		if v := id.latest.Load(); v != nil {
			return v
		}
	}
	return s
}

// Plan returns the plan of this version of s; nil if it was not made by a plan.
func (s *State) Plan() *Plan {
	if m := s.mem.Load(); m != nil {
		return m.plan
	}
	return nil
}

// Breaker returns the circuit breaker, to read it or to force it open or closed; nil if
// Policy.Breaker.Off.
func (s *State) Breaker() *breaker.Breaker { return s.Current().memory().breaker }

// Budget returns the retry budget; nil if Policy.Budget.Unlimited.
func (s *State) Budget() budget.Budget { return s.Current().memory().budget }

// Limiter returns the concurrency limit; nil if there is none.
func (s *State) Limiter() *bulkhead.Limiter { return s.Current().memory().limiter }

// Throttle returns the client's own throttle; nil if Policy.Throttle is off.
func (s *State) Throttle() *throttle.Throttle { return s.Current().memory().throttle }

// Hedger returns what decides about hedges; nil if Policy.Hedge is off.
func (s *State) Hedger() *hedge.Hedger { return s.Current().memory().hedger }

// CircuitClosed reports whether there is no breaker, or it is closed at now. It allocates
// nothing.
func (s *State) CircuitClosed(now time.Duration) bool {
	return s.Current().mem.Load().closed(now)
}

func (m *memory) closed(now time.Duration) bool {
	return m.breaker == nil || m.breaker.State(now) == breaker.Closed
}

// memory returns the memory with its parts, and makes them when they are first needed.
func (s *State) memory() *memory {
	for {
		m := s.mem.Load()
		if !m.blank() {
			return m
		}
		if made := m.plan.newMemory(m.id.Load(), nil); s.mem.CompareAndSwap(m, made) {
			return made
		}
	}
}

// newMemory returns a memory of nothing with its parts. retryBudget, if not nil, is its budget.
func (p *Plan) newMemory(id *identity, retryBudget budget.Budget) *memory {
	m := &memory{plan: p, budget: retryBudget}
	m.waiting = &m.ownWaiting
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

// mustRecord reports whether the answer to an attempt that began at began must be recorded. It
// makes the memory of a process whose calls are so close together that they earn more than the
// stock that its budget starts with.
func (s *State) mustRecord(began time.Duration) bool {
	m := s.mem.Load()
	if !m.plan.notesAnswers {
		return false
	}
	since, due := s.answered.sinceLatest(began)
	if m.blank() && since < m.plan.quietGap && s.answered.latestStart() >= 0 {
		s.memory()
	}
	return due
}

// latestAnsweredStart returns when the latest attempt began that was answered and recorded, under
// this policy or the current one; negative if there is none.
func (s *State) latestAnsweredStart() time.Duration {
	return max(s.answered.latestStart(), s.Current().answered.latestStart())
}

// Update changes the policy for the calls that start from now on; calls under way end under the
// policy that they began with. A part (budget, breaker, throttle, hedging, concurrency limit)
// with the same configuration continues as it is. With another configuration, an open circuit
// stays open and a spent budget stays spent ([breaker.Breaker.Inherit], [budget.Inherit]). Any
// other part begins anew; calls in flight then count under the old limit.
//
// The plan's Parts stay. A policy that does not validate is refused, and changes nothing; so is a
// state of a fleet.
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
	if !was.empty && !(old.mem.Load().blank() && was.lazy && plan.lazy) {
		v.mem.Store(plan.inherit(now, id, old.memory()))
	}
	id.latest.Store(v)
	return nil
}

// identify gives s an identity. Calls may make its memory at the same time.
func (s *State) identify(id *identity) {
	for {
		m := s.mem.Load()
		if !m.blank() && m != m.plan.fresh { // its own
			m.id.Store(id)
			return
		}
		if s.mem.CompareAndSwap(m, m.plan.blankMemory(id)) {
			return
		}
	}
}

// updates is held by Update. There is one for all, so that a state that was never called is
// small.
var updates sync.Mutex

// inherit returns a memory that takes over at now what m remembers under an old policy.
func (p *Plan) inherit(now time.Duration, id *identity, m *memory) *memory {
	is, was := p.policy, m.plan.policy
	var retryBudget budget.Budget
	if p.parts.Budget != nil || is.Budget == was.Budget {
		retryBudget = m.budget
	}
	mine := p.newMemory(id, retryBudget)
	mine.waiting = m.waiting
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
	mine.failedHints.Store(m.failedHints.Load())
	return mine
}
