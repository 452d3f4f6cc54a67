package lint

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// check is Check without options.
func check(t testing.TB, files ...string) Report {
	t.Helper()
	var in []File
	for i, data := range files {
		in = append(in, File{Name: string(rune('a'+i)) + ".yaml", Data: []byte(data)})
	}
	r, err := Check(in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found are the ids of what was found and not ignored.
func found(r Report) (ids []string) {
	for _, f := range r.Findings {
		if f.Ignored == nil {
			ids = append(ids, f.Rule)
		}
	}
	return ids
}

// printed is what a format writes.
func printed(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// filesOf has the text of each file that a pattern finds, by its name. Each pattern finds some.
func filesOf(t testing.TB, patterns ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(data)
		}
	}
	return all
}

// totals are those of a sum.
func totals(sum []Step) string {
	var all []string
	for _, s := range sum {
		all = append(all, s.Total)
	}
	return strings.Join(all, " ")
}

// Each rule finds its bad example, and nothing else there; and nothing in its good one.
func TestExamplesOfRules(t *testing.T) {
	for _, rule := range Rules() {
		if got := slices.Compact(found(check(t, rule.Bad))); !slices.Equal(got, []string{rule.ID}) {
			t.Errorf("%s: the bad example gives %v\n%s", rule.ID, got, printed(t, check(t, rule.Bad).Text))
		}
		if r := check(t, rule.Good); len(found(r)) > 0 {
			t.Errorf("%s: the good example gives\n%s", rule.ID, printed(t, r.Text))
		}
	}
}
