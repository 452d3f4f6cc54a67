package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/sim"
)

// Set changes one field of s, given as "path=value". The path is as in messages and files:
// "services.0.queue.limit". An element of a list is given by its number, from 0, or by its name:
// "services.api.queue.limit". The value is as in a file. A value in braces, such as
// "services.api.time={kind: exponential, mean: 20ms}", sets several fields and replaces all that
// was there.
//
// The result is not validated, since it may take several assignments until it is valid. Set copies
// what s shares with other scenarios before it changes it. The error is [Mistakes]; s is then
// unchanged.
func Set(s *sim.Scenario, assignment string) error {
	return set(reflect.ValueOf(s).Elem(), assignment)
}

// SetPolicy changes one field of p, such as "attempts=4" or "backoff.base=50ms", by the same rules
// as [Set]. "preset=external-api" replaces all of p.
func SetPolicy(p *lull.Policy, assignment string) error {
	if key, value, ok := strings.Cut(assignment, "="); ok && strings.TrimSpace(key) == "preset" {
		r := newReader("", nil)
		_, t := r.preset(tree.String(strings.TrimSpace(value)), "preset")
		if len(r.Mistakes) == 0 {
			*p = t.policy
		}
		return r.Mistakes.Err()
	}
	return set(reflect.ValueOf(p).Elem(), assignment)
}

func set(v reflect.Value, assignment string) error {
	r := newReader("", nil)
	key, value, ok := strings.Cut(assignment, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" {
		r.Note(Position{}, "", tree.Quote(assignment), "an assignment such as "+example(v), "")
		return r.Mistakes.Err()
	}
	r.assign(v, v, key, "", value, plain)
	return r.Mistakes.Err()
}

// example is an assignment to the first number or duration that v has.
func example(v reflect.Value) string {
	if v.Type() == policyType {
		return "backoff.base=50ms"
	}
	return "services.0.queue.limit=500"
}

// assign sets the field that rest leads to from v. before is the path to v; top is the value at
// which that path begins.
func (r *reader) assign(top, v reflect.Value, rest, before, value string, f form) {
	switch {
	case rest == "":
		r.assignValue(v, before, value, f)
	case v.Kind() == reflect.Struct:
		key, rest, _ := strings.Cut(rest, ".")
		m, ok, keys := find(v.Type(), key)
		if !ok {
			if v.Type() == policyType {
				keys = append(keys, "preset")
			}
			suggestion := choice.Nearest(key, keys)
			if before == "" && suggestion == "" {
				suggestion = tail(top, field(key, rest))
			}
			r.Note(Position{}, field(before, shownKey(key)), "unknown", choice.List(keys), suggestion)
			return
		}
		r.assign(top, v.FieldByIndex(m.index), rest, field(before, m.key), value, m.form)
	case v.Kind() == reflect.Slice:
		i, rest, ok := pick(v, rest)
		if !ok {
			key, _, _ := strings.Cut(rest, ".")
			names := elements(v)
			r.Note(Position{}, field(before, shownKey(key)), "unknown", places(v.Len(), names), choice.Nearest(key, names))
			return
		}
		// Other scenarios may have the same slice.
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		r.assign(top, own.Index(i), rest, element(before, i), value, plain)
		if len(r.Mistakes) == 0 {
			v.Set(own)
		}
	default:
		r.Note(Position{}, field(before, shownKey(rest)), "unknown", before+" alone, which has no fields", before)
	}
}

// assignValue sets v to value.
func (r *reader) assignValue(v reflect.Value, path, value string, f form) {
	n := tree.String(value)
	switch v.Kind() {
	case reflect.Struct, reflect.Slice:
		// Only a value with parts is read as YAML, so that a plain value needs no quotes.
		if n = r.document([]byte(value)); n == nil {
			r.Mistakes = nil
			r.Note(Position{}, path, tree.Quote(value), "a mapping in braces or a list in brackets", "")
			return
		}
	}
	fresh := reflect.New(v.Type()).Elem()
	r.decode(n, fresh, path, f)
	for i := range r.Mistakes {
		r.Mistakes[i].Position = Position{} // an assignment has none
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

// elements are the names of the elements of v; nil if they have none.
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

// places returns how an element can be given.
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

// tail is the one path in top that ends in key. Empty: there is none, or there are several.
func tail(top reflect.Value, key string) string {
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
