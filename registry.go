package lull

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// DefaultRegistrySize is how many dependencies a Registry keeps if it is not
// told otherwise.
const DefaultRegistrySize = 1024

// A Registry keeps a dependency for each key (a host, a tenant, a queue), all
// under one policy. It is bounded: when it is full, the dependencies that were
// not asked for the longest leave, and with them what they remember; asked for
// again, they start afresh. Calls that are under way with one that leaves go on
// undisturbed. Its methods may be called concurrently; Get of a key that it
// holds takes about 10 ns, no lock, and no allocation.
type Registry struct {
	template *Dependency
	size     int

	clock atomic.Int64 // counts new keys: the age of an entry is measured in them
	// byKey is replaced, never written to, so that readers share no lock.
	byKey atomic.Pointer[map[string]*entry]
	mu    sync.Mutex              // held to replace it
	each  func(key string) Policy // of UpdateEach; nil: all have the template's. Guarded by mu
}

type entry struct {
	d    *Dependency
	used atomic.Int64 // the clock when it was last asked for
}

// NewRegistry returns a registry for at most size dependencies; zero means
// DefaultRegistrySize.
func NewRegistry(p Policy, size int, opts ...Option) (*Registry, error) {
	if size < 0 {
		return nil, fmt.Errorf("registry: size is %d: want a positive number of dependencies, or 0 for the default of %d", size, DefaultRegistrySize)
	}
	template, err := NewDependency("registry", p, opts...)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	r := &Registry{template: template, size: cmp.Or(size, DefaultRegistrySize)}
	r.byKey.Store(&map[string]*entry{})
	return r, nil
}

// Get is the dependency for key, made when there is none. The key is its name.
func (r *Registry) Get(key string) *Dependency {
	e := r.kept()[key]
	if e == nil {
		return r.add(key)
	}
	if now := r.clock.Load(); e.used.Load() != now {
		e.used.Store(now)
	}
	return e.d
}

// kept is what there is. It must not be written to.
func (r *Registry) kept() map[string]*entry {
	if r != nil {
		if m := r.byKey.Load(); m != nil {
			return *m
		}
	}
	panic("lull: a nil or zero Registry is used: make it with lull.NewRegistry, and look at its error")
}

// add makes a new map. When there is no room an eighth of the entries leave at
// once, so that a flood of new keys does not sort the registry for each of them.
func (r *Registry) add(key string) *Dependency {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.kept()
	if e := old[key]; e != nil {
		return e.d
	}
	e := &entry{d: r.template.Clone(key)}
	if r.each != nil {
		e.d.Update(r.each(key)) // or it stays as the template
	}
	e.used.Store(r.clock.Add(1))
	fresh := make(map[string]*entry, len(old)+1)
	maps.Copy(fresh, old)
	if len(fresh) >= r.size {
		evict(fresh, max(r.size/8, 1))
	}
	fresh[key] = e
	r.byKey.Store(&fresh)
	return e.d
}

// evict removes the n entries that were not asked for the longest.
func evict(from map[string]*entry, n int) {
	type aged struct {
		key  string
		used int64
	}
	all := make([]aged, 0, len(from))
	for k, e := range from {
		all = append(all, aged{k, e.used.Load()})
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Compare(a.used, b.used) })
	for _, a := range all[:min(n, len(all))] {
		delete(from, a.key)
	}
}

// Update changes the policy of all dependencies, those that are kept and those to come
// ([Dependency.Update]). A policy that does not validate changes nothing.
func (r *Registry) Update(p Policy) error {
	return r.UpdateEach(func(string) Policy { return p })
}

// UpdateEach changes the policy of each dependency to what f says for its key, of those
// that are kept and of those to come. F is called while other goroutines wait for new
// keys, and must not call the registry. What it says is asked for the empty key too,
// and for the keys kept, before anything is changed: a policy that does not validate then
// changes nothing. For a key to come it leaves what is said for the empty key.
func (r *Registry) UpdateEach(f func(key string) Policy) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	byKey := r.kept()
	policies := make(map[string]Policy, len(byKey))
	rest := f("")
	if err := rest.Validate(); err != nil {
		return err
	}
	for key := range byKey {
		p := f(key)
		if err := p.Validate(); err != nil {
			return &policyError{key, err}
		}
		policies[key] = p
	}
	if err := r.template.Update(rest); err != nil {
		return err
	}
	r.each = f
	for key, e := range byKey {
		if err := e.d.Update(policies[key]); err != nil {
			return err // cannot be: it was valid
		}
	}
	return nil
}

// Len is the number of dependencies kept.
func (r *Registry) Len() int { return len(r.kept()) }

// All calls f with every dependency kept, in no particular order, until f
// returns false.
func (r *Registry) All(f func(*Dependency) bool) {
	for _, e := range r.kept() {
		if !f(e.d) {
			return
		}
	}
}
