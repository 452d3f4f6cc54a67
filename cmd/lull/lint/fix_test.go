package lint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/seed"
)

// A fix ends its finding, and leaves a file that can be read.
func TestFixesFix(t *testing.T) {
	t.Parallel()
	seed := seed.Fresh(t)
	r := rand.New(rand.NewPCG(seed, 2))
	fixed := map[string]bool{}
	files := 300
	if testing.Short() {
		files = 200
	}
	for i := 0; i < files || len(unfixed(fixed)) > 0 && i < 20_000; i++ { // some are rare
		f := randomFile(r)
		for _, found := range findings(f) {
			if len(found.Fix.Changes) == 0 {
				if found.Fix.Text == "" {
					t.Fatalf("seed %d: no fix: %+v", seed, found)
				}
				continue
			}
			better := &config.PolicyFile{Dependencies: slices.Clone(f.Dependencies), Services: slices.Clone(f.Services)}
			for _, c := range found.Fix.Changes {
				if !strings.Contains(found.Fix.Text, c.Path[strings.LastIndex(c.Path, ".")+1:]+": "+c.Value) {
					t.Fatalf("seed %d: the fix does not speak of %v: %s", seed, c, found.Fix.Text)
				}
				if err := apply(better, c); err != nil {
					t.Fatalf("seed %d: %s: %v: %v", seed, found.Message, c, err)
				}
			}
			for _, d := range better.Dependencies {
				if err := d.Validate(); err != nil {
					t.Fatalf("seed %d: %s\n%s\nleads to %v", seed, found.Message, found.Fix.Text, err)
				}
			}
			for _, again := range findings(better) {
				if again.Rule == found.Rule && again.Path == found.Path {
					t.Fatalf("seed %d: %s\n%s\nleads to\n%s", seed, found.Message, found.Fix.Text, again.Message)
				}
			}
			fixed[found.Rule] = true
		}
	}
	if missing := unfixed(fixed); len(missing) > 0 {
		t.Errorf("seed %d: no finding of %v was fixed", seed, missing)
	}
}

// unfixed are the rules whose fixes name changes, without those that have been tried.
func unfixed(fixed map[string]bool) (all []string) {
	for _, rule := range Rules() {
		switch rule.ID {
		case ruleMistake, ruleDirective, ruleUnknown, "call-cycle", "retry-not-idempotent", "visibility-below-handler":
			continue
		}
		if !fixed[rule.ID] {
			all = append(all, rule.ID)
		}
	}
	return all
}

// apply makes a change in a file that was made in code, whose names have one letter. A fix changes policies alone.
func apply(f *config.PolicyFile, c Change) error {
	part := strings.SplitN(c.Path, ".", 3)
	if len(part) == 3 && part[0] == "dependencies" {
		for i := range f.Dependencies {
			if d := &f.Dependencies[i]; d.Name == part[1] {
				return config.SetPolicy(&d.Policy, part[2]+"="+c.Value)
			}
		}
	}
	return fmt.Errorf("%q is no field of a policy", c.Path)
}
