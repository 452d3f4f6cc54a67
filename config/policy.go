package config

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/codec"
)

// A NamedPolicy is a policy of a file, with its name.
type NamedPolicy struct {
	Name   string
	Policy lull.Policy
}

// maxName is the longest name of a policy, in characters.
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
	policies := make([]NamedPolicy, len(f.Dependencies))
	for i, d := range f.Dependencies {
		policies[i] = NamedPolicy{d.Name, d.Policy}
	}
	return policies, nil
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
