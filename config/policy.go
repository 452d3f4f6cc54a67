package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/tree"
)

// A NamedPolicy is a policy of a file and its name there.
type NamedPolicy struct {
	Name   string
	Policy lull.Policy
}

// maxName is how long the name of a policy may be, in characters.
const maxName = 100

// ReadPolicies reads the policy file at path. What is wrong with it is reported
// all at once, as [Mistakes]; other errors are those of reading a file.
func ReadPolicies(path string) ([]NamedPolicy, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return ParsePolicies(path, data)
}

// ParsePolicies reads a policy file, as [ParsePolicyFile] does, for those who want only
// the policies of its dependencies. There must be one at least. They come in the order
// of the file, and are valid. The error is [Mistakes], in which name stands for the file.
func ParsePolicies(name string, data []byte) ([]NamedPolicy, error) {
	f, err := ParsePolicyFile(name, data)
	if err != nil {
		return nil, err
	}
	if len(f.Dependencies) == 0 {
		return nil, Mistakes{{Position: Position{File: name, Line: 1, Column: 1}, Found: "a file without dependencies", Allowed: "at least one under dependencies, such as api: {attempts: 2}"}}
	}
	policies := make([]NamedPolicy, len(f.Dependencies))
	for i, d := range f.Dependencies {
		policies[i] = NamedPolicy{d.Name, d.Policy}
	}
	return policies, nil
}

// properName: a name that can be printed in a table and typed on a command line.
func properName(name string) bool {
	n := utf8.RuneCountInString(name)
	return n > 0 && n <= maxName && strings.TrimSpace(name) == name &&
		strings.IndexFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}

// FormatPolicies is a policy file with the given policies: what is not zero, in
// the order of the fields. [ParsePolicies] makes the same of it. It fails if there are
// none, if names are not proper or not different, or if values cannot be written, as NaN
// cannot.
func FormatPolicies(policies []NamedPolicy) ([]byte, error) {
	if len(policies) == 0 {
		return nil, errors.New("config: a policy file with nothing in it")
	}
	w := writer{}
	all := tree.NewMap()
	seen := map[string]bool{}
	for _, p := range policies {
		if !properName(p.Name) || seen[p.Name] {
			return nil, fmt.Errorf("config: policy name %s: want names of 1 to %d printable characters, all different", tree.Quote(p.Name), maxName)
		}
		seen[p.Name] = true
		all.Set(p.Name, w.node(reflect.ValueOf(p.Policy), "policies."+p.Name, plain))
	}
	return w.bytes(tree.NewMap().Set("policies", all))
}
