package lint

import (
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/preset"
	"github.com/lullgo/lull/queue"
)

// lull's own recommendations have no findings.
func TestPresetsAreClean(t *testing.T) {
	for _, p := range []config.NamedPolicy{
		{Name: "recommended"},
		{Name: "internal-service", Policy: preset.InternalService()},
		{Name: "external-api", Policy: preset.ExternalAPI()},
		{Name: "background-worker", Policy: preset.BackgroundWorker()},
		{Name: "queue", Policy: queue.Policy()},
	} {
		data, err := config.FormatPolicies([]config.NamedPolicy{p})
		if r := linted(t, string(data)); err != nil || len(found(r)) > 0 {
			t.Errorf("%s: %v\n%s", p.Name, err, printed(t, r.Text))
		}
	}
}

// A graph and the policies may be in different files.
func TestFilesAreCheckedAsOne(t *testing.T) {
	const graph = "services:\n  shop: {slo: 2s, calls: [payments]}\n"
	const policies = "dependencies:\n  payments: {attempts: 2, attempt_timeout: 1s, deadline: 3s}\n"
	check.Slices(t, found(linted(t, graph)), []string{"policy-unknown"}, "the graph alone")
	if got := found(linted(t, policies)); len(got) > 0 {
		t.Errorf("the policies alone: %v", got)
	}
	r := linted(t, graph, policies)
	if got := found(r); !slices.Equal(got, []string{"worst-case-over-slo"}) {
		t.Fatalf("both: %v", got)
	}
	if f := r.Findings[0]; f.File != "a.yaml" || f.Line != 2 || f.Fix.Changes[0].Path != "dependencies.payments.attempt_timeout" {
		t.Errorf("%+v", f)
	}
	// Two files have it, and neither is that of the call: either may be meant.
	check.Slices(t, found(linted(t, graph, policies, policies)), []string{"policy-unknown"}, "twice")
	if m := linted(t, graph, policies, policies).Findings[0].Message; !strings.Contains(m, "2 files say with what policy") {
		t.Errorf("twice: %s", m)
	}
	// The call's own file first.
	own := graph + "dependencies:\n  payments: {attempts: 1, attempt_timeout: 600ms, deadline: 600ms}\n"
	if got := found(linted(t, own, policies)); len(got) > 0 {
		t.Errorf("its own: %v", got)
	}
	// The defaults of its own file are for names that no file has.
	check.Slices(t, found(linted(t, graph+"defaults: {deadline: 3s, attempt_timeout: 1s}\n")), []string{"worst-case-over-slo"}, "defaults")
}

// A value that several dependencies have from the defaults is reported once, there.
func TestWhatIsInheritedIsSaidOnce(t *testing.T) {
	r := linted(t, "dependencies:\n  a: {}\n  b: {attempts: 2}\n  c: {budget: {ratio: 40%}}\ndefaults:\n  budget: {ratio: 50%}\n")
	if len(r.Findings) != 2 {
		t.Fatalf("%+v", r.Findings)
	}
	if f := r.Findings[1]; f.Line != 6 || f.Path != "defaults.budget.ratio" || !strings.HasSuffix(f.Message, "; the same goes for a and b") {
		t.Errorf("%+v", f)
	}
}

func TestIgnoring(t *testing.T) {
	const bad = "{backoff: {jitter: none}}"
	for _, c := range []struct {
		name, file string
		found      []string
		reasons    []string
	}{
		{"the line itself", "dependencies:\n  a: " + bad + " # lint:ignore jitter-missing alone\n", nil, []string{"alone"}},
		{"the next line", "dependencies:\n  # lint:ignore jitter-missing alone\n\n  # more\n  a: " + bad + "\n", nil, []string{"alone"}},
		{"not the one after", "dependencies:\n  # lint:ignore jitter-missing alone\n  b: {}\n  a: " + bad + "\n", []string{ruleDirective, "jitter-missing"}, nil},
		{"not the next, at the end of a line", "dependencies:\n  b: {} # lint:ignore jitter-missing alone\n  a: " + bad + "\n", []string{ruleDirective, "jitter-missing"}, nil},
		{"the file", "# lint:file-ignore jitter-missing alone\ndependencies:\n  a: " + bad + "\n  b: " + bad + "\n", nil, []string{"alone", "alone"}},
		{"several", "dependencies:\n  a: {budget: {unlimited: true}, backoff: {jitter: none}} # lint:ignore jitter-missing,budget-missing alone\n", nil, []string{"alone", "alone"}},
		{"another rule", "dependencies:\n  a: " + bad + " # lint:ignore budget-missing alone\n", []string{"jitter-missing", ruleDirective}, nil},
		{"no reason", "dependencies:\n  a: " + bad + " # lint:ignore jitter-missing\n", []string{"jitter-missing", ruleDirective}, nil},
		{"no rule", "dependencies:\n  a: " + bad + " # lint:ignore\n", []string{"jitter-missing", ruleDirective}, nil},
		{"no such rule", "dependencies:\n  a: " + bad + " # lint:ignore jitter alone\n", []string{"jitter-missing", ruleDirective}, nil},
		{"itself", "# lint:file-ignore ignore-comment no\ndependencies:\n  a: {}\n", []string{ruleDirective}, nil},
		{"mistakes", "# lint:file-ignore file-mistake no\ndependencies:\n  a: {x: 1}\n", []string{ruleMistake}, nil},
		{"no comment of ours", "# lint: ignore me\n# nolint:ignore\ndependencies:\n  a: {}\n", nil, nil},
	} {
		r := linted(t, c.file)
		check.Slices(t, found(r), c.found, "%s", c.name)
		var reasons []string
		for _, f := range r.Findings {
			if f.Ignored != nil {
				reasons = append(reasons, f.Ignored.Reason)
				check.Equal(t, f.Ignored.By, "comment", "%s: ignored by", c.name)
			}
		}
		check.Slices(t, reasons, c.reasons, "%s: reasons", c.name)
	}
}

