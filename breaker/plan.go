package breaker

import (
	"math"
	"slices"

	"github.com/lullgo/lull/internal/audience"
	"github.com/lullgo/lull/internal/chance"
)

// A Plan is a Config made ready: any number of breakers can be made from one, and
// share what it holds. It is not changed by them and may be used concurrently.
type Plan struct {
	rules rules
}

// Prepare returns a plan, or an error if the configuration is wrong. The
// listeners hear of the changes of every breaker of the plan; nil ones are left
// out. See New for when and how they are called.
func Prepare(c Config, listeners ...func(Change)) (*Plan, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Plan{c.rules()}
	p.rules.listeners = withoutNil(listeners)
	return p, nil
}

// New returns a closed breaker. Its own listeners hear of its changes after those
// of the plan.
func (p *Plan) New(listeners ...func(Change)) *Breaker {
	b := new(Breaker)
	p.Init(b, listeners...)
	return b
}

// Init makes a zero Breaker, such as one that is a field of something, what New
// returns. It must not be called on a breaker that is in use.
func (p *Plan) Init(b *Breaker, listeners ...func(Change)) {
	if p.rules.off {
		return
	}
	b.rules = &p.rules
	b.random = chance.Middle
	b.changedAt = math.MinInt64
	if own := withoutNil(listeners); len(own) > 0 {
		a := audience.Of(slices.Concat(p.rules.listeners, own))
		b.audience = &a
	}
	b.word.Store(1<<stateBits | uint64(Closed))
}

// New returns a closed breaker, or what is wrong with the configuration.
// Listeners hear of each change of state, in order, from the goroutine that
// caused a change, and outside every lock. While one of them runs, the changes
// that other goroutines cause wait for it. They should be quick. A listener's
// panic is raised again in the caller of the method that delivered the change, after
// the other listeners have been called.
func New(c Config, listeners ...func(Change)) (*Breaker, error) {
	p, err := Prepare(c, listeners...)
	if err != nil {
		return nil, err
	}
	return p.New(), nil
}

func withoutNil(listeners []func(Change)) []func(Change) {
	if len(listeners) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(listeners), func(l func(Change)) bool { return l == nil })
}
