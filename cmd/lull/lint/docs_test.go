package lint

import (
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/golden"
)

// docs/lint.md is made from the rules.
func TestDocs(t *testing.T) {
	golden.File(t, "../../../docs/lint.md", Markdown())
}

// The description of each rule fits into a terminal, and is complete.
func TestExplain(t *testing.T) {
	for _, r := range Rules() {
		text := r.Explain()
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s: %d characters: %s", r.ID, n, line)
			}
		}
		for _, want := range append([]string{r.ID + " (" + r.Severity.String() + ")", "\nBad:\n", "\nGood:\n", "\nSources:\n", r.Title}, sourcesOf(r)...) {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing", r.ID, want)
			}
		}
	}
}

func sourcesOf(r Rule) (all []string) {
	for _, s := range r.Sources {
		all = append(all, s.Title, s.URL)
	}
	return all
}
