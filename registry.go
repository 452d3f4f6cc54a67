package lull

import (
	"errors"
	"fmt"
	"sort"
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
// holds takes about NNN ns and allocates nothing.
type Registry struct {
	template *Dependency
	size     int

	clock atomic.Int64 // counts new keys: the age of an entry is measured in them
	mu    sync.RWMutex
	byKey map[string]*entry
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
	return &Registry{template: template, size: or(size, DefaultRegistrySize), byKey: make(map[string]*entry)}, nil
}

// Get is the dependency for key, made when there is none. The key is its name.
func (r *Registry) Get(key string) *Dependency {
	r.mu.RLock()
	e := r.byKey[key]
	r.mu.RUnlock()
	if e == nil {
		return r.add(key)
	}
	if now := r.clock.Load(); e.used.Load() != now {
		e.used.Store(now)
	}
	return e.d
}

// add makes room first: an eighth of the entries leave at once, so that a flood
// of new keys does not sort the whole registry for each of them.
func (r *Registry) add(key string) *Dependency {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.byKey[key]; e != nil {
		return e.d
	}
	if len(r.byKey) >= r.size {
		r.evict(max(r.size/8, 1))
	}
	e := &entry{d: r.template.Clone(key)}
	e.used.Store(r.clock.Add(1))
	r.byKey[key] = e
	return e.d
}

// evict removes the n entries that were not asked for the longest.
func (r *Registry) evict(n int) {
	type aged struct {
		key  string
		used int64
	}
	all := make([]aged, 0, len(r.byKey))
	for k, e := range r.byKey {
		all = append(all, aged{k, e.used.Load()})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].used < all[j].used })
	for _, a := range all[:min(n, len(all))] {
		delete(r.byKey, a.key)
	}
}

// Len is the number of dependencies kept.
func (r *Registry) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byKey)
}

// All calls f with every dependency kept, in no particular order, until f
// returns false.
func (r *Registry) All(f func(*Dependency) bool) {
	r.mu.RLock()
	all := make([]*Dependency, 0, len(r.byKey))
	for _, e := range r.byKey {
		all = append(all, e.d)
	}
	r.mu.RUnlock()
	for _, d := range all {
		if !f(d) {
			return
		}
	}
}
