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
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/hugepage"
	"github.com/lullgo/lull/internal/realtime"
	"github.com/lullgo/lull/throttle"
)

// A Dependency is one thing that a process calls, and what it remembers of it: the
// retry budget, the circuit breaker, the calls in flight. Share one among all
// goroutines that call that thing; its methods may be called concurrently.
//
// What a Dependency remembers is allocated when there is something to remember.
type Dependency struct {
	name   string
	wiring *wiring // shared with every clone
	state  engine.State
	clock  atomic.Pointer[clockState] // nil until it is needed
}

// clockState is kept by drivers on the real clock for a dependency.
type clockState struct {
	alarms alarms // of hedged calls
	layers layersAbove
	// failure is the last with which a call ended while the breaker was not closed, or which
	// opened it.
	failure atomic.Pointer[error]
}

// clockState returns d's clockState, and makes it when it is first needed.
func (d *Dependency) clockState() *clockState {
	if e := d.clock.Load(); e != nil {
		return e
	}
	d.clock.CompareAndSwap(nil, &clockState{alarms: alarms{d: d, rings: engine.Never}})
	return d.clock.Load()
}

// made panics if d is nil or zero.
func (d *Dependency) made() {
	if d == nil || d.wiring == nil {
		panic("lull: a nil or zero Dependency is used: make it with lull.NewDependency, and look at its error")
	}
}

// wiring holds options that cannot be data in a policy. It is written once, then only read.
type wiring struct {
	parts         engine.Parts
	classify      Classifier
	classifiedBy  string // the option that teaches the driver, of ClassifiedBy; empty: WithClassifier
	hasClassifier bool   // WithClassifier was given
	observer      Observer
	rand          func() uint64
	timing        bool // WithTiming
	realtime.Clock
}

// An Option wires a dependency: what cannot be data in a Policy.
type Option func(*wiring)

// WithClassifier makes classify decide what the operation's errors mean. Marks
// ([Transient], [RetryAfter], ...) add to that, and an error of another call of lull is
// final, without asking it ([VerdictOf]). To add to what lull knows, fall back on
// [Classify].
func WithClassifier(classify Classifier) Option {
	return func(w *wiring) {
		if classify != nil {
			w.classify, w.hasClassifier = classify, true
		}
	}
}

// ClassifiedBy is for drivers that classify the failures of their attempts themselves, so
// that WithClassifier would have no effect: it is refused then. Option is the name of the
// driver's own, which errors name instead.
func ClassifiedBy(option string) Option { return func(w *wiring) { w.classifiedBy = option } }

// WithObserver reports every event to o. It may be given several times.
func WithObserver(o Observer) Option {
	return func(w *wiring) {
		if o == nil {
			return
		}
		switch have := w.observer.(type) {
		case nil:
			w.observer = o
		case observers:
			w.observer = append(have[:len(have):len(have)], o)
		default:
			w.observer = observers{have, o}
		}
	}
}

// WithBackoff replaces Policy.Backoff by a function, which must be safe for
// concurrent use. Waits after a rate-limited failure are still those of the policy,
// and so is the number of attempts. Policy.WorstCase does not know of it.
func WithBackoff(f backoff.Func) Option {
	return func(w *wiring) {
		if f != nil {
			w.parts.Backoff = f
		}
	}
}

// WithBudget replaces Policy.Budget by another kind, such as a gRPC throttle.
// The function is called once for each Dependency that is made with the option,
// at its first call; let it return one shared budget to have several
// dependencies pay from it.
func WithBudget(f func() budget.Budget) Option {
	return func(w *wiring) {
		if f != nil {
			w.parts.Budget = f
		}
	}
}

// WithTiming times the end of every call, so that Event.Elapsed and Result.Elapsed
// are set for all of them: also if the first attempt succeeds, which costs about 25 ns.
func WithTiming() Option { return func(w *wiring) { w.timing = true } }

// WithRand replaces the source of randomness that real drivers hand to the
// engine, math/rand/v2's Uint64. It must be safe for concurrent use.
func WithRand(f func() uint64) Option {
	return func(w *wiring) {
		if f != nil {
			w.rand = f
		}
	}
}

