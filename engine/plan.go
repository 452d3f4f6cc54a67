package engine

import (
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/throttle"
)

// A Plan is a policy made ready. It never changes, and every State that was made from it shares
// it.
type Plan struct {
	policy      Policy // with defaults
	parts       Parts
	attempts    int // as Policy.allowed
	waits       *backoff.Plan
	rateLimited *backoff.Plan  // after KindRateLimited
	breakers    *breaker.Plan  // nil if Policy.Breaker.Off
	throttles   *throttle.Plan // nil if Policy.Throttle is off
	hedges      *hedge.Plan    // nil if Policy.Hedge is off

	// These follow from the policy.
	timed        bool          // the breaker counts slow calls
	limited      bool          // there is a concurrency limit
	mostWaiting  int32         // how many calls may wait for a retry at a time
	empty        bool          // there is nothing to remember but answers; without these (Stateless) every State has the memory fresh
	lazy         bool          // a State's own memory is made when a call first fails
	quietGap     time.Duration // lazy only: calls closer together than this make it, too (budget.Config.QuietGap)
	notesAnswers bool          // State.answered is kept
	fresh        *memory       // of a state that remembers nothing, and has no identity
	freeHints    bool          // a retry at the time that the server asked for may be free (hint.go)
}

// Parts replace parts of a policy by what cannot be data. A nil part is that of the policy.
type Parts struct {
	// Backoff replaces Policy.Backoff, except for waits after KindRateLimited and for the number
	// of attempts. It must be safe for concurrent use.
	Backoff backoff.Func
	// Budget replaces Policy.Budget. It is called once for each State that has something to
	// remember, and may return one shared budget.
	Budget func() budget.Budget
}

// NewPlan returns a plan for p. The error is that of Validate.
func NewPlan(p Policy, parts Parts) (*Plan, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	p = p.WithDefaults()
	pl := &Plan{
		policy:      p,
		parts:       parts,
		attempts:    p.allowed(),
		waits:       p.Backoff.Prepare(),
		rateLimited: p.rateLimited().Prepare(),
		timed:       p.Breaker.SlowRate > 0,
		limited:     p.Limit.InFlight > 0,
		mostWaiting: p.mostWaiting(),
	}
	if c := p.breakerConfig(); !c.Off {
		pl.breakers, _ = breaker.Prepare(c)
	}
	if p.Throttle.Mode != throttle.Off {
		pl.throttles, _ = throttle.Prepare(p.Throttle)
	}
	if p.Hedge.Attempts > 1 {
		pl.hedges, _ = hedge.Prepare(p.Hedge)
	}
	atOnce := pl.limited || parts.Budget != nil || pl.throttles != nil || pl.hedges != nil // the first call must be remembered
	pl.lazy = !atOnce && p.Budget.CanStartLate() && p.Breaker.CanStartLate()
	pl.quietGap = p.Budget.QuietGap()
	pl.empty = !atOnce && p.Budget.Unlimited && p.Breaker.Off
	pl.freeHints = parts.Budget == nil && p.Budget.Window == 0 && !p.Budget.Unlimited
	pl.notesAnswers = p.Timeouts == TimeoutsWhenAnswered && pl.attempts > 1 || !pl.empty
	pl.fresh = pl.blankMemory(nil)
	return pl, nil
}

func (p Policy) breakerConfig() breaker.Config {
	c := p.Breaker
	if !c.Off && c.ProbeTimeout == 0 && p.Deadline > 0 {
		c.ProbeTimeout = p.Deadline // a probe is a call, and may take as long
	}
	return c
}

// Policy returns the plan's policy, with the defaults of its own fields filled in.
func (p *Plan) Policy() Policy { return p.policy }

// AttemptTimeout bounds each attempt; NoTimeout if only the call's deadline does.
func (p *Plan) AttemptTimeout() time.Duration { return p.policy.AttemptTimeout }

// Attempts returns how many attempts a call may make.
func (p *Plan) Attempts() int { return p.attempts }

// Hedges reports whether attempts of one call may run beside one another.
func (p *Plan) Hedges() bool { return p.hedges != nil }

// Stateless reports that calls leave no trace, so that all states of the plan behave alike: there
// is neither budget nor breaker nor limit, and timeouts do not depend on other calls.
func (p *Plan) Stateless() bool { return p.empty && !p.notesAnswers }
