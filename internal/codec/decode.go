package codec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
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

// Fields sets the fields of the struct v. extra are keys that belong to it and have been read already.
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

// ShownKey is a key that is no field, as part of a path. It is in quotes if it has blanks or characters that cannot be seen.
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

// Set changes one field of v, given as "path=value": see config.SetPolicy. Example is an assignment to v, and extra are
// keys that v itself can have beside its fields.
func Set(parse Parse, v reflect.Value, assignment, example string, extra ...string) error {
	r := NewReader(parse, "", nil)
	key, value, ok := strings.Cut(assignment, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" {
		r.Note(tree.Position{}, "", tree.Quote(assignment), "an assignment such as "+example, "")
		return r.Mistakes.Err()
	}
	r.assign(v, v, key, "", value, Plain, extra)
	return r.Mistakes.Err()
}

// assign sets the field that rest leads to from v. before is the path to v; top is the value at which that path begins.
func (r *Reader) assign(top, v reflect.Value, rest, before, value string, f Form, extra []string) {
	switch {
	case rest == "":
		r.assignValue(v, before, value, f)
	case v.Kind() == reflect.Struct:
		key, rest, _ := strings.Cut(rest, ".")
		m, ok, keys := Find(v.Type(), key)
		if !ok {
			if before == "" {
				keys = append(keys, extra...)
			}
			suggestion := choice.Nearest(key, keys)
			if before == "" && suggestion == "" {
				suggestion = onlyPathEndingIn(top, Field(key, rest))
			}
			r.Note(tree.Position{}, Field(before, ShownKey(key)), "unknown", choice.List(keys), suggestion)
			return
		}
		r.assign(top, v.FieldByIndex(m.Index), rest, Field(before, m.Key), value, m.Form, extra)
	case v.Kind() == reflect.Slice:
		i, rest, ok := pick(v, rest)
		if !ok {
			key, _, _ := strings.Cut(rest, ".")
			names := elements(v)
			r.Note(tree.Position{}, Field(before, ShownKey(key)), "unknown", places(v.Len(), names), choice.Nearest(key, names))
			return
		}
		// Other scenarios may have the same slice.
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		r.assign(top, own.Index(i), rest, Element(before, i), value, Plain, extra)
		if len(r.Mistakes) == 0 {
			v.Set(own)
		}
	default:
		r.Note(tree.Position{}, Field(before, ShownKey(rest)), "unknown", before+" alone, which has no fields", before)
	}
}

func (r *Reader) assignValue(v reflect.Value, path, value string, f Form) {
	n := tree.String(value)
	switch v.Kind() {
	case reflect.Struct, reflect.Slice:
		// Only a value with parts is read as YAML, so that a plain value needs no quotes.
		if n = r.Document([]byte(value)); n == nil {
			r.Mistakes = nil
			r.Note(tree.Position{}, path, tree.Quote(value), "a mapping in braces or a list in brackets", "")
			return
		}
	}
	fresh := reflect.New(v.Type()).Elem()
	r.Decode(n, fresh, path, f)
	for i := range r.Mistakes {
		r.Mistakes[i].Position = tree.Position{} // an assignment has none
	}
	if len(r.Mistakes) == 0 {
		v.Set(fresh)
	}
}

// pick returns the index of the element of v that rest begins with, by number or by name, and the
// rest after it. A name may have dots in it.
func pick(v reflect.Value, rest string) (i int, after string, ok bool) {
	key, after, _ := strings.Cut(rest, ".")
	if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < v.Len() {
		return i, after, true
	}
	for i, name := range elements(v) {
		if after, ok := strings.CutPrefix(rest, name); name != "" && ok && (after == "" || after[0] == '.') {
			return i, strings.TrimPrefix(after, "."), true
		}
	}
	return 0, rest, false
}

func elements(v reflect.Value) []string {
	if _, ok := v.Type().Elem().FieldByName("Name"); !ok {
		return nil
	}
	names := make([]string, v.Len())
	for i := range names {
		names[i] = v.Index(i).FieldByName("Name").String()
	}
	return names
}

func places(n int, names []string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" })
	switch {
	case n == 0:
		return "no element, for the list is empty"
	case len(names) > 0:
		return fmt.Sprintf("a number from 0 to %d, or %s", n-1, choice.List(names))
	}
	return fmt.Sprintf("a number from 0 to %d", n-1)
}

// onlyPathEndingIn is the one path in top that ends in key. Empty: there is none, or there are several.
func onlyPathEndingIn(top reflect.Value, key string) string {
	key = strings.Trim(key, ".")
	found := ""
	for _, path := range leaves(top, "") {
		if strings.HasSuffix(path, "."+key) {
			if found != "" {
				return ""
			}
			found = path
		}
	}
	return found
}
