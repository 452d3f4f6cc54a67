package lullgrpc

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
)

// targets keeps a dependency for each target and rule, and the throttle that a target's
// dependencies share if a service config asks for one. It is bounded like a lull.Registry. It is
// not a Registry because of that throttle.
type targets struct {
	o      *options
	clock  atomic.Int64 // counts new targets; ages are measured in it
	byName atomic.Pointer[map[string]*target]
	mu     sync.Mutex // held to replace byName
}

type target struct {
	name     string
	used     atomic.Int64 // the clock at the last use
	throttle *budget.GRPCThrottle
	deps     []atomic.Pointer[lull.Dependency] // by rule
}

func (ts *targets) init(o *options) {
	ts.o = o
	ts.byName.Store(&map[string]*target{})
}

func (ts *targets) get(name string) *target {
	t := (*ts.byName.Load())[name]
	if t == nil {
		return ts.add(name)
	}
	if now := ts.clock.Load(); t.used.Load() != now {
		t.used.Store(now)
	}
	return t
}

// add makes a new map. If it is full, an eighth of the targets is removed at once, so that a flood
// of new targets does not sort them for each.
func (ts *targets) add(name string) *target {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	old := *ts.byName.Load()
	if t := old[name]; t != nil {
		return t
	}
	t := &target{name: name, deps: make([]atomic.Pointer[lull.Dependency], len(ts.o.rules))}
	if ts.o.throttle != nil {
		t.throttle, _ = budget.NewGRPCThrottle(*ts.o.throttle) // validated by WithServiceConfig
	}
	t.used.Store(ts.clock.Add(1))
	fresh := make(map[string]*target, len(old)+1)
	maps.Copy(fresh, old)
	if len(fresh) >= ts.o.size {
		evict(fresh, max(ts.o.size/8, 1))
	}
	fresh[name] = t
	ts.byName.Store(&fresh)
	return t
}

// evict removes the n targets that were not used for the longest.
func evict(from map[string]*target, n int) {
	all := slices.Collect(maps.Values(from))
	slices.SortFunc(all, func(a, b *target) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	for _, t := range all[:min(n, len(all))] {
		delete(from, t.name)
	}
}

func (ts *targets) all(yield func(*lull.Dependency) bool) {
	for _, t := range *ts.byName.Load() {
		for i := range t.deps {
			if d := t.deps[i].Load(); d != nil && !yield(d) {
				return
			}
		}
	}
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
