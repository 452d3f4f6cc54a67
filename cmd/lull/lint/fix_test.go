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

// Fixes are made in the text: comments and layout stay.
func TestFixFileKeepsCommentsAndLayout(t *testing.T) {
	const before = `# the policies of the shop
dependencies:
  stock: # asked for each page
    backoff: {jitter: none} # a relic
    attempts:   3

  maps: {attempts: 3, backoff: {jitter: none}} # keep

  partner:
    # lint:ignore jitter-missing one process calls it
    backoff: {jitter: none}
`
	data, fixed, err := FixFile(File{Name: "x.yaml", Data: []byte(before)}, Options{}, Warning)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(strings.Replace(before, "{jitter: none} # a relic", "{jitter: full} # a relic", 1), "3, backoff: {jitter: none}}", "3, backoff: {jitter: full}}", 1)
	if string(data) != want || len(fixed) != 2 {
		t.Errorf("%d fixed:\n%s\nwant\n%s", len(fixed), data, want)
	}
}

// After the bad examples are fixed every line that was a comment is still there, and a second run changes
// nothing.
func TestFixFileFixesTheExamples(t *testing.T) {
	total := 0
	for name, text := range filesOf(t, "../../../docs/examples/policies/bad/*.yaml") {
		data, fixed, err := FixFile(File{Name: "x.yaml", Data: []byte(text)}, Options{}, Note)
		if err != nil {
			t.Fatal(err)
		}
		total += len(fixed)
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") && !strings.Contains(string(data), strings.TrimSpace(line)) {
				t.Errorf("%s: the comment %q is gone", name, line)
			}
		}
		if again, more, _ := FixFile(File{Name: "x.yaml", Data: data}, Options{}, Note); len(more) > 0 || string(again) != string(data) {
			t.Errorf("%s: a second run fixes %d", name, len(more))
		}
	}
	if total < 10 {
		t.Errorf("only %d findings were fixed", total)
	}
}

// A fix states no fact about the world: it asks, and leaves the file alone. The changes that are advised together with the
// question are not made without it.
func TestFixesAskForFacts(t *testing.T) {
	for name, c := range map[string]struct{ text, rule, asks string }{
		"a key":                {"dependencies:\n  a: {attempts: 3, operations: {x: {idempotent: false}}}\n", "retry-not-idempotent", "keyed: true"},
		"a queue":              {"services:\n  s: {handler: 40s, visibility: 30s}\n", "visibility-below-handler", "visibility: 1m"},
		"lull's consumer":      {"services:\n  s: {server: lull, handler: 40s, visibility: 30s}\n", "visibility-below-handler", "visibility: 1m"},
		"an SLO":               {"dependencies:\n  a: {attempts: 1, deadline: 5ms}\nservices:\n  s: {slo: 10ms, calls: [{dependency: a, times: 90}]}\n", "worst-case-over-slo", "slo: "},
		"an SLO's third":       {"dependencies:\n  a: {attempts: 1, attempt_timeout: 2s, deadline: 2s, p99: 2s}\nservices:\n  s: {slo: 3s, calls: [a]}\n", "worst-case-over-slo-third", "slo: 6s"},
		"an SLO with a policy": {"dependencies:\n  a: {attempts: 1, attempt_timeout: 100ms, deadline: 100ms, p99: 400ms}\nservices:\n  s: {slo: 310ms, calls: [a]}\n", "attempt-timeout-below-p99", "slo: "},
		"a trial":              {"dependencies:\n  a: {breaker: {metrics_only: true}}\n", "breaker-cannot-trip", "breaker.metrics_only: false"},
		"how rare":             {"dependencies:\n  b: {attempts: 2, attempt_timeout: 5s, deadline: 20s}\n  c: {attempts: 2, attempt_timeout: 1s, deadline: 4s}\nservices: {a: {calls: [b]}, b: {server: lull, calls: [c]}}\n", "retries-in-layers", "attempts: 1"},
	} {
		found := false
		for _, f := range linted(t, c.text).Findings {
			if f.Rule != c.rule {
				continue
			}
			found = true
			if len(f.Fix.Changes) > 0 || !strings.Contains(f.Fix.Text, "?") || !strings.Contains(f.Fix.Text, c.asks) {
				t.Errorf("%s: no question: %+v", name, f.Fix)
			}
		}
		if !found {
			t.Errorf("%s: no finding of %s", name, c.rule)
		}
		data, fixed, err := FixFile(File{Name: "x.yaml", Data: []byte(c.text)}, Options{}, Note)
		if err != nil || string(data) != c.text {
			t.Errorf("%s: %v, %d fixed:\n%s", name, err, len(fixed), data)
		}
	}
}

// Whatever a fix may say, only policies change.
func TestOnlyPoliciesChange(t *testing.T) {
	const before = "dependencies:\n  a: {attempts: 3, p99: 1s, rate: 5, operations: {x: {idempotent: false, p99: 1s}}}\n  b: {attempts: 3}\nservices:\n  s: {slo: 9s, visibility: 9s, handler: 9s, deliveries: 2, server: other, calls: [{dependency: a, times: 2}]}\n"
	all := []Change{{Path: "dependencies.a.attempts", Value: "4"}, {Path: "services.s.slo", Value: "8s"}}
	for change, allowed := range map[string]bool{
		"a: {attempts: 3>a: {attempts: 4": true, "b: {attempts: 3>b: {attempts: 4": false, "rate: 5>rate: 6": false,
		"attempts: 3, p99: 1s>attempts: 3, p99: 2s": false, "idempotent: false>idempotent: true": false, "idempotent: false, p99: 1s>idempotent: false, p99: 2s": false,
		"idempotent: false>idempotent: false, keyed: true": false, "slo: 9s>slo: 8s": false, "visibility: 9s>visibility: 8s": false,
		"handler: 9s>handler: 8s": false, "deliveries: 2>deliveries: 3": false, "server: other>server: lull": false, "times: 2>times: 3": false,
	} {
		was, is, _ := strings.Cut(change, ">")
		after := strings.Replace(before, was, is, 1)
		if after == before || onlyThere("x.yaml", []byte(before), []byte(after), all) != allowed {
			t.Errorf("%s: want %v", change, allowed)
		}
	}
}

// What is not a policy file of its own is left alone.
func TestFixFileLeavesOthersAlone(t *testing.T) {
	for _, text := range []string{istioRoute, "attempts: x\n", "", "dependencies: {a: {backoff: {jitter: none}}}\n---\nattempts: 3\n"} {
		if data, fixed, err := FixFile(File{Name: "x.yaml", Data: []byte(text)}, Options{}, Note); err != nil || len(fixed) > 0 || string(data) != text {
			t.Errorf("%q: %v, %d fixed: %q", text, err, len(fixed), data)
		}
	}
}

// Any file can be fixed: what comes of it can be read, or nothing has changed.
func FuzzFixFile(f *testing.F) {
	for _, r := range Rules() {
		f.Add([]byte(r.Bad))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		data, fixed, err := FixFile(File{Name: "x.yaml", Data: text}, Options{}, Note)
		if err != nil {
			t.Fatal(err)
		}
		if len(fixed) == 0 && string(data) != string(text) {
			t.Fatalf("nothing is fixed, and %q is %q", text, data)
		}
		if r, _ := Check([]File{{Name: "x.yaml", Data: data}}, Options{}); len(fixed) > 0 && len(r.Unreadable) > 0 {
			t.Fatalf("%q cannot be read", data)
		}
	})
}
