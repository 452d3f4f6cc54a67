package lint

import (
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
	r := rand.New(rand.NewPCG(seed.Fresh(t), 2))
	fixed := map[string]bool{}
	files := 300
	if testing.Short() {
		files = 200
	}
	for i := 0; i < files || len(unfixed(fixed)) > 0 && i < 20_000; i++ { // some are rare
		f := randomFile(r)
		for _, found := range findings(f) {
			if found.Message == "" || found.Fix.Text == "" || strings.Contains(found.Message+found.Fix.Text, "%!") {
				t.Fatalf("%+v", found)
			}
			if len(found.Fix.Changes) == 0 {
				continue
			}
			better := &config.PolicyFile{Dependencies: slices.Clone(f.Dependencies), Services: slices.Clone(f.Services)}
			for _, c := range found.Fix.Changes {
				if !strings.Contains(found.Fix.Text, c.Path[strings.LastIndex(c.Path, ".")+1:]+": "+c.Value) {
					t.Fatalf("the fix does not speak of %v: %s", c, found.Fix.Text)
				}
				change(t, f, better, c)
			}
			for _, d := range better.Dependencies {
				if err := d.Validate(); err != nil {
					t.Fatalf("%s\n%s\nleads to %v", found.Message, found.Fix.Text, err)
				}
			}
			for _, again := range findings(better) {
				if again.Rule == found.Rule && again.Path == found.Path {
					t.Fatalf("%s\n%s\nleads to\n%s", found.Message, found.Fix.Text, again.Message)
				}
			}
			fixed[found.Rule] = true
		}
	}
	if missing := unfixed(fixed); len(missing) > 0 {
		t.Errorf("no finding of %v was fixed", missing)
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
