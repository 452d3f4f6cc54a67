package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lullgo/lull"
	"go.yaml.in/yaml/v4"
)

// A NamedPolicy is a policy of a file and its name there.
type NamedPolicy struct {
	Name   string
	Policy lull.Policy
}

// maxName is how long the name of a policy may be, in characters.
const maxName = 100

// presets are what "preset" can say, in the order in which they are offered.
var presets = []struct {
	name   string
	policy func() lull.Policy
}{
	{"internal-service", lull.InternalService},
	{"external-api", lull.ExternalAPI},
	{"background-worker", lull.BackgroundWorker},
}

// ReadPolicies reads the policy file at path. What is wrong with it is reported
// all at once, as [Mistakes]; other errors are those of reading a file.
func ReadPolicies(path string) ([]NamedPolicy, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return ParsePolicies(path, data)
}

// ParsePolicies reads a policy file: a mapping of names to policies under the key
// "policies", or the fields of a single policy, which is then called by the stem
// of name. Policies come in the order of the file, and are valid. The error is
// [Mistakes], in which name stands for the file.
func ParsePolicies(name string, data []byte) ([]NamedPolicy, error) {
	r := newReader(name, nil)
	root := r.document(data)
	if root == nil {
		return nil, r.err()
	}
	policies := r.policies(root)
	if err := r.err(); err != nil {
		return nil, err
	}
	return policies, nil
}

func (r *reader) policies(root *yaml.Node) []NamedPolicy {
	const key = "policies"
	isFile := root.Kind == yaml.MappingNode && slices.ContainsFunc(keysOf(root), func(k *yaml.Node) bool { return k.Value == key })
	if !isFile {
		return []NamedPolicy{r.namedPolicy(stem(r.file), "", root)}
	}
	var policies []NamedPolicy
	entries, _ := r.entries(root, "", "")
	for _, e := range entries {
		if e.key.Value != key {
			r.unknown(e, "", []string{key})
			continue
		}
		value, done := r.resolve(e.value, "")
		defer done()
		if value == nil {
			break
		}
		r.begin(key)
		named, ok := r.entries(value, "", "a mapping of names to policies, such as api: {attempts: 2}")
		if ok && len(named) == 0 && len(r.mistakes) == 0 {
			r.wrong(value, "", "empty", "at least one policy, such as api: {attempts: 2}", "")
		}
		for _, p := range named {
			if r.stop() {
				break
			}
			if name := p.key.Value; !properName(name) {
				r.note(r.at(p.key), key, quote(name), fmt.Sprintf("names of 1 to %d printable characters, none of them a space at an end", maxName), "")
				continue
			}
			policies = append(policies, r.namedPolicy(p.key.Value, key+"."+p.key.Value, p.value))
		}
		r.begin("")
	}
	return policies
}

// namedPolicy reads the policy that n holds and validates it.
func (r *reader) namedPolicy(name, prefix string, n *yaml.Node) NamedPolicy {
	p := NamedPolicy{Name: name}
	r.begin(prefix)
	r.decode(n, reflect.ValueOf(&p.Policy).Elem(), "", plain)
	r.validated(p.Policy.Validate())
	return p
}

// policy reads a lull.Policy: its fields, and the preset that fills in the others.
func (r *reader) policy(n *yaml.Node, v reflect.Value, path string) {
	extra := []string{"preset"}
	if path == "" && r.prefix == "" {
		extra = append(extra, "policies")
	}
	entries, ok := r.entries(n, path, mappingOf(v.Type(), extra...))
	if !ok {
		return
	}
	isPreset := func(e entry) bool { return e.key.Value == "preset" }
	if i := slices.IndexFunc(entries, isPreset); i >= 0 {
		r.preset(entries[i].value, v, path)
		entries = slices.DeleteFunc(entries, isPreset)
	}
	r.fields(entries, v, path, extra...)
}

func (r *reader) preset(n *yaml.Node, v reflect.Value, path string) {
	path = field(path, "preset")
	n, done := r.resolve(n, path)
	defer done()
	if n == nil {
		return
	}
	var names []string
	for _, p := range presets {
		if n.Kind == yaml.ScalarNode && p.name == n.Value {
			v.Set(reflect.ValueOf(p.policy()))
			return
		}
		names = append(names, p.name)
	}
	r.wrong(n, path, kindOf(n), oneOf(names), nearest(n.Value, names))
}

// properName: a name that can be printed in a table and typed on a command line.
func properName(name string) bool {
	n := utf8.RuneCountInString(name)
	return n > 0 && n <= maxName && strings.TrimSpace(name) == name &&
		strings.IndexFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}

// keysOf are the keys of a mapping.
func keysOf(n *yaml.Node) []*yaml.Node {
	var keys []*yaml.Node
	for i := 0; i < len(n.Content); i += 2 {
		keys = append(keys, n.Content[i])
	}
	return keys
}

// FormatPolicies is a policy file with the given policies: what is not zero, in
// the order of the fields. [ParsePolicies] makes the same of it. It fails if names
// are not proper or not different, or values cannot be written, as NaN cannot.
func FormatPolicies(policies []NamedPolicy) ([]byte, error) {
	w := writer{}
	all := &yaml.Node{Kind: yaml.MappingNode}
	seen := map[string]bool{}
	for _, p := range policies {
		if !properName(p.Name) || seen[p.Name] {
			return nil, fmt.Errorf("config: policy name %s: want names of 1 to %d printable characters, all different", quote(p.Name), maxName)
		}
		seen[p.Name] = true
		all.Content = append(all.Content, text(p.Name), w.node(reflect.ValueOf(p.Policy), "policies."+p.Name, plain))
	}
	return w.bytes(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text("policies"), all}})
}