// A mark of the byte order is no part of the first line.
func TestByteOrderMark(t *testing.T) {
	r := linted(t, "\ufeff# lint:file-ignore jitter-missing alone\ndependencies:\n  a: {backoff: {jitter: none}}\n")
	if got := found(r); len(got) > 0 || r.Ignored() != 1 {
		t.Errorf("%v, %d ignored", got, r.Ignored())
	}
	var b strings.Builder
	r = linted(t, "\ufeffbackoff: {jitter: none}\n")
	if r.Text(&b); r.Findings[0].Column != 19 || !strings.Contains(b.String(), "\n    1 | backoff: {jitter: none}\n      |                   ^~~~\n") {
		t.Errorf("column %d\n%s", r.Findings[0].Column, &b)
	}
}

func TestOff(t *testing.T) {
	file := []File{{Name: "a.yaml", Data: []byte("dependencies:\n  a: {backoff: {jitter: none}}\n")}}
	r, err := Check(file, Options{Off: map[string]string{"jitter-missing": "one process"}})
	if err != nil || len(found(r)) > 0 || r.Ignored() != 1 || *r.Findings[0].Ignored != (Ignored{"flag", "one process"}) {
		t.Errorf("%+v, %v", r, err)
	}
	for id, want := range map[string]string{"jitter": "did you mean jitter-missing?", ruleMistake: "cannot be ignored", ruleDirective: "cannot be ignored"} {
		if _, err := Check(file, Options{Off: map[string]string{id: "why not"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := Check(file, Options{Off: map[string]string{"jitter-missing": " "}}); err == nil {
		t.Error("without a reason")
	}
}

// A cap below its base is a finding of the rule with that name, although the file cannot be read
// then.
func TestRefusedCap(t *testing.T) {
	r := linted(t, "dependencies:\n  a: {backoff: {base: 1s, cap: 500ms}}\n")
	if len(r.Unreadable) != 1 || len(r.Findings) != 1 {
		t.Fatalf("%+v", r)
	}
	f := r.Findings[0]
	if f.Rule != ruleCap || f.Severity != Error || f.Line != 2 || f.Column != 32 || f.Message != "the cap of the waits is 500ms, below their base of 1s" {
		t.Errorf("%+v", f)
	}
}

// A file with mistakes does not keep the others from being checked.
func TestMistakesOfOneFile(t *testing.T) {
	r := linted(t, "dependencies: 7\n", "dependencies:\n  a: {backoff: {jitter: none}}\n")
	if got := found(r); !slices.Equal(got, []string{ruleMistake, "jitter-missing"}) || !slices.Equal(r.Unreadable, []string{"a.yaml"}) {
		t.Errorf("%v, %v", got, r.Unreadable)
	}
}

func TestSameFileTwice(t *testing.T) {
	f := File{Name: "a.yaml", Data: []byte("dependencies:\n  a: {backoff: {jitter: none}}\n")}
	r, err := Check([]File{f, f}, Options{})
	if err != nil || len(r.Findings) != 1 || len(r.Files) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestFindRule(t *testing.T) {
	for _, r := range Rules() {
		if got, err := FindRule(r.ID); err != nil || got.ID != r.ID {
			t.Errorf("%s: %v", r.ID, err)
		}
		if r.ID != strings.ToLower(r.ID) || strings.ContainsAny(r.ID, " _") {
			t.Errorf("%s is no id", r.ID)
		}
		for _, s := range r.Sources {
			if s.URL != "" && !strings.HasPrefix(s.URL, "https://") {
				t.Errorf("%s: %s", r.ID, s.URL)
			}
		}
	}
	if _, err := FindRule("retry-in-layers"); err == nil || !strings.Contains(err.Error(), "did you mean retries-in-layers?") {
		t.Errorf("%v", err)
	}
	if _, err := FindRule(strings.Repeat("x", 1<<20)); err == nil {
		t.Error("found")
	}
}
