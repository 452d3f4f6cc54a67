package config

import (
	"fmt"
	"strings"

	"github.com/lullgo/lull"
)

// An Origin says where the value of a field comes from.
type Origin uint8

const (
	// Unset: no one says it; it is zero, and means what the field says.
	Unset Origin = iota
	// Written: it stands where it belongs.
	Written
	// FromPreset: of the preset that the dependency names, or, for a path below
	// "defaults", the defaults.
	FromPreset
	// FromDefaults: a field of the defaults.
	FromDefaults
	// FromDefaultsPreset: of the preset that the defaults name.
	FromDefaultsPreset
)

var originNames = [...]string{"unset", "written", "from the preset", "from defaults", "from the preset of defaults"}

// String is the origin in words: "from defaults".
func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return fmt.Sprintf("origin(%d)", uint8(o))
}

// filePlaces is where the things are that a file says.
type filePlaces struct {
	file string
	// at is by path: "dependencies.api.budget.ratio".
	at map[string]Position
	// bases are by the name of the dependency; that of the defaults is "".
	bases map[string]origins
}

// origins are those of what a dependency does not say itself.
type origins struct {
	base   base
	preset Position // of the base's preset, or of the defaults'
	named  bool     // there is such a preset
}

// Position is where the file says what is at path: "dependencies.api.deadline",
// "defaults.budget.ratio", "services.shop.calls.0". What it does not say there is where
// its value comes from: the field of the defaults, or the line that names the preset, or
// else the nearest that it belongs to. A mapping or a list is where its key stands.
// Dependencies under "policies", and the one of a file that holds nothing else, are
// below "dependencies", too. Elements of lists are by number, from 0.
func (f *PolicyFile) Position(path string) Position {
	p, _ := f.find(path)
	return p
}

// Origin says where the value of the policy's field at path comes from.
func (f *PolicyFile) Origin(path string) Origin {
	_, o := f.find(path)
	return o
}

func (f *PolicyFile) find(path string) (Position, Origin) {
	if f.places == nil {
		return Position{}, Unset
	}
	if at, ok := f.places.at[path]; ok {
		return at, Written
	}
	if name, rest, ok := f.owner(path); ok {
		if at, o, ok := f.places.origin(name, rest); ok {
			return at, o
		}
	}
	for path != "" {
		path = parent(path)
		if at, ok := f.places.at[path]; ok {
			return at, Unset
		}
	}
	return Position{File: f.places.file, Line: 1, Column: 1}, Unset
}

// owner is the dependency whose policy the field at path belongs to, "" for the
// defaults. Names may have dots in them.
func (f *PolicyFile) owner(path string) (name, rest string, ok bool) {
	if rest, ok := strings.CutPrefix(path, "defaults."); ok {
		return "", rest, true
	}
	after, ok := strings.CutPrefix(path, "dependencies.")
	if !ok {
		return "", "", false
	}
	for i := len(after) - 1; i > 0; i-- {
		if after[i] != '.' {
			continue
		}
		if _, ok := f.places.bases[after[:i]]; ok {
			return after[:i], after[i+1:], true
		}
	}
	return "", "", false
}

// origin is where the field rest of the policy of name, which does not say it, has its
// value from. A field with fields has the origin of the first of them that has one.
func (p *filePlaces) origin(name, rest string) (Position, Origin, bool) {
	o := p.bases[name]
	for _, l := range policyLeaves() {
		if !within(l.path, rest) {
			continue
		}
		at, said := p.at["defaults."+l.path]
		set := !l.of(&o.base.policy).IsZero()
		switch {
		case name != "" && said && o.base.fromDefaults(l):
			return at, FromDefaults, true
		case o.named && set && (o.base.preset || name == ""):
			return o.preset, FromPreset, true
		case o.named && set:
			return o.preset, FromDefaultsPreset, true
		}
	}
	return Position{}, Unset, false
}

// presetOf is the template that is called so; nil for no name.
func presetOf(name string) *template {
	if name == "" {
		return nil
	}
	t, _ := findTemplate(name)
	return &t
}

// policyOf is the policy that a preset's name stands for, zero for no name.
func policyOf(name string) lull.Policy {
	if t := presetOf(name); t != nil {
		return t.policy
	}
	return lull.Policy{}
}
