package config

import (
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
)

// An Origin is where the value of a field comes from.
type Origin uint8

const (
	// Unset: nothing sets the field. It is zero, with the meaning that the field gives to zero.
	Unset Origin = iota
	// Written: the field itself is in the file.
	Written
	// FromPreset: from the preset that the dependency names or, for a path below "defaults", that
	// the defaults name.
	FromPreset
	// FromDefaults: from a field of the defaults.
	FromDefaults
	// FromDefaultsPreset: from the preset that the defaults name.
	FromDefaultsPreset
)

var originNames = [...]string{"unset", "written", "from the preset", "from defaults", "from the preset of defaults"}

// String returns the origin in words: "from defaults".
func (o Origin) String() string { return choice.Name("origin", originNames[:], o) }

type filePlaces struct {
	file string
	// at is by path: "dependencies.api.budget.ratio".
	at map[string]Position
	// bases are by dependency; that of the defaults has the name "".
	bases map[string]origins
}

// origins are where a dependency has the fields from that it does not set itself.
type origins struct {
	base   base
	preset Position // of the base's preset, or of the defaults'
	named  bool     // there is such a preset
}

// Position returns the place of the field at path: "dependencies.api.deadline",
// "defaults.budget.ratio", "services.shop.calls.0". If the file does not have the field, it is the
// place where its value comes from: the field of the defaults, the line that names the preset, or
// else the nearest thing that the field belongs to. For a mapping or a list it is the place of its
// key. The dependency of a file that holds nothing else has paths below "dependencies", too. Elements of lists have
// numbers, from 0.
func (f *PolicyFile) Position(path string) Position {
	p, _ := f.find(path)
	return p
}

// Origin returns where the value of the policy field at path comes from.
func (f *PolicyFile) Origin(path string) Origin { _, o := f.find(path); return o }

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
		path = codec.Parent(path)
		if at, ok := f.places.at[path]; ok {
			return at, Unset
		}
	}
	return Position{File: f.places.file, Line: 1, Column: 1}, Unset
}

// owner returns the dependency to which the policy field at path belongs, "" for the defaults, and
// the rest of the path. Names may have dots in them.
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

// origin returns where the field rest of the policy of name has its value from, if the file does
// not have the field. A field with fields has the origin of the first of them that has one.
func (p *filePlaces) origin(name, rest string) (Position, Origin, bool) {
	o := p.bases[name]
	for _, l := range policyLeaves() {
		if !codec.Within(l.path, rest) {
			continue
		}
		at, written := p.at["defaults."+l.path]
		set := !l.of(&o.base.policy).IsZero()
		switch {
		case name != "" && written && o.base.fromDefaults(l):
			return at, FromDefaults, true
		case o.named && set && (o.base.preset || name == ""):
			return o.preset, FromPreset, true
		case o.named && set:
			return o.preset, FromDefaultsPreset, true
		}
	}
	return Position{}, Unset, false
}

func presetOf(name string) *template { return templates()[name] }

func policyOf(name string) lull.Policy {
	if t := presetOf(name); t != nil {
		return t.policy
	}
	return lull.Policy{}
}

// A Position is a place in a file, with the fields File, Line and Column. Lines and columns
// count from 1, columns in characters. The zero Position is none: of a PolicyFile that was made
// in code. Its String is "file:3:15", and "-" for none.
type Position = tree.Position

// A Mistake is one thing that is wrong in a file or in an assignment (see [SetPolicy]). It has a [Position], which is none in an
// assignment. Its Path is the field, such as "services.0.queue.limit", and empty if the text is no YAML. Found is what the file has,
// as a phrase that follows "is": "unknown", "a list", or the value in quotes. Allowed is what the file may have, a noun phrase, and
// Suggestion what was probably meant, if anything is similar. Its Error has all of it, in the form that editors turn into a link:
//
//	retry.yaml:3:15: dependencies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m; did you mean 3s?
type Mistake = tree.Mistake

// Mistakes is a list of everything that is wrong with a file, in the order of its lines. It is an
// error, with a line for each; errors.As finds it, and each [Mistake] in it.
type Mistakes = tree.Mistakes
