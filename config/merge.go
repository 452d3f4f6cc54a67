package config

import (
	"reflect"
	"sync"

	"github.com/lullgo/lull"
)

// A leaf is a field of a policy that has no fields itself.
type leaf struct {
	path  string // in a file: "budget.ratio"
	index []int
}

// policyLeaves are all there are, in the order of the fields.
var policyLeaves = sync.OnceValue(func() []leaf {
	var all []leaf
	var walk func(t reflect.Type, path string, index []int)
	walk = func(t reflect.Type, path string, index []int) {
		for _, m := range members(t) {
			at := append(index[:len(index):len(index)], m.index...)
			if ft := t.FieldByIndex(m.index).Type; ft.Kind() == reflect.Struct {
				walk(ft, field(path, m.key), at)
			} else {
				all = append(all, leaf{field(path, m.key), at})
			}
		}
	}
	walk(policyType, "", nil)
	return all
})

func (l leaf) of(p *lull.Policy) reflect.Value {
	return reflect.ValueOf(p).Elem().FieldByIndex(l.index)
}

// A base is what a dependency has before its own fields count.
type base struct {
	policy lull.Policy
	// preset is the dependency's own, where it has one; inherited are the leaves that
	// are nonetheless the defaults'.
	preset    bool
	whole     bool // and it speaks of everything
	inherited map[string]bool
}

// fromDefaults: l is as the defaults have it.
func (b base) fromDefaults(l leaf) bool { return !b.preset || b.inherited[l.path] }

// baseOf is the base of a dependency that names the preset own (nil: it names none),
// in a file whose defaults are these. said tells which leaves the defaults say
// themselves, rather than their preset.
//
// The dependency's preset takes the place of the defaults' preset, of which nothing is
// left. It stands above the fields of the defaults where it speaks of them, which a
// preset of package lull does in the fields that are not zero. What it leaves open is
// as the defaults say. A preset that is a client speaks of everything.
func baseOf(defaults lull.Policy, said func(path string) bool, own *template) base {
	if own == nil {
		return base{policy: defaults}
	}
	b := base{policy: own.policy, preset: true, whole: own.whole, inherited: map[string]bool{}}
	if own.whole {
		return b
	}
	for _, l := range policyLeaves() {
		if v := l.of(&b.policy); v.IsZero() && said(l.path) {
			v.Set(l.of(&defaults))
			b.inherited[l.path] = true
		}
	}
	return b
}
