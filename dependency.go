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

// A Dependency is one thing that a process calls, and what it remembers of it: the retry budget,
// the circuit breaker, the calls in flight. Share one among all goroutines that call that thing;
// its methods may be called concurrently. Its memory is allocated when there is something to
// remember.
type Dependency struct {
	name   string
	wiring *wiring // shared with every clone
	state  engine.State
	clock  atomic.Pointer[clockState] // nil until it is needed
}

// clockState is what drivers on the real clock keep of a dependency.
type clockState struct {
	alarms alarms // of hedged calls
	layers layersAbove
	// failure is the last failure of a call that ended while the breaker was not closed, or
	// opened it.
	failure atomic.Pointer[error]
}

func (d *Dependency) clockState() *clockState {
	if e := d.clock.Load(); e != nil {
		return e
	}
	made := new(clockState)
	made.alarms.init(d)
	d.clock.CompareAndSwap(nil, made)
	return d.clock.Load()
}

// made panics if d is nil or zero.
func (d *Dependency) made() {
	if d == nil || d.wiring == nil {
		panic("lull: a nil or zero Dependency is used: make it with lull.NewDependency, and look at its error")
	}
}

// wiring holds options that cannot be data in a policy. It never changes.
type wiring struct {
	parts         engine.Parts
	classify      Classifier
	classifiedBy  string // the argument of ClassifiedBy; empty: WithClassifier
	hasClassifier bool   // WithClassifier was given
	observer      event.Observer
	rand          func() uint64
	timing        bool // WithTiming
	realtime.Clock
}

// An Option configures what cannot be data in a Policy.
type Option func(*wiring)

// WithClassifier makes classify decide what the operation's errors mean ([VerdictOf]). To add to
// what lull knows, call [Classify] in it.
func WithClassifier(classify Classifier) Option {
	return func(w *wiring) {
		if classify != nil {
			w.classify, w.hasClassifier = classify, true
		}
	}
}

// ClassifiedBy is for drivers that classify the failures of their attempts themselves:
// WithClassifier is refused then, since it would have no effect. option is the name of the
// driver's own, which errors name instead.
func ClassifiedBy(option string) Option { return func(w *wiring) { w.classifiedBy = option } }

// WithObserver reports every event to o. It may be given several times.
func WithObserver(o event.Observer) Option {
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

// WithBackoff replaces Policy.Backoff by a function, which must be safe for concurrent use. Waits
// after a rate-limited failure and the number of attempts stay those of the policy.
// Policy.WorstCase does not know it.
func WithBackoff(f backoff.Func) Option {
	return func(w *wiring) {
		if f != nil {
			w.parts.Backoff = f
		}
	}
}

// WithBudget replaces Policy.Budget by another kind. The function is called once for each
// Dependency that is made with the option, at its first call; it may return one shared budget for
// several dependencies.
func WithBudget(f func() budget.Budget) Option {
	return func(w *wiring) {
		if f != nil {
			w.parts.Budget = f
		}
	}
}

// WithTiming times the end of every call, so that Event.Elapsed and Result.Elapsed are also set
// if the first attempt succeeds. This costs about 25 ns.
func WithTiming() Option { return func(w *wiring) { w.timing = true } }

// WithRand replaces the source of randomness, math/rand/v2's Uint64. It must be safe for
// concurrent use.
func WithRand(f func() uint64) Option {
	return func(w *wiring) {
		if f != nil {
			w.rand = f
		}
	}
}

// NewDependency returns a dependency that is called under policy p. The name stands in errors and
// events, and must not be empty. A policy that does not validate is refused.
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

// policyError adds the name of the dependency to the mistakes of its policy.
type policyError struct {
	name string
	err  error
}

func (e *policyError) Error() string { return "policy of " + e.name + ": " + e.err.Error() }
func (e *policyError) Unwrap() error { return e.err }

// Clone returns a dependency with the same policy and options that remembers nothing yet. It
// shares both, so it is cheap.
func (d *Dependency) Clone(name string) *Dependency {
	plan := d.Plan()
	return d.wiring.dependency(name, plan)
}

// Fleet returns n states under d's policy, in one piece of memory: one for each process of a
// simulated fleet. Changes of their breakers are events of d. They cannot be updated.
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

// Plan returns the policy in force, made ready.
func (d *Dependency) Plan() *engine.Plan { return d.State().Current().Plan() }

// Update changes the policy of d for the calls that start from then on ([engine.State.Update]).
// Options stay as they are; WithBudget keeps its budget. What Breaker, Budget and the like have
// returned may belong to the old policy: ask again. A policy that does not validate is refused,
// and changes nothing. Update may be called concurrently with everything else.
func (d *Dependency) Update(p Policy) error {
	if err := d.State().Update(d.Now(), p); err != nil {
		return &policyError{d.name, err}
	}
	return nil
}

// Name returns the name that the dependency was made with.
func (d *Dependency) Name() string {
	d.made()
	return d.name
}

// Policy returns the policy in force, with the defaults of its own fields filled in.
func (d *Dependency) Policy() Policy { return d.Plan().Policy() }

// Rand returns the dependency's source of randomness, for drivers ([WithRand]).
func (d *Dependency) Rand() func() uint64 { return d.wiring.rand }

// Now returns the time on the clock of d: since it (or the dependency it was cloned from) was
// made.
func (d *Dependency) Now() time.Duration {
	d.made()
	return d.wiring.Now()
}

// Breaker returns the circuit breaker, to read it or to force it open or closed; nil if
// Policy.Breaker.Off.
func (d *Dependency) Breaker() *breaker.Breaker { return d.State().Breaker() }

// Budget returns the retry budget; nil if Policy.Budget.Unlimited.
func (d *Dependency) Budget() budget.Budget { return d.State().Budget() }

// Limiter returns the concurrency limit; nil if there is none.
func (d *Dependency) Limiter() *bulkhead.Limiter { return d.State().Limiter() }

// Throttle returns the throttle; nil if Policy.Throttle is off.
func (d *Dependency) Throttle() *throttle.Throttle { return d.State().Throttle() }

// Hedger returns what decides about hedges; nil if Policy.Hedge is off.
func (d *Dependency) Hedger() *hedge.Hedger { return d.State().Hedger() }

// Hedges reports whether attempts of one call may run beside one another.
func (d *Dependency) Hedges() bool { return d.Plan().Hedges() }

// listener returns the receiver of the breaker's changes; nil if nobody observes d.
func (d *Dependency) listener() func(breaker.Change) {
	if d.wiring.observer == nil {
		return nil
	}
	return d.circuitChanged
}

func (d *Dependency) circuitChanged(c breaker.Change) {
	d.wiring.observer.Observe(context.Background(), Event{Kind: event.CircuitChanged, Dependency: d.name, Circuit: &c})
}
