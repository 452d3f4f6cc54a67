package lint

import (
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

// Each rule finds its bad example, and nothing else there; and nothing in its good one.
func TestExamplesOfRules(t *testing.T) {
	for _, rule := range Rules() {
		if got := slices.Compact(found(check(t, rule.Bad))); !slices.Equal(got, []string{rule.ID}) {
			var b strings.Builder
			check(t, rule.Bad).Text(&b)
			t.Errorf("%s: the bad example gives %v\n%s", rule.ID, got, &b)
		}
		if r := check(t, rule.Good); len(found(r)) > 0 {
			var b strings.Builder
			r.Text(&b)
			t.Errorf("%s: the good example gives\n%s", rule.ID, &b)
		}
	}
}
