package breaker

import (
	"math"
	"slices"

	"github.com/lullgo/lull/internal/chance"
)

// A Plan is a valid Config, prepared once for any number of breakers. It may be used
// concurrently.
type Plan struct {
	rules rules
}

// Prepare returns a plan, or the error of Validate. The listeners get the changes of every
// breaker of the plan; see New. Nil ones are left out.
func Prepare(c Config, listeners ...func(Change)) (*Plan, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Plan{c.rules()}
	p.rules.listeners = slices.Clone(listeners)
	return p, nil
}

// New returns a closed breaker. Its own listeners get its changes after those of the plan.
func (p *Plan) New(listeners ...func(Change)) *Breaker {
	b := new(Breaker)
	if p.rules.off {
		return b
	}
	b.rules = &p.rules
	b.random = chance.Middle
	b.changedAt = math.MinInt64
	if len(listeners) > 0 {
		b.audience = newAudience(slices.Concat(p.rules.listeners, listeners))
	}
	b.word.Store(1<<stateBits | uint64(Closed))
	return b
}

// New returns a closed breaker, or the error of Validate. Listeners get each change of
// state, in order, from the goroutine that caused one, and outside of all locks. One change
// is delivered at a time, so they should be quick. A panic of a listener is raised again in
// the method that delivered the change, after the other listeners were called.
func New(c Config, listeners ...func(Change)) (*Breaker, error) {
	p, err := Prepare(c, listeners...)
	if err != nil {
		return nil, err
	}
	return p.New(), nil
}
