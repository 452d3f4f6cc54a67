package config

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

// decode sets v, whose path is path, to the value of n.
func (r *reader) decode(n *tree.Node, v reflect.Value, path string, f form) {
	if r.Full() || !r.sound(n, path) {
		return
	}
	if !has(r.places, path) {
		r.places[path] = r.Place(n)
	}
	switch {
	case v.Type() == distributionType:
		r.distribution(n, v, path)
	case v.Type() == edgeType && n.Scalar():
		v.FieldByName("Dependency").SetString(n.Text)
	case v.Kind() == reflect.Struct && n.Scalar():
		r.wrong(n, path, n.Quoted(), mappingOf(v.Type()), inBraces(v.Type(), n.Text))
	case v.Kind() == reflect.Struct:
		if members, ok := r.members(n, path, mappingOf(v.Type())); ok {
			r.fields(members, v, path)
		}
	case v.Kind() == reflect.Slice:
		r.list(n, v, path)
	case !n.Scalar():
		allowed, _ := scalar("?", reflect.New(v.Type()).Elem(), f)
		if v.Kind() == reflect.String {
			allowed = "a text"
		}
		r.wrong(n, path, n.Quoted(), allowed, "")
	default:
		switch allowed, suggestion := scalar(n.Text, v, f); {
		case allowed == "":
		case f == share && strings.HasSuffix(suggestion, "%"):
			// Reading continues with the suggestion, to find what else is wrong.
			scalar(suggestion, v, f)
			r.Wrong(n, r.shown(path), n.Quoted(), allowed, suggestion)
		default:
			r.wrong(n, path, n.Quoted(), allowed, suggestion)
		}
	}
}

// fields sets the fields of the struct v. extra are keys that belong to it and
// have been read already.
func (r *reader) fields(members []tree.Member, v reflect.Value, path string, extra ...string) {
	for _, e := range members {
		if r.Full() {
			return
		}
		m, ok, keys := find(v.Type(), e.Key)
		if !ok {
			keys = append(keys, extra...)
			r.unknown(e, path, keys, choice.Nearest(e.Key, keys))
			continue
		}
		at := field(path, m.key)
		if e.Value.Kind >= tree.List {
			r.keys[at] = r.KeyPlace(e)
		}
		r.decode(e.Value, v.FieldByIndex(m.index), at, m.form)
	}
}

// unknown records a key that is the name of no field.
func (r *reader) unknown(m tree.Member, path string, keys []string, suggestion string) {
	r.broken = append(r.broken, field(path, "?"))
	r.Note(r.KeyPlace(m), field(r.shown(path), shownKey(m.Key)), "unknown", choice.List(keys), suggestion)
}

// shownKey is a key that is no field, as part of a path. It is in quotes if it has blanks or
// characters that cannot be seen.
func shownKey(key string) string {
	if key == "" || strings.ContainsFunc(key, func(c rune) bool { return c == ' ' || !unicode.IsPrint(c) }) {
		return tree.Quote(key)
	}
	return tree.Clip(key)
}

func (r *reader) list(n *tree.Node, v reflect.Value, path string) {
	if n.Kind != tree.List {
		r.wrong(n, path, n.Quoted(), `a list, each element after a "- " or all in brackets`, "")
		return
	}
	size := len(n.Items)
	switch {
	case size == 0:
		v.SetZero() // an empty list is nil
		return
	case size > maxElements:
		r.wrong(n, path, fmt.Sprintf("a list of %d", size), fmt.Sprintf("at most %d elements", maxElements), "")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), size, size))
	for i, item := range n.Items {
		r.decode(item, v.Index(i), element(path, i), plain)
	}
}

// members returns the members of the mapping n. Null counts as an empty mapping: a key may stand
// without a value. allowed is what n must be.
func (r *reader) members(n *tree.Node, path, allowed string) ([]tree.Member, bool) {
	if n.Kind != tree.Map && n.Kind != tree.Null {
		r.wrong(n, path, n.Quoted(), allowed, "")
		return nil, false
	}
	return n.Members, true
}

// mappingOf names the keys that a file may have for a value of the struct type t.
func mappingOf(t reflect.Type, extra ...string) string {
	_, _, keys := find(t, "")
	return "a mapping of " + choice.List(append(keys, extra...))
}
