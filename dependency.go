package lull

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/hugepage"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/throttle"
)

// A Dependency is what one process remembers of one thing that it calls: the
// retry budget, the circuit breaker, the calls in flight. Share one among all
// goroutines that call that thing; its methods may be called concurrently.
//
// A Dependency that was never called is one small allocation. What it remembers
// is allocated at its first call.
type Dependency struct {
	id    *identity
	plan  *plan // shared with every clone
	state atomic.Pointer[state]
	// answered is kept if the plan listens.
	answered answered
}

// identity is what all versions of a dependency have in common (Update).
type identity struct {
	name   string
	latest atomic.Pointer[Dependency] // the version that new calls are made on; nil: there is but one
	fleet  bool                       // shared by all that Clones has made
}

// current is the version of d that a call which begins now is made on, to its end.
func (d *Dependency) current() *Dependency {
	d.made()
	if v := d.id.latest.Load(); v != nil {
		return v
	}
	return d
}

// made panics if d is nil or zero.
func (d *Dependency) made() {
	if d == nil || d.id == nil {
		panic("lull: a nil or zero Dependency is used: make it with lull.NewDependency, and look at its error")
	}
}

// plan is a policy made ready, and the wiring: written once, then only read.
type plan struct {
	options   []Option
	policy    Policy // with defaults
	attempts  int    // as Policy.allowed
	waits     *backoff.Prepared
	custom    backoff.Func // instead of waits; nil: none
	throttled *backoff.Prepared
	classify  Classifier
	teach     string // the option that teaches the driver, of ClassifiedBy; empty: WithClassifier
	own       bool   // WithClassifier was given
	observer  Observer
	newBudget func() budget.Budget
	breakers  *breaker.Plan  // nil if Policy.Breaker.Off
	throttles *throttle.Plan // nil if Policy.Throttle is off
	hedges    *hedge.Plan    // nil if Policy.Hedge is off
	rand      func() uint64
	epoch     time.Time     // what real drivers count their time from
	timed     bool          // every call's end is timed
	limited   bool          // there is a concurrency limit
	lazy      bool          // calls that do not fail leave no trace in the state
	quiet     time.Duration // budget.Config.QuietGap
	empty     bool          // there is nothing to remember at all
	listens   bool          // Dependency.answered is wanted

	// coarse is the last time that a real driver read, give or take coarseStep.
	coarse atomic.Int64
}

// coarseStep is how far the clock moves before coarse is written again: too seldom
// for cores to contend, and often enough to tell which of two attempts was first.
const coarseStep = time.Millisecond

// state is what a dependency remembers. Parts that are switched off are nil.
type state struct {
	budget   budget.Budget
	breaker  *breaker.Breaker
	limiter  *bulkhead.Limiter
	throttle *throttle.Throttle
	hedger   *hedge.Hedger
	alarms   *alarms // for the driver of hedged calls
	// failure is the last with which a call ended while the breaker was not closed, or which
	// opened it.
	failure atomic.Pointer[error]
	// timeouts pays for retries of attempts that timed out, beside the budget.
	timeouts *budget.Bucket
	// patience is nil until an attempt times out whose call was near its deadline.
	patience atomic.Pointer[patience]
}

// An Option wires a dependency: what cannot be data in a Policy.
type Option func(*plan)

// WithClassifier makes classify decide what the operation's errors mean. Marks
// ([Transient], [RetryAfter], ...) add to that, and an error of another call of lull is
// final, without asking it ([VerdictOf]). To add to what lull knows, fall back on
// [Classify].
func WithClassifier(classify Classifier) Option {
	return func(p *plan) {
		if classify != nil {
			p.classify, p.own = classify, true
		}
	}
}

// ClassifiedBy is for drivers that classify the failures of their attempts themselves, so
// that WithClassifier would have no effect: it is refused then. Option is the name of the
// driver's own, which errors name instead.
func ClassifiedBy(option string) Option { return func(p *plan) { p.teach = option } }

// WithObserver tells o of every event. It may be given several times.
func WithObserver(o Observer) Option {
	return func(p *plan) {
		if o == nil {
			return
		}
		switch have := p.observer.(type) {
		case nil:
			p.observer = o
		case observers:
			p.observer = append(have[:len(have):len(have)], o)
		default:
			p.observer = observers{have, o}
		}
	}
}

// WithBackoff replaces Policy.Backoff by a function, which must be safe for
// concurrent use. Waits after a Throttled failure are still those of the policy,
// and so is the number of attempts. Policy.WorstCase does not know of it.
func WithBackoff(f backoff.Func) Option {
	return func(p *plan) {
		if f != nil {
			p.custom = f
		}
	}
}

// WithBudget replaces Policy.Budget by another kind, such as a gRPC throttle.
// The function is called once for each Dependency that is made with the option,
// at its first call; let it return one shared budget to have several
// dependencies pay from it.
func WithBudget(f func() budget.Budget) Option {
	return func(p *plan) {
		if f != nil {
			p.newBudget = f
		}
	}
}

