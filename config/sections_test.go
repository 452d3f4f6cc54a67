package config

import (
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// A mall has sections beside those of policies.
type mall struct {
	Doors map[string]door
	Drain time.Duration

	policies int // that Validate has seen
}

type door struct {
	To     string
	Length int64
	Policy string
}

func (s *mall) Validate(f *PolicyFile) error {
	var l problem.List
	s.policies = len(f.Dependencies)
	for name, d := range s.Doors {
		_, ok := f.Dependency(d.Policy)
		l.Check(ok || d.Policy == "", `Doors["`+name+`"].Policy`, d.Policy, "the name of a policy")
	}
	l.Check(s.Drain < time.Minute, "Drain", s.Drain, "less than a minute")
	return l.Err()
}

func TestSectionsBesideThoseOfPolicies(t *testing.T) {
	var s mall
	f, err := ParsePolicyFile("f", []byte(`
doors:
  my.Door: {to: there, length: 64k, policy: api}
  other:
drain: 2s
dependencies: {api: {attempts: 3}}
`), &s)
	if err != nil {
		t.Fatal(err)
	}
	if s.Doors["my.Door"] != (door{"there", 64_000, "api"}) || len(s.Doors) != 2 || s.Drain != 2*time.Second || s.policies != 1 {
		t.Errorf("got %+v", s)
	}
	for path, want := range map[string]string{"doors.my.Door.length": "f:3:32", "doors.my.Door": "f:3:3", "doors.other.to": "f:4:3", "doors": "f:2:1", "drain": "f:5:8", "dependencies.api.attempts": "f:6:32"} {
		if at := f.Position(path).String(); at != want {
			t.Errorf("%s is at %s, want %s", path, at, want)
		}
	}
	// A file of doors alone is no policy.
	if f, err := ParsePolicyFile("f", []byte("doors: {a: {to: b}}"), new(mall)); err != nil || len(f.Dependencies) != 0 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestMistakesInSections(t *testing.T) {
	for text, want := range map[string]string{
		"doors: {a: {tu: x}}":        "f:1:13: doors.a.tu is unknown: want to, length or policy; did you mean to?",
		"doors: [a]":                 "f:1:8: doors is a list: want a mapping of names to doors",
		"doors: {\" a\": {}}":        `f:1:9: doors is " a": want ` + allowedName,
		"doors: {a: {length: 64kB}}": `f:1:21: doors.a.length is "64kB": want a whole number such as 500, 25k or 2M`,
		"doors: {A.b: {policy: apj}}\ndependencies: {api: }": `f:1:23: doors.A.b.policy is "apj": want the name of a policy; did you mean api?`,
		"drain: 2m":            "f:1:8: drain is 2m: want less than a minute",
		"doorz: {}\ndrain: 1s": "f:1:1: doorz is unknown: want version, defaults, dependencies, services, doors or drain; did you mean doors?",
		"doors: {a: {policy: b, to: {}}}\ndependencies: {c: }":      "f:1:28: doors.a.to is a mapping: want a text",
		"doors: {a: {<<: x}, b: {length: 1}}\ndependencies: {c: }}": "",
	} {
		_, err := ParsePolicyFile("f", []byte(text), new(mall))
		if err == nil || want != "" && err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", text, err, want)
		}
	}
	if _, err := ParsePolicyFile("f", []byte("doors: {}\ndependencies: {a: }")); err == nil || !strings.Contains(err.Error(), "doors is unknown") {
		t.Errorf("without sections: %v", err)
	}
}
