package torture

import (
	"strings"
	"testing"
)

// Every source is named, every name is of its own and can be a part of an address.
func TestTheCasesAreWellFormed(t *testing.T) {
	cases := Cases()
	if len(cases) < 80 {
		t.Errorf("%d cases, want at least 80", len(cases))
	}
	names, group := map[string]bool{}, 0
	for _, c := range cases {
		for group < len(Groups) && Groups[group] != c.Group {
			group++
		}
		switch {
		case group == len(Groups):
			t.Fatalf("%s is of group %q, which is unknown or out of order", c.Name, c.Group)
		case names[c.Name]:
			t.Errorf("two cases are named %s", c.Name)
		case strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			t.Errorf("%q is no part of an address", c.Name)
		case c.Does == "" || c.Right == "" || c.Source == "" || c.judge == nil || c.method == "" || len(c.script) == 0:
			t.Errorf("%s is not complete", c.Name)
		}
		names[c.Name] = true
	}
}

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		want     int
	}{{[]string{"status-503"}, 1}, {[]string{"bodies"}, 6}, {[]string{"body-*"}, 6}, {[]string{"bodies", "body-put"}, 6}} {
		got, err := Select(c.patterns)
		if err != nil || len(got) != c.want {
			t.Errorf("%v: %d cases and %v, want %d", c.patterns, len(got), err, c.want)
		}
	}
	if _, err := Select([]string{"bodies", "boddies"}); err == nil || !strings.Contains(err.Error(), `"boddies"`) {
		t.Errorf("an unknown case: %v", err)
	}
}