// WithTiming times the end of every call, so that Event.Elapsed and
// Result.Elapsed are set for all of them. Without it the end of a call whose
// first attempt succeeded is not looked at: reading the clock once more would
// make the success path a third slower, about 25 ns.
func WithTiming() Option { return func(p *plan) { p.timed = true } }

// WithRand replaces the source of randomness that real drivers hand to the
// engine, math/rand/v2's Uint64. It must be safe for concurrent use.
func WithRand(f func() uint64) Option {
	return func(p *plan) {
		if f != nil {
			p.rand = f
		}
	}
}

// NewDependency returns a dependency that is called under policy p. The name
// stands in errors and events. A policy that does not validate is refused.
func NewDependency(name string, p Policy, opts ...Option) (*Dependency, error) {
	if name == "" {
		return nil, errors.New("a dependency needs a name, for errors and events")
	}
	pl, err := newPlan(p, time.Now(), opts)
	if err != nil {
		return nil, &policyError{name, err}
	}
	return &Dependency{id: &identity{name: name}, plan: pl}, nil
}

func newPlan(p Policy, epoch time.Time, opts []Option) (*plan, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	p = p.WithDefaults()
	pl := &plan{
		options:   opts,
		policy:    p,
		attempts:  p.allowed(),
		waits:     p.Backoff.Prepare(),
		throttled: p.throttled().Prepare(),
		classify:  Classify,
		rand:      rand.Uint64,
		epoch:     epoch,
		timed:     p.Breaker.SlowRate > 0,
		limited:   p.Limit.Limit > 0,
	}
	for _, o := range opts {
		if o != nil {
			o(pl)
		}
	}
	if pl.teach != "" && pl.own {
		return nil, errors.New("lull.WithClassifier has no effect here: use " + pl.teach)
	}
	if c := p.breakerConfig(); !c.Off {
		pl.breakers, _ = breaker.Prepare(c)
	}
	ownBudget := pl.newBudget != nil
	if p.Throttle.Mode != throttle.Off {
		pl.throttles, _ = throttle.Prepare(p.Throttle)
	}
	if p.Hedge.Attempts > 1 {
		pl.hedges, _ = hedge.Prepare(p.Hedge)
	}
	always := pl.limited || ownBudget || pl.throttles != nil || pl.hedges != nil // there is something to remember from the first call on
	pl.lazy = !always && p.Budget.FullAtStart() && p.Breaker.Pristine()
	pl.quiet = p.Budget.QuietGap()
	pl.empty = !always && p.Budget.Unlimited && p.Breaker.Off
	pl.listens = p.Timeouts == TimeoutsWhenAnswered && pl.attempts > 1 || !pl.empty
	return pl, nil
}

// breakerConfig is that of the breaker, given a policy with its defaults filled in.
func (p Policy) breakerConfig() breaker.Config {
	c := p.Breaker
	if !c.Off && c.ProbeTimeout == 0 && p.Deadline > 0 {
		c.ProbeTimeout = p.Deadline // a probe is a call, and may take as long
	}
	return c
}

// policyError says whose policy is wrong.
type policyError struct {
	name string
	err  error
}

func (e *policyError) Error() string { return "policy of " + e.name + ": " + e.err.Error() }
func (e *policyError) Unwrap() error { return e.err }

// Clone returns a dependency under the same policy and wiring that remembers
// nothing yet. It is cheap: policy and wiring are shared.
func (d *Dependency) Clone(name string) *Dependency {
	return &Dependency{id: &identity{name: name}, plan: d.current().plan}
}

// Clones returns n dependencies as Clone makes them, all with d's name, in one
// piece of memory: one for each process of a simulated fleet. They cannot be updated.
func (d *Dependency) Clones(n int) []Dependency {
	fleet := make([]Dependency, n)
	hugepage.Advise(fleet)
	id, plan := &identity{name: d.Name(), fleet: true}, d.current().plan
	for i := range fleet {
		fleet[i].id, fleet[i].plan = id, plan
	}
	return fleet
}

// Name is the name that the dependency was made with.
func (d *Dependency) Name() string {
	d.made()
	return d.id.name
}

// Policy is the policy in force, with the defaults of its own fields filled in.
func (d *Dependency) Policy() Policy { return d.current().plan.policy }

// Rand is the dependency's source of randomness, which drivers hand to the engine: that of
// WithRand, or math/rand/v2's Uint64.
func (d *Dependency) Rand() func() uint64 { return d.plan.rand }

// Now is the time on the clock that real drivers count in: since the dependency
// (or the one it was cloned from) was made.
func (d *Dependency) Now() time.Duration {
	d.made()
	now := time.Since(d.plan.epoch)
	if seen := &d.plan.coarse; now-time.Duration(seen.Load()) > coarseStep {
		seen.Store(int64(now))
	}
	return now
}

