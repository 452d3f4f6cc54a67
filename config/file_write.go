package config

import (
	"fmt"
	"math"
	"reflect"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/clients"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
)

// FormatPolicyFile writes f as a file. Of a policy it writes the fields that differ from those of
// its preset, and in a dependency also from those of the defaults. [ParsePolicyFile] reads the same
// from it, except for the positions. f need not be valid.
//
// It fails if f is empty, if names are not proper or not different, if there is no such version or
// preset, and if a value cannot be written, such as NaN.
func FormatPolicyFile(f *PolicyFile) ([]byte, error) {
	w := &fileWriter{f: f}
	root := tree.NewMap()
	add := func(key string, n *tree.Node) {
		if len(n.Members) > 0 || n.Scalar() {
			root.Set(key, n)
		}
	}
	if f.Version != 0 {
		if f.Version != version {
			w.fail("version is %d: want %d", f.Version, version)
		}
		add("version", tree.Int(f.Version))
	}
	add("defaults", w.defaults())
	add("dependencies", items(w, "dependencies", f.Dependencies, w.dependency))
	add("services", items(w, "services", f.Services, w.service))
	if len(root.Members) == 0 {
		w.fail("a policy file with nothing in it")
	}
	return written(&w.Writer, root)
}

type fileWriter struct {
	codec.Writer
	f             *PolicyFile
	setByDefaults map[string]bool // the leaves that the defaults set themselves
}

func (w *fileWriter) fail(format string, args ...any) {
	if w.Err == nil {
		w.Err = fmt.Errorf(format, args...)
	}
}

func items[T interface{ name() string }](w *fileWriter, path string, all []T, write func(T, string) *tree.Node) *tree.Node {
	n := tree.NewMap()
	seen := map[string]bool{}
	for _, item := range all {
		name := item.name()
		if !properName(name) || seen[name] {
			w.fail("the name %s under %s: want names of 1 to %d printable characters, all different", tree.Quote(name), path, maxName)
		}
		seen[name] = true
		value := write(item, codec.Under(path, name))
		value.Flow = value.Flow || len(value.Members) == 0
		n.Set(name, value)
	}
	return n
}

func (d Dependency) name() string { return d.Name }
func (o Operation) name() string  { return o.Name }
func (s Service) name() string    { return s.Name }

func (w *fileWriter) defaults() *tree.Node {
	d := &w.f.Defaults
	n := tree.NewMap()
	w.preset(n, d.Preset, "defaults")
	preset, _ := PresetPolicy(d.Preset)
	w.setByDefaults = map[string]bool{}
	for _, l := range policyLeaves() {
		w.setByDefaults[l.path] = !same(l.of(&d.Policy), l.of(&preset))
	}
	w.policy(n, d.Policy, preset, "defaults")
	return n
}

func (w *fileWriter) preset(n *tree.Node, name, path string) {
	if name == "" {
		return
	}
	if presetOf(name) == nil {
		w.fail("%s.preset is %s: want %s", path, tree.Quote(name), allowedPreset(clients.All()))
	}
	n.Set("preset", tree.String(name))
}

func (w *fileWriter) policy(n *tree.Node, p, base lull.Policy, path string) {
	n.Members = append(n.Members, w.changes(reflect.ValueOf(p), reflect.ValueOf(base), path)...)
}

func (w *fileWriter) changes(v, base reflect.Value, path string) []tree.Member {
	if codec.Empty(base) {
		return w.Mapping(v, path).Members
	}
	n := tree.NewMap()
	for _, m := range codec.Members(v.Type()) {
		is, was, at := v.FieldByIndex(m.Index), base.FieldByIndex(m.Index), codec.Field(path, m.Key)
		switch {
		case same(is, was):
		case is.Kind() != reflect.Struct:
			n.Set(m.Key, w.Node(is, at, m.Form))
		default:
			part := &tree.Node{Kind: tree.Map, Members: w.changes(is, was, at)}
			part.Flow = codec.Inline(part, is)
			n.Set(m.Key, part)
		}
	}
	return n.Members
}

// same reports whether a and b are written the same way.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Float64 {
		return a.Float() == b.Float() && !math.IsNaN(a.Float()) // 0 and -0 are the same
	}
	if a.Kind() == reflect.Struct {
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

func (w *fileWriter) dependency(d Dependency, path string) *tree.Node {
	n := tree.NewMap()
	w.preset(n, d.Preset, path)
	base := baseOf(w.f.Defaults.Policy, func(path string) bool { return w.setByDefaults[path] }, presetOf(d.Preset))
	w.policy(n, d.Policy, base.policy, path)
	if len(d.Operations) > 0 {
		n.Set("operations", items(w, codec.Under(path, "operations"), d.Operations, w.operation))
	}
	facts := d
	facts.Preset, facts.Policy, facts.Operations = "", lull.Policy{}, nil
	n.Members = append(n.Members, w.Mapping(reflect.ValueOf(facts), path).Members...)
	return n
}

func (w *fileWriter) operation(o Operation, path string) *tree.Node {
	n := w.Mapping(reflect.ValueOf(o), path)
	n.Flow = true
	return n
}

func (w *fileWriter) service(s Service, path string) *tree.Node {
	return w.Mapping(reflect.ValueOf(s), path)
}
