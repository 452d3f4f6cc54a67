package config

import (
	"reflect"
	"slices"
	"sync"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/clients"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/preset"
)

// own are those of package preset, in the order in which messages list them.
var own = []ownPreset{
	{"internal-service", preset.InternalService},
	{"external-api", preset.ExternalAPI},
	{"background-worker", preset.BackgroundWorker},
	{"command-line", preset.CommandLine},
	{"edge", preset.Edge},
	{"per-key", preset.PerKey},
	{"llm", preset.LLM},
}

// Presets are the names that "preset" can have in a file. They are the seven of package preset, which
// are meant to begin with. In the program lull the clients of others follow that a policy can describe
// completely; they are for looking at what a team has today.
func Presets() []string {
	names := ownNames()
	for _, c := range clients.All() {
		if !c.Partial {
			names = append(names, c.Name)
		}
	}
	return names
}

type ownPreset struct {
	name   string
	policy func() lull.Policy
}

func ownNames() []string { return choice.Each(own, func(p ownPreset) string { return p.name }) }

type template struct {
	policy lull.Policy
	// whole: it is a client that exists. All its fields count, also those that are zero.
	whole bool
}

// PresetPolicy returns the policy of a name of [Presets].
func PresetPolicy(name string) (lull.Policy, bool) {
	if t := presetOf(name); t != nil {
		return t.policy, true
	}
	return lull.Policy{}, false
}

var templates = sync.OnceValue(func() map[string]*template {
	all := map[string]*template{}
	for _, c := range clients.All() {
		if !c.Partial {
			all[c.Name] = &template{c.Policy, true}
		}
	}
	for _, p := range own {
		all[p.name] = &template{policy: p.policy()}
	}
	return all
})

func readPreset(r *codec.Reader, n *tree.Node, path string) (string, template) {
	if !r.Sound(n, path) {
		return "", template{}
	}
	r.Places[path] = r.Place(n)
	if n.Scalar() {
		if t := presetOf(n.Text); t != nil {
			return n.Text, *t
		}
		if slices.ContainsFunc(clients.All(), func(c clients.Client) bool { return c.Name == n.Text }) {
			r.WrongAt(n, path, n.Quoted()+", which has a budget or a jitter that no policy can have", allowedPreset(clients.All()), "")
			return "", template{}
		}
	}
	// Reading continues with the suggestion, to find what else is wrong.
	near := choice.Nearest(n.Text, Presets())
	r.WrongAt(n, path, n.Quoted(), allowedPreset(clients.All()), near)
	if t := presetOf(near); t != nil {
		return near, *t
	}
	return near, template{}
}

func allowedPreset(others []clients.Client) string {
	names := ownNames()
	if len(others) > 0 {
		names = append(names, "a client that is all policy, such as go-retryablehttp")
	}
	return choice.List(names)
}

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
	// preset: it is that of the dependency itself. inherited are leaves that come from the defaults all the same.
	preset    bool
	whole     bool // the preset sets every leaf
	inherited map[string]bool
}

func (b base) fromDefaults(l leaf) bool { return !b.preset || b.inherited[l.path] }

// baseOf returns the base of a dependency with the preset own (nil: it names none) in a file with these defaults.
// setByDefaults reports whether the defaults set a leaf themselves, and not by their preset.
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
