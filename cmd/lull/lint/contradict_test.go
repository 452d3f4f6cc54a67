package lint

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/config"
)

// examples are files that are looked at: those of the rules, those in the repository, and some
// that were found.
func examples(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, r := range Rules() {
		all[r.ID+", bad"], all[r.ID+", good"] = r.Bad, r.Good
	}
	maps.Copy(all, filesOf(t, "../../../docs/examples/policies/*/*.yaml", "testdata/found/*.yaml"))
	return all
}

// change makes a change in a file that was read: in the policy of a dependency, or in the defaults and all that
// have the field from there.
func change(t *testing.T, was, f *config.PolicyFile, c Change) {
	t.Helper()
	field, ok := strings.CutPrefix(c.Path, "defaults.")
	if !ok {
		for i := range f.Dependencies {
			d := &f.Dependencies[i]
			if field, ok := strings.CutPrefix(c.Path, "dependencies."+d.Name+"."); ok {
				if err := config.SetPolicy(&d.Policy, field+"="+c.Value); err != nil {
					t.Fatalf("%v: %v", c, err)
				}
				return
			}
		}
		t.Fatalf("%v is no change of a policy", c)
	}
	if err := config.SetPolicy(&f.Defaults.Policy, field+"="+c.Value); err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	for i := range f.Dependencies {
		if d := &f.Dependencies[i]; was.Origin("dependencies."+d.Name+"."+field) != config.Written {
			if err := config.SetPolicy(&d.Policy, field+"="+c.Value); err != nil {
				t.Fatalf("%v: %v", c, err)
			}
		}
	}
}

// A fix ends its finding, and causes no other.
func TestFixesDoNotContradictEachOther(t *testing.T) {
	tried := 0
	for name, text := range examples(t) {
		file, err := config.ParsePolicyFile(name, []byte(text))
		if err != nil {
			continue
		}
		before := findings(file)
		for _, found := range before {
			if len(found.Fix.Changes) == 0 {
				continue
			}
			better := *file
			better.Dependencies, better.Services = slices.Clone(file.Dependencies), slices.Clone(file.Services)
			for _, c := range found.Fix.Changes {
				change(t, file, &better, c)
			}
			tried++
			after := findings(&better)
			for _, f := range after {
				same := func(g Finding) bool { return f.Rule == g.Rule && f.Path == g.Path }
				if same(found) || !slices.ContainsFunc(before, same) {
					t.Errorf("%s: %s: %s\n  fix: %s\n  leads to %s: %s", name, found.Rule, found.Message, found.Fix.Text, f.Rule, f.Message)
				}
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d fixes were tried", tried)
	}
}
