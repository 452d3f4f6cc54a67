package rivals

import (
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, p := range All() {
		for _, name := range []string{p.Name, strings.ToUpper(p.Name)} {
			if got, err := Find(name); err != nil || got != p {
				t.Errorf("%q: %s, %v", name, got.Name, err)
			}
		}
	}
}

func TestFindSuggests(t *testing.T) {
	for typed, want := range map[string]string{
		"grcp":         "grpc",
		"aws":          "aws-legacy-standard",
		"aws-standard": "aws-standard-2.1",
		"5s":           "breaker-5s",
		"zero":         "lull", // the zero policy
		"zzzzzz":       "",
		"":             "",
	} {
		_, err := Find(typed)
		if err == nil {
			t.Errorf("%q was found", typed)
			continue
		}
		if got := strings.Contains(err.Error(), "did you mean "+want+"? "); got != (want != "") {
			t.Errorf("%q: %v, want %s suggested", typed, err, want)
		}
		if want == "" && strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%q: %v, want nothing suggested", typed, err)
		}
		for _, p := range All() {
			if !strings.Contains(err.Error(), p.Name) {
				t.Errorf("%q: the error does not name %s", typed, p.Name)
			}
		}
	}
}