// NewDependency returns a dependency that is called under policy p. The name
// stands in errors and events. A policy that does not validate is refused.
func NewDependency(name string, p Policy, opts ...Option) (*Dependency, error) {
	if name == "" {
		return nil, errors.New("a dependency needs a name, for errors and events")
	}
	w := &wiring{classify: Classify, rand: rand.Uint64}
	w.Start()
	for _, o := range opts {
		if o != nil {
			o(w)
		}
	}
	plan, err := engine.NewPlan(p, w.parts)
	if err == nil && w.classifiedBy != "" && w.hasClassifier {
		err = errors.New("lull.WithClassifier has no effect here: use " + w.classifiedBy)
	}
	if err != nil {
		return nil, &policyError{name, err}
	}
	return w.dependency(name, plan), nil
}

func (w *wiring) dependency(name string, plan *engine.Plan) *Dependency {
	d := &Dependency{name: name, wiring: w}
	plan.Init(&d.state, d.listener())
	return d
}

// policyError adds the name of the dependency whose policy is wrong.
type policyError struct {
	name string
	err  error
}

func (e *policyError) Error() string { return "policy of " + e.name + ": " + e.err.Error() }
func (e *policyError) Unwrap() error { return e.err }

// Clone returns a dependency under the same policy and wiring that remembers
// nothing yet. It is cheap: policy and wiring are shared.
func (d *Dependency) Clone(name string) *Dependency {
	plan := d.Plan()
	return d.wiring.dependency(name, plan)
}

// Fleet returns n states under d's policy, in one piece of memory: one for each process of
// a simulated fleet. Changes of their breakers are events of d. They cannot be updated.
func (d *Dependency) Fleet(n int) []engine.State {
	fleet := make([]engine.State, n)
	hugepage.Advise(fleet)
	d.Plan().InitFleet(fleet, d.listener())
	return fleet
}

// State returns the state of d, for drivers with a clock of their own.
func (d *Dependency) State() *engine.State {
	d.made()
	return &d.state
}

// Plan is the policy in force, made ready.
func (d *Dependency) Plan() *engine.Plan { return d.State().Current().Plan() }

// Update changes the policy of d for the calls that start from then on. Calls under way end
// under the policy that they began with. D keeps what it remembers ([engine.State.Update]).
// Values that Breaker, Budget and the like have returned before may belong to
// the old policy: ask again.
//
// Options stay as they are; of a dependency with WithBudget, the budget. A policy that does
// not validate is refused, and changes nothing. Update may be called concurrently with
// everything else.
func (d *Dependency) Update(p Policy) error {
	if err := d.State().Update(d.Now(), p); err != nil {
		return &policyError{d.name, err}
	}
	return nil
}

// Name is the name that the dependency was made with.
func (d *Dependency) Name() string {
	d.made()
	return d.name
}

// Policy is the policy in force, with the defaults of its own fields filled in.
func (d *Dependency) Policy() Policy { return d.Plan().Policy() }

// Rand is the dependency's source of randomness, which drivers hand to the engine: that of
// WithRand, or math/rand/v2's Uint64.
func (d *Dependency) Rand() func() uint64 { return d.wiring.rand }

// Now is the time on the clock that real drivers count in: since the dependency
// (or the one it was cloned from) was made.
func (d *Dependency) Now() time.Duration {
	d.made()
	return d.wiring.Now()
}

// Breaker is the dependency's circuit breaker, for looking at it and for forcing
// it open or closed; nil if Policy.Breaker.Off.
func (d *Dependency) Breaker() *breaker.Breaker { return d.State().Breaker() }

// Budget is the dependency's retry budget; nil if Policy.Budget.Unlimited.
func (d *Dependency) Budget() budget.Budget { return d.State().Budget() }

// Limiter is the dependency's concurrency limit; nil if there is none.
func (d *Dependency) Limiter() *bulkhead.Limiter { return d.State().Limiter() }

// Throttle is the dependency's throttle; nil if Policy.Throttle is off.
func (d *Dependency) Throttle() *throttle.Throttle { return d.State().Throttle() }

// Hedger decides when attempts run beside one another; nil if Policy.Hedge
// is off.
func (d *Dependency) Hedger() *hedge.Hedger { return d.State().Hedger() }

// Hedges reports whether attempts of one call to the dependency may run beside one
// another.
func (d *Dependency) Hedges() bool { return d.Plan().Hedges() }

// listener receives the breaker's changes; nil if nobody observes d.
func (d *Dependency) listener() func(breaker.Change) {
	if d.wiring.observer == nil {
		return nil
	}
	return d.circuitChanged
}

func (d *Dependency) circuitChanged(c breaker.Change) {
	d.wiring.observer.Observe(context.Background(), Event{Kind: event.CircuitChanged, Dependency: d.name, Circuit: &c})
}
