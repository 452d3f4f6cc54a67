package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/lullgo/lull"
	"go.yaml.in/yaml/v4"
)

// FormatPolicyFile is f as a file. Of a policy only what differs from what it would be
// without is written: from the preset's fields, and from the defaults' in a dependency.
// [ParsePolicyFile] makes the same of it, but for the positions, and it is not asked
// whether f is valid.
//
// It fails if f holds nothing, if names are not proper or not different, if there is no
// such version or preset, and if values cannot be written, as NaN cannot.
func FormatPolicyFile(f *PolicyFile) ([]byte, error) {
	w := &fileWriter{f: f}
	root := &yaml.Node{Kind: yaml.MappingNode}
	add := func(key string, n *yaml.Node) {
		if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
			root.Content = append(root.Content, text(key), n)
		}
	}
	if f.Version != 0 {
		if f.Version != version {
			w.fail("version is %d: want %d", f.Version, version)
		}
		add("version", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(f.Version)})
	}
	add("defaults", w.defaults())
	add("dependencies", items(w, "dependencies", f.Dependencies, w.dependency))
	add("services", items(w, "services", f.Services, w.service))
	if len(root.Content) == 0 {
		w.fail("a policy file with nothing in it")
	}
	return w.bytes(root)
}

// A fileWriter makes the nodes of a policy file.
type fileWriter struct {
	writer
	f    *PolicyFile
	said map[string]bool // the leaves that the defaults say themselves
}

func (w *fileWriter) fail(format string, args ...any) {
	if w.err == nil {
		w.err = errors.New("config: " + fmt.Sprintf(format, args...))
	}
}

// items is a mapping of the names of all to what write makes of them.
func items[T interface{ name() string }](w *fileWriter, path string, all []T, write func(T, string) *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	seen := map[string]bool{}
	for _, item := range all {
		name := item.name()
		if !properName(name) || seen[name] {
			w.fail("the name %s under %s: want names of 1 to %d printable characters, all different", quote(name), path, maxName)
		}
		seen[name] = true
		value := write(item, under(path, name))
		if len(value.Content) == 0 {
			value.Style = yaml.FlowStyle
		}
		n.Content = append(n.Content, text(name), value)
	}
	return n
}

func (d Dependency) name() string { return d.Name }
func (o Operation) name() string  { return o.Name }
func (s Service) name() string    { return s.Name }

func (w *fileWriter) defaults() *yaml.Node {
	d := &w.f.Defaults
	n := &yaml.Node{Kind: yaml.MappingNode}
	w.preset(n, d.Preset, "defaults")
	preset := policyOf(d.Preset)
	w.said = map[string]bool{}
	for _, l := range policyLeaves() {
		w.said[l.path] = !same(l.of(&d.Policy), l.of(&preset))
	}
	w.policy(n, d.Policy, preset, "defaults")
	return n
}

// preset adds that to n.
func (w *fileWriter) preset(n *yaml.Node, name, path string) {
	if name == "" {
		return
	}
	if _, ok := findTemplate(name); !ok {
		w.fail("%s.preset is %s: want %s", path, quote(name), allowedPreset())
	}
	n.Content = append(n.Content, text("preset"), text(name))
}

// policy adds to n what makes p of base.
func (w *fileWriter) policy(n *yaml.Node, p, base lull.Policy, path string) {
	n.Content = append(n.Content, w.changes(reflect.ValueOf(p), reflect.ValueOf(base), path)...)
}

// changes are the keys and values that make v of base, both of the same struct type.
func (w *fileWriter) changes(v, base reflect.Value, path string) []*yaml.Node {
	if empty(base) {
		return w.mapping(v, path).Content
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, m := range members(v.Type()) {
		is, was, at := v.FieldByIndex(m.index), base.FieldByIndex(m.index), field(path, m.key)
		switch {
		case same(is, was):
		case is.Kind() != reflect.Struct:
			n.Content = append(n.Content, text(m.key), w.node(is, at, m.form))
		default:
			part := &yaml.Node{Kind: yaml.MappingNode, Content: w.changes(is, was, at)}
			if inline(part, is) {
				part.Style = yaml.FlowStyle
			}
			n.Content = append(n.Content, text(m.key), part)
		}
	}
	return n.Content
}

// same: what is written for a and b would be read as the same.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Float64 {
		return a.Float() == b.Float() && !math.IsNaN(a.Float()) // 0 and -0 are
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

func (w *fileWriter) dependency(d Dependency, path string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	w.preset(n, d.Preset, path)
	base := baseOf(w.f.Defaults.Policy, func(path string) bool { return w.said[path] }, presetOf(d.Preset))
	w.policy(n, d.Policy, base.policy, path)
	if len(d.Operations) > 0 {
		n.Content = append(n.Content, text("operations"), items(w, under(path, "operations"), d.Operations, w.operation))
	}
	facts := d
	facts.Preset, facts.Policy, facts.Operations = "", lull.Policy{}, nil
	n.Content = append(n.Content, w.mapping(reflect.ValueOf(facts), path).Content...)
	return n
}

func (w *fileWriter) operation(o Operation, path string) *yaml.Node {
	n := w.mapping(reflect.ValueOf(o), path)
	n.Style = yaml.FlowStyle
	return n
}

func (w *fileWriter) service(s Service, path string) *yaml.Node {
	return w.mapping(reflect.ValueOf(s), path)
}
