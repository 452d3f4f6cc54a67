package config

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/lullgo/lull/internal/choice"
	"go.yaml.in/yaml/v4"
)

// decode sets v, which is at path, to what n says.
func (r *reader) decode(n *yaml.Node, v reflect.Value, path string, f form) {
	n, done := r.resolve(n, path)
	defer done()
	if n == nil || r.stop() || !r.untagged(n, path) {
		return
	}
	if _, ok := r.places[path]; !ok {
		r.places[path] = r.at(n)
	}
	switch {
	case v.Type() == distributionType:
		r.distribution(n, v, path)
	case v.Type() == edgeType && n.Kind == yaml.ScalarNode && !isNull(n):
		v.FieldByName("Dependency").SetString(n.Value)
	case v.Kind() == reflect.Struct && n.Kind == yaml.ScalarNode && !isNull(n):
		r.wrong(n, path, kindOf(n), mappingOf(v.Type()), inBraces(v.Type(), n.Value))
	case v.Kind() == reflect.Struct:
		if entries, ok := r.entries(n, path, mappingOf(v.Type())); ok {
			r.fields(entries, v, path)
		}
	case v.Kind() == reflect.Slice:
		r.list(n, v, path)
	case n.Kind != yaml.ScalarNode || isNull(n):
		allowed, _ := scalar("?", reflect.New(v.Type()).Elem(), f)
		if v.Kind() == reflect.String {
			allowed = "a text"
		}
		r.wrong(n, path, kindOf(n), allowed, "")
	default:
		switch allowed, suggestion := scalar(n.Value, v, f); {
		case allowed == "":
		case f == share && strings.HasSuffix(suggestion, "%"):
			// It is read on with, for what else is wrong.
			scalar(suggestion, v, f)
			r.note(r.at(n), r.shown(path), quote(n.Value), allowed, suggestion)
		default:
			r.wrong(n, path, quote(n.Value), allowed, suggestion)
		}
	}
}

// untagged refuses what YAML can do and a plain file does not need: types of one's
// own, and types that contradict the field.
func (r *reader) untagged(n *yaml.Node, path string) bool {
	if n.Style&yaml.TaggedStyle == 0 && (!strings.HasPrefix(n.Tag, "!") || strings.HasPrefix(n.Tag, "!!")) {
		return true
	}
	r.wrong(n, path, "tagged "+quote(n.Tag), "a plain value", "")
	return false
}

// fields sets the members of the struct v. extra are keys that belong to it and
// have been read already.
func (r *reader) fields(entries []entry, v reflect.Value, path string, extra ...string) {
	for _, e := range entries {
		if r.stop() {
			return
		}
		m, ok, keys := find(v.Type(), e.key.Value)
		if !ok {
			keys = append(keys, extra...)
			r.unknown(e, path, keys, choice.Nearest(e.key.Value, keys))
			continue
		}
		if e.value.Kind == yaml.MappingNode || e.value.Kind == yaml.SequenceNode {
			r.keys[field(path, m.name)] = r.at(e.key)
		}
		r.decode(e.value, v.FieldByIndex(m.index), field(path, m.name), m.form)
	}
}

// unknown notes a key that nothing is called by.
func (r *reader) unknown(e entry, path string, keys []string, suggestion string) {
	r.broken = append(r.broken, field(path, "?"))
	r.note(r.at(e.key), field(r.shown(path), shownKey(e.key.Value)), "unknown", choice.List(keys), suggestion)
}

// shownKey is a key that is no field, as part of a path: in quotes if it would not
// be seen as one.
func shownKey(key string) string {
	if key == "" || strings.ContainsFunc(key, func(c rune) bool { return c == ' ' || !unicode.IsPrint(c) }) {
		return quote(key)
	}
	return clip(key)
}

func (r *reader) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, path, kindOf(n), `a list, each element after a "- " or all in brackets`, "")
		return
	}
	size := len(n.Content)
	switch {
	case size == 0:
		v.SetZero() // an empty list is none, however it is written
		return
	case size > maxElements:
		r.wrong(n, path, fmt.Sprintf("a list of %d", size), fmt.Sprintf("at most %d elements", maxElements), "")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), size, size))
	for i := 0; i < size && !r.stop(); i++ {
		r.decode(n.Content[i], v.Index(i), element(path, i), plain)
	}
}

// mergeTag is what YAML has for the key <<, unless it is in quotes.
const mergeTag = "!!merge"

// An entry of a mapping.
type entry struct{ key, value *yaml.Node }

// entries are what stands in the mapping n and in those that are merged into it
// (<<), each key once: its own before merged ones, and those in their order. A
// mapping of which nothing is left but its name is an empty one. allowed is what n
// must be.
func (r *reader) entries(n *yaml.Node, path, allowed string) ([]entry, bool) {
	if isNull(n) {
		return nil, true
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, path, kindOf(n), allowed, "")
		return nil, false
	}
	if !r.spend(len(n.Content), n, path) {
		return nil, false
	}
	seen := map[string]*yaml.Node{}
	var all []entry
	var merged []*yaml.Node
	var merges *yaml.Node // the key of merged
	twice := func(key, first *yaml.Node, allowed string) {
		// The path is that of the field if there is one, else it is as written.
		r.broken = append(r.broken, field(path, "?"))
		r.note(r.at(key), field(r.shown(path), shownKey(key.Value)), fmt.Sprintf("set twice, first in line %d", first.Line), allowed, "")
	}
	for i := 0; i+1 < len(n.Content) && !r.stop(); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode && key.Alias != nil {
			key = key.Alias
		}
		first := seen[key.Value]
		switch {
		case !r.untagged(key, field(path, "?")):
		case key.Tag == mergeTag && merges != nil:
			twice(key, merges, "a list of all that is merged, such as [*a, *b]")
		case key.Tag == mergeTag:
			merges, merged = key, append(merged, value)
		case key.Kind != yaml.ScalarNode || isNull(key):
			r.wrong(key, field(path, "?"), kindOf(key), "a name", "")
		case first != nil:
			twice(key, first, "one value")
		default:
			seen[key.Value] = key
			all = append(all, entry{key, value})
		}
	}
	for _, m := range merged {
		all = r.merge(m, path, seen, all, true)
	}
	return all, true
}

// merge adds what n, a mapping or a list of mappings, has and seen has not.
func (r *reader) merge(n *yaml.Node, path string, seen map[string]*yaml.Node, all []entry, lists bool) []entry {
	at := n
	n, done := r.resolve(n, path)
	defer done()
	switch {
	case n == nil || r.stop():
	case n.Kind == yaml.SequenceNode && lists:
		for _, c := range n.Content {
			all = r.merge(c, path, seen, all, false)
		}
	case n.Kind == yaml.MappingNode:
		// What it merges itself comes by way of this same function. A mapping that
		// merges itself is stopped by the limit on aliases.
		entries, _ := r.entries(n, path, "")
		for _, e := range entries {
			if seen[e.key.Value] == nil {
				seen[e.key.Value] = e.key
				all = append(all, e)
			}
		}
	default:
		r.wrong(at, field(path, "<<"), kindOf(n), "a mapping to merge, such as *name", "")
	}
	return all
}

// mappingOf is what a file must hold for a value of the struct type t.
func mappingOf(t reflect.Type, extra ...string) string {
	_, _, keys := find(t, "")
	return "a mapping of " + choice.List(append(keys, extra...))
}

// isNull: nothing stands there, or null, or ~.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// kindOf is what n is, in words that follow "is".
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "empty"
	}
	return quote(n.Value)
}
