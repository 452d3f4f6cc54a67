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
		"grcp":               "grpc",
		"aws":                "aws-legacy-standard",
		"AWS-s":              "aws-standard-2.1",
		"budget-":            "budget-aws-legacy",
		"ten":                "tenacity",
		"aws-standard":       "aws-standard-2.1",
		"AWS-Standard-2.0":   "aws-standard-2.1",
		"resilience":         "resilience4j",
		"retryablehttp":      "go-retryablehttp",
		"polly-":             "polly",
		"5s":                 "breaker-5s",
		"budget10-breaker5s": "budget10+breaker5s",
		"zzzzzz":             "",
		"":                   "",
		"€":                  "",
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

// Whatever is typed, there is an answer; and only names are found.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"", "grpc", "\xff", "budget10+", "ſ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, err := Find(name)
		if err == nil && !strings.EqualFold(p.Name, name) || err != nil && p != (Preset{}) {
			t.Errorf("%q: %s, %v", name, p.Name, err)
		}
	})
}
