package lint

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/lint.md lists each rule, and every rule has its check.
func TestEachRuleIsListedAndChecked(t *testing.T) {
	page, err := os.ReadFile("../../../docs/lint.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Rules() {
		row := fmt.Sprintf("| [%s](../cmd/lull/lint/rules.md#%[1]s) | %s | %s |\n", r.ID, r.Severity, r.Title)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/lint.md has no row\n%s", row)
		}
		if checks[r.ID] == nil {
			t.Errorf("%s has no check", r.ID)
		}
	}
	if len(checks) != len(Rules()) {
		t.Errorf("%d checks of %d rules", len(checks), len(Rules()))
	}
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
		parts := []string{r.ID + " (" + r.Severity.String() + ")", "\nBad:\n", "\nGood:\n", "\nSources:\n", r.Title}
		for _, s := range r.Sources {
			parts = append(parts, s.Title, s.URL)
		}
		for _, want := range parts {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing", r.ID, want)
			}
		}
	}
}
