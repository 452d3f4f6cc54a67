package config

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config/syntax"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
)

// A NamedPolicy is a policy of a file, with its name.
type NamedPolicy struct {
	Name   string
	Policy lull.Policy
}

const maxName = 100

// ReadPolicies reads the policy file at path. The error is [Mistakes], with everything that is
// wrong in the file, or an error of reading it.
func ReadPolicies(path string) ([]NamedPolicy, error) {
	data, err := codec.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParsePolicies(path, data)
}

// ParsePolicies reads a policy file, as [ParsePolicyFile] does, and returns only the policies of
// its dependencies, in the order of the file. There must be at least one. The policies are valid.
// The error is [Mistakes], in which name stands for the file.
func ParsePolicies(name string, data []byte) ([]NamedPolicy, error) {
	f, err := ParsePolicyFile(name, data)
	if err != nil {
		return nil, err
	}
	if len(f.Dependencies) == 0 {
		return nil, Mistakes{{Position: Position{File: name, Line: 1, Column: 1}, Found: "a file without dependencies", Allowed: "at least one under dependencies, such as api: {attempts: 2}"}}
	}
	return choice.Each(f.Dependencies, func(d Dependency) NamedPolicy { return NamedPolicy{d.Name, d.Policy} }), nil
}

// properName reports whether name can be printed in a table and typed on a command line.
func properName(name string) bool {
	n := utf8.RuneCountInString(name)
	return n > 0 && n <= maxName && strings.TrimSpace(name) == name &&
		strings.IndexFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}

// FormatPolicies writes a policy file with the given policies: their fields that are not zero, in
// their order. [ParsePolicies] reads the same from it. It fails if there are no policies, if names
// are not proper or not different, and if a value cannot be written, such as NaN.
func FormatPolicies(policies []NamedPolicy) ([]byte, error) {
	f := &PolicyFile{}
	for _, p := range policies {
		f.Dependencies = append(f.Dependencies, Dependency{Name: p.Name, Policy: p.Policy})
	}
	return FormatPolicyFile(f)
}

// SetPolicy changes one field of p, given as "path=value": "attempts=4" or "backoff.base=50ms". The path is as in
// messages and files. The value is as in a file. A value in braces, such as "backoff={base: 50ms, cap: 1s}", sets several
// fields and replaces all that was there. "preset=external-api" replaces all of p.
//
// The result is not validated, since it may take several assignments until it is valid. The error is [Mistakes]; p is
// then unchanged.
func SetPolicy(p *lull.Policy, assignment string) error {
	if key, value, ok := strings.Cut(assignment, "="); ok && strings.TrimSpace(key) == "preset" {
		r := newReader("")
		_, t := readPreset(r, tree.String(strings.TrimSpace(value)), "preset")
		if len(r.Mistakes) == 0 {
			*p = t.policy
		}
		return r.Mistakes.Err()
	}
	return codec.Set(syntax.ParseOwn, reflect.ValueOf(p).Elem(), assignment, "backoff.base=50ms", "preset")
}

func init() {
	codec.Register(codec.Kinds{
		Keyed: []reflect.Type{reflect.TypeFor[Dependency](), reflect.TypeFor[Operation](), reflect.TypeFor[Service]()},
		Custom: map[reflect.Type]codec.Custom{
			reflect.TypeFor[Edge]():  {Read: readEdge, Write: writeEdge},
			reflect.TypeFor[YesNo](): {Words: answerNames[1:]},
		},
	})
}

func readEdge(_ *codec.Reader, n *tree.Node, v reflect.Value, _ string) bool {
	if n.Scalar() {
		v.FieldByName("Dependency").SetString(n.Text)
	}
	return n.Scalar()
}

func writeEdge(w *codec.Writer, v reflect.Value, path string) *tree.Node {
	e := v.Interface().(Edge)
	if e != (Edge{Dependency: e.Dependency}) {
		return nil
	}
	return w.Node(v.FieldByName("Dependency"), path, codec.Plain)
}

func newReader(file string) *codec.Reader { return codec.NewReader(syntax.ParseOwn, file, nil) }

func written(w *codec.Writer, n *tree.Node) ([]byte, error) {
	if w.Err != nil {
		return nil, fmt.Errorf("config: %w", w.Err)
	}
	return syntax.YAML(80, n)
}