// deadline is the time of a live context's deadline on d's clock; never if that is not
// known.
//
// A time that was parsed, or came over a wire, has no monotonic reading. The wall clock may
// have been set since d was made, so that only the difference to the wall clock's present
// time means anything. Where that is past, the wall clock was set forward while the context
// lives: it ends by itself.
func (d *Dependency) deadline(t time.Time) time.Duration {
	if t != t.Round(0) { // which takes a monotonic reading off
		return max(t.Sub(d.plan.epoch), 1)
	}
	left := time.Until(t)
	if left <= 0 {
		return never
	}
	return saturating.Add(d.Now(), left)
}

// nowAbout is the time as the last reading by any call found it: no earlier than
// at, which the caller has read, and late by no more than the time since any
// call began or ended.
func (d *Dependency) nowAbout(at time.Duration) time.Duration {
	return max(at, time.Duration(d.plan.coarse.Load()))
}

// Forgetful tells that calls leave no trace in the dependency, so that all its
// clones behave as one: there is neither budget nor breaker nor limit, and
// whether timeouts are repeated does not depend on other calls.
func (d *Dependency) Forgetful() bool {
	plan := d.current().plan
	return plan.empty && !plan.listens
}

// Breaker is the dependency's circuit breaker, for looking at it and for forcing
// it open or closed; nil if Policy.Breaker.Off.
func (d *Dependency) Breaker() *breaker.Breaker { return d.current().remember().breaker }

// Budget is the dependency's retry budget; nil if Policy.Budget.Unlimited.
func (d *Dependency) Budget() budget.Budget { return d.current().remember().budget }

// Limiter is the dependency's concurrency limit; nil if there is none.
func (d *Dependency) Limiter() *bulkhead.Limiter { return d.current().remember().limiter }

// Throttle is the dependency's throttle; nil if Policy.Throttle is off.
func (d *Dependency) Throttle() *throttle.Throttle { return d.current().remember().throttle }

// Hedger is what decides when attempts run beside one another; nil if Policy.Hedge
// is off.
func (d *Dependency) Hedger() *hedge.Hedger { return d.current().remember().hedger }

// known is the state, or nil where nothing has happened that it would have to
// hold: a dependency that has never failed remembers nothing, and is the smaller
// for it.
func (d *Dependency) known() *state {
	switch {
	case d.plan.empty:
		return nothing
	case d.plan.lazy:
		return d.state.Load()
	}
	return d.remember()
}

// memory is the state of a dependency that has something to remember.
func (d *Dependency) memory() *state {
	if d.plan.empty {
		return nothing
	}
	return d.remember()
}

var nothing = new(state)

// due reports whether the answer to an attempt that began then is to be noted. A process
// whose calls are so close together that they earn more than the stock that its budget
// starts with has something to remember.
func (d *Dependency) due(began time.Duration) bool {
	if !d.plan.listens {
		return false
	}
	since, due := d.answered.since(began)
	if d.plan.lazy && since < d.plan.quiet && d.state.Load() == nil && d.answered.latest() >= 0 {
		d.remember()
	}
	return due
}

// answeredFrom is when the latest attempt began that was answered, as far as was
// noted, under this policy or the current one.
func (d *Dependency) answeredFrom() time.Duration {
	return max(d.answered.latest(), d.current().answered.latest())
}

// remember is the state, allocated when it is first asked for.
func (d *Dependency) remember() *state {
	if s := d.state.Load(); s != nil {
		return s
	}
	s := d.newState(nil)
	if !d.state.CompareAndSwap(nil, s) {
		s = d.state.Load()
	}
	return s
}

// newState is a state without memories, but for a budget that is there already, if any.
func (d *Dependency) newState(pays budget.Budget) *state {
	s := &state{budget: pays}
	p := &d.plan.policy
	// The policy was validated, so nothing here can fail.
	switch {
	case pays != nil:
	case d.plan.newBudget != nil:
		s.budget = d.plan.newBudget()
	case !p.Budget.Unlimited:
		s.budget, _ = budget.New(p.Budget)
	}
	switch {
	case d.plan.breakers == nil:
	case d.plan.observer == nil:
		s.breaker = d.plan.breakers.New()
	default:
		s.breaker = d.plan.breakers.New(d.circuitChanged)
	}
	if p.Timeouts == TimeoutsWhenAnswered && s.budget != nil {
		s.timeouts, _ = budget.NewBucket(budget.Config{Ratio: TimeoutRatio, Stock: 1})
	}
	if d.plan.throttles != nil {
		s.throttle = d.plan.throttles.New()
	}
	if d.plan.hedges != nil {
		s.hedger = d.plan.hedges.New()
		s.alarms = &alarms{d: d, rings: never}
	}
	if p.Limit.Limit > 0 {
		s.limiter, _ = bulkhead.New(p.Limit)
	}
	return s
}

func (d *Dependency) circuitChanged(c breaker.Change) {
	d.plan.observer.Observe(context.Background(), Event{Kind: EventCircuitChanged, Dependency: d.id.name, Circuit: &c})
}
