package codec

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

// Decode sets v, whose path is path, to the value of n.
func (r *Reader) Decode(n *tree.Node, v reflect.Value, path string, f Form) {
	if r.Full() || !r.Sound(n, path) {
		return
	}
	if !Has(r.Places, path) {
		r.Places[path] = r.Place(n)
	}
	if custom := customs[v.Type()]; custom.Read != nil && custom.Read(r, n, v, path) {
		return
	}
	switch {
	case v.Kind() == reflect.Struct && n.Scalar():
		r.WrongAt(n, path, n.Quoted(), MappingOf(v.Type()), inBraces(v.Type(), n.Text))
	case v.Kind() == reflect.Struct:
		if members, ok := r.Members(n, path, MappingOf(v.Type())); ok {
			r.Fields(members, v, path)
		}
	case v.Kind() == reflect.Slice:
		r.list(n, v, path)
	case !n.Scalar():
		allowed, _ := Scalar("?", reflect.New(v.Type()).Elem(), f)
		if v.Kind() == reflect.String {
			allowed = "a text"
		}
		r.WrongAt(n, path, n.Quoted(), allowed, "")
	default:
		switch allowed, suggestion := Scalar(n.Text, v, f); {
		case allowed == "":
		case f == Share && strings.HasSuffix(suggestion, "%"):
			// Reading continues with the suggestion, to find what else is wrong.
			Scalar(suggestion, v, f)
			r.Wrong(n, r.Shown(path), n.Quoted(), allowed, suggestion)
		default:
			r.WrongAt(n, path, n.Quoted(), allowed, suggestion)
		}
	}
}

// Fields sets the fields of the struct v. extra are keys that belong to it and
// have been read already.
func (r *Reader) Fields(members []tree.Member, v reflect.Value, path string, extra ...string) {
	for _, e := range members {
		if r.Full() {
			return
		}
		m, ok, keys := Find(v.Type(), e.Key)
		if !ok {
			keys = append(keys, extra...)
			r.Unknown(e, path, keys, choice.Nearest(e.Key, keys))
			continue
		}
		at := Field(path, m.Key)
		if e.Value.Kind >= tree.List {
			r.Keys[at] = r.KeyPlace(e)
		}
		r.Decode(e.Value, v.FieldByIndex(m.Index), at, m.Form)
	}
}

// Unknown records a key that is the name of no field.
func (r *Reader) Unknown(m tree.Member, path string, keys []string, suggestion string) {
	r.Broken = append(r.Broken, Field(path, "?"))
	r.Note(r.KeyPlace(m), Field(r.Shown(path), ShownKey(m.Key)), "unknown", choice.List(keys), suggestion)
}

// ShownKey is a key that is no field, as part of a path. It is in quotes if it has blanks or
// characters that cannot be seen.
func ShownKey(key string) string {
	if key == "" || strings.ContainsFunc(key, func(c rune) bool { return c == ' ' || !unicode.IsPrint(c) }) {
		return tree.Quote(key)
	}
	return tree.Clip(key)
}

func (r *Reader) list(n *tree.Node, v reflect.Value, path string) {
	if n.Kind != tree.List {
		r.WrongAt(n, path, n.Quoted(), `a list, each element after a "- " or all in brackets`, "")
		return
	}
	size := len(n.Items)
	switch {
	case size == 0:
		v.SetZero() // an empty list is nil
		return
	case size > MaxElements:
		r.WrongAt(n, path, fmt.Sprintf("a list of %d", size), fmt.Sprintf("at most %d elements", MaxElements), "")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), size, size))
	for i, item := range n.Items {
		r.Decode(item, v.Index(i), Element(path, i), Plain)
	}
}

// Members returns the members of the mapping n. Null counts as an empty mapping: a key may stand
// without a value. allowed is what n must be.
func (r *Reader) Members(n *tree.Node, path, allowed string) ([]tree.Member, bool) {
	if n.Kind != tree.Map && n.Kind != tree.Null {
		r.WrongAt(n, path, n.Quoted(), allowed, "")
		return nil, false
	}
	return n.Members, true
}

// MappingOf names the keys that a file may have for a value of the struct type t.
func MappingOf(t reflect.Type, extra ...string) string {
	_, _, keys := Find(t, "")
	return "a mapping of " + choice.List(append(keys, extra...))
}
