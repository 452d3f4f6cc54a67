package lullgrpc

import (
	"slices"
	"sync/atomic"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
)

// A target has a dependency for each rule, and the throttle that they share if a service config asks for
// one. Because of that throttle a client has no lull.Registry; what it remembers is bounded like one.
type target struct {
	name     string
	throttle *budget.GRPCThrottle
	deps     []atomic.Pointer[lull.Dependency] // by rule
}

func (o *options) newTarget(name string) *target {
	t := &target{name: name, deps: make([]atomic.Pointer[lull.Dependency], len(o.rules))}
	if o.throttle != nil {
		t.throttle, _ = budget.NewGRPCThrottle(*o.throttle) // validated by WithServiceConfig
	}
	return t
}

// dependency returns the target's dependency for the methods under r. It makes one if there is
// none.
func (t *target) dependency(o *options, r *rule) *lull.Dependency {
	at := &t.deps[r.index]
	if d := at.Load(); d != nil {
		return d
	}
	if d := t.newDependency(o, r); at.CompareAndSwap(nil, d) {
		return d
	}
	return at.Load()
}

func (t *target) newDependency(o *options, r *rule) *lull.Dependency {
	name := t.name + r.name
	if t.throttle == nil {
		return r.template.Clone(name)
	}
	shared := lull.WithBudget(func() budget.Budget { return t.throttle })
	// The policy was validated, so this cannot fail.
	d, _ := lull.NewDependency(name, r.policy, append(slices.Clip(o.wiring), shared)...)
	return d
}
