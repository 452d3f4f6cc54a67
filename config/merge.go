package config

import (
	"reflect"
	"sync"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/codec"
)

// A leaf is a field of a policy that has no fields itself.
type leaf struct {
	path  string // in a file: "budget.ratio"
	index []int
}

// policyLeaves are all the leaves, in the order of the fields.
var policyLeaves = sync.OnceValue(func() []leaf {
	var all []leaf
	var walk func(t reflect.Type, path string, index []int)
	walk = func(t reflect.Type, path string, index []int) {
		for _, m := range codec.Members(t) {
			at := append(index[:len(index):len(index)], m.Index...)
			if ft := t.FieldByIndex(m.Index).Type; ft.Kind() == reflect.Struct {
				walk(ft, codec.Field(path, m.Key), at)
			} else {
				all = append(all, leaf{codec.Field(path, m.Key), at})
			}
		}
	}
	walk(reflect.TypeFor[lull.Policy](), "", nil)
	return all
})

func (l leaf) of(p *lull.Policy) reflect.Value {
	return reflect.ValueOf(p).Elem().FieldByIndex(l.index)
}

// A base is the policy that a dependency begins with, before its own fields are set.
type base struct {
	policy lull.Policy
	// preset: it comes from the preset of the dependency itself. inherited are the leaves that come
	// from the defaults all the same.
	preset    bool
	whole     bool // the preset sets every leaf
	inherited map[string]bool
}

func (b base) fromDefaults(l leaf) bool { return !b.preset || b.inherited[l.path] }

// baseOf returns the base of a dependency with the preset own (nil: it names none) in a file with
// these defaults. setByDefaults reports whether the defaults set a leaf themselves, and not by their
// preset.
//
// The preset of the dependency replaces the preset of the defaults completely. A preset of package
// lull sets the fields that are not zero in it, and these override the fields of the defaults; the
// others remain as the defaults have them. A preset that is a client sets every field.
func baseOf(defaults lull.Policy, setByDefaults func(path string) bool, own *template) base {
	if own == nil {
		return base{policy: defaults}
	}
	b := base{policy: own.policy, preset: true, whole: own.whole, inherited: map[string]bool{}}
	if own.whole {
		return b
	}
	for _, l := range policyLeaves() {
		if v := l.of(&b.policy); v.IsZero() && setByDefaults(l.path) {
			v.Set(l.of(&defaults))
			b.inherited[l.path] = true
		}
	}
	return b
}
