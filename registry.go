package lull

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/lullgo/lull/internal/recent"
)

const defaultSize = 1024

// A Registry keeps a dependency for each key (a host, a tenant, a queue), all under one policy.
// When it is full, the dependencies that were not used for the longest leave, with what they
// remember; a key that comes again gets a new one. Calls under way with one that leaves continue.
// Its methods may be called concurrently. Get of a key that it holds takes 5 to 15 ns, no lock,
// and no allocation, of a new key about a microsecond.
type Registry struct {
	template *Dependency
	byKey    *recent.Cache[*Dependency]
	each     atomic.Pointer[func(key string) Policy] // of UpdateEach; nil: all have the template's
}

// NewRegistry returns a registry for at most size dependencies; zero means 1024.
func NewRegistry(p Policy, size int, opts ...Option) (*Registry, error) {
	if size < 0 {
		return nil, fmt.Errorf("registry: size is %d: want a positive number of dependencies, or 0 for the default of %d", size, defaultSize)
	}
	template, err := NewDependency("registry", p, opts...)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	r := &Registry{template: template}
	r.byKey = recent.New(cmp.Or(size, defaultSize), r.add)
	return r, nil
}

// Get returns the dependency for key, and makes it if there is none. The key is its name.
func (r *Registry) Get(key string) *Dependency { return r.kept().Get(key) }

func (r *Registry) kept() *recent.Cache[*Dependency] {
	if r == nil || r.byKey == nil {
		panic("lull: a nil or zero Registry is used: make it with lull.NewRegistry, and look at its error")
	}
	return r.byKey
}

func (r *Registry) add(key string) *Dependency {
	d := r.template.Clone(key)
	if each := r.each.Load(); each != nil {
		d.Update((*each)(key)) // or it stays as the template
	}
	return d
}

// Update changes the policy of all dependencies, kept or still to come ([Dependency.Update]). A
// policy that does not validate changes nothing.
func (r *Registry) Update(p Policy) error {
	return r.UpdateEach(func(string) Policy { return p })
}

// UpdateEach changes the policy of each dependency, kept or still to come, to what f returns for
// its key. f is first called for the empty key and for the keys that are kept: a policy that does
// not validate changes nothing. A key that comes later, and for which f returns such a policy,
// gets the policy of the empty key. f may be called concurrently, and may call the registry.
func (r *Registry) UpdateEach(f func(key string) Policy) (err error) {
	kept, rest := r.kept(), f("")
	if err := rest.Validate(); err != nil {
		return err
	}
	policies := make(map[string]Policy, r.Len())
	for key := range kept.All {
		p := f(key)
		if err := p.Validate(); err != nil {
			return &policyError{key, err}
		}
		policies[key] = p
	}
	var came []*Dependency // since f was asked
	kept.Freeze(func() {
		if err = r.template.Update(rest); err != nil {
			return
		}
		r.each.Store(&f)
		for key, d := range kept.All {
			if p, ok := policies[key]; ok {
				d.Update(p) // it is valid
			} else {
				came = append(came, d)
			}
		}
	})
	for _, d := range came {
		p := f(d.Name())
		kept.Freeze(func() {
			if r.each.Load() == &f && d.Update(p) != nil {
				d.Update(rest)
			}
		})
	}
	return err
}

// Len returns how many dependencies are kept.
func (r *Registry) Len() int { return r.kept().Len() }

// All calls f with every dependency kept, in any order, until f returns false.
func (r *Registry) All(f func(*Dependency) bool) {
	for _, d := range r.kept().All {
		if !f(d) {
			return
		}
	}
}
