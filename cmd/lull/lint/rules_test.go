package lint

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// linted is what Check makes of the files, without options.
func linted(t testing.TB, files ...string) Report {
	t.Helper()
	var in []File
	for i, data := range files {
		in = append(in, File{Name: string(rune('a'+i)) + ".yaml", Data: []byte(data)})
	}
	r := must.Have(Check(in, Options{}))
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
	must.Succeed(write(&b))
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
			data := must.Have(os.ReadFile(name))
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
		check.Slices(t, slices.Compact(found(linted(t, rule.Bad))), []string{rule.ID}, "%s: the bad example\n%s", rule.ID, printed(t, linted(t, rule.Bad).Text))
		if r := linted(t, rule.Good); len(found(r)) > 0 {
			t.Errorf("%s: the good example gives\n%s", rule.ID, printed(t, r.Text))
		}
	}
}

// Findings are true also where lull does more than a file can show.
func TestTextsOfFindings(t *testing.T) {
	const one = "a: {attempts: 1}\n"
	for _, c := range []struct {
		name, file string
		severity   Severity
		says       string
	}{
		{"a consumer that may extend", one + "services: {s: {handler: 30s, visibility: 30s, server: lull}}", Note, "lull's consumer must be able to extend that"},
		{"another", one + "services: {s: {handler: 30s, visibility: 30s, server: other}}", Error, "are handed out again after 30s"},
		{"calls that nothing ends", "a: {attempt_timeout: none, deadline: none} # lint:ignore no-time-limit x\nservices: {s: {visibility: 30s, calls: [a]}}", Error, "are hidden for 30s, and nothing ends the calls of the handler"},
		{"not idempotent", "a: {operations: {x: {idempotent: false}}}", Warning, "unless each call of it says so, it may be carried out 5 times"},
		{"hedges in flight", "a: {hedge: {attempts: 2, share: -1}, budget: {unlimited: true}}", Error, "only hedge.in_flight, 100 at a time, bounds the hedges of calls to a"},
		{"some in flight", "a: {hedge: {attempts: 2, share: -1, in_flight: 7}, budget: {unlimited: true}}", Error, "only hedge.in_flight, 7 at a time, bounds"},
		{"any number in flight", "a: {hedge: {attempts: 2, share: -1, in_flight: -1}, budget: {unlimited: true}}", Error, "nothing bounds the hedges of calls to a"},
		{"after a failure", "a: {hedge: {attempts: 2}, budget: {unlimited: true}}", Error, "no budget bounds what follows a failure of a hedged call to a"},
		{"attempts that cannot begin", "a: {attempts: 2, attempt_timeout: none, deadline: 3s}", Warning, "attempt 2 cannot begin"},
		{"and the room that it takes", "a: {attempts: 2, attempt_timeout: none, deadline: 3s, limit: {in_flight: 3, max_wait: 1s}}", Warning, "fix: write attempt_timeout: 450ms in dependencies.a; then 2 attempts and the waits between fit"},
		{"waits that reach the deadline", "a: {attempts: 3, attempt_timeout: 1ms, deadline: 500ms, backoff: {kind: constant, base: 500ms, jitter: equal}}", Warning, "even if those before fail at once"},
		{"waits that nearly reach it", "a: {attempts: 3, attempt_timeout: 1ms, deadline: 501ms, backoff: {kind: constant, base: 500ms, jitter: equal}}", Warning, "take as long as they may"},
		{"a third", "a: {breaker: {failure_rate: 10%, min_calls: 3}}", Warning, "it is 33.3% of the 3 calls"},
		{"a budget that is hardly bounded", "a: {rate: 1e-300, budget: {ratio: 10%, window: 10s, floor: 1}}", Warning, "lets retries add more than 10^14% to the calls"},
		{"next to no calls", "a: {rate: 0.00004, breaker: {consecutive: -1, failure_rate: 50%}}", Warning, "a process makes 0.0004 calls in its window of 10s, and it needs 20"},
		{"slow answers that are no timeouts", "a: {attempts: 5, attempt_timeout: 10s, deadline: 11s, timeouts: never}", Warning, "take as long as they may, and waits are the longest, attempts 3 to 5 cannot happen"},
		{"a message", "a: {attempts: 2, attempt_timeout: 1s}\nservices: {s: {deliveries: 5, calls: [a]}}", Warning, "one message for s may become 10 attempts at a: 2 layers retry (5 × 2)"},
		{"and what would help", "a: {attempts: 2, attempt_timeout: 1s}\nservices: {s: {deliveries: 5, calls: [a]}}", Warning, "; or, if s has lull's server half, say so: server: lull in services.s"},
		{"to lull's consumer", "a: {attempts: 2, attempt_timeout: 1s}\nservices: {s: {deliveries: 5, server: lull, calls: [a]}}", Note, "one message for s may become 6 attempts at a: the retries of 2 layers add up (5 + 1), where they would multiply to 10"},
		{"whoever is asked first", layered("lull", "other", ""), Warning, "may become 16 attempts at c: 2 layers retry (4 × 4)"},
		{"whoever is in between", layered("other", "lull", ""), Note, "may become 7 attempts at c: the retries of 2 layers add up (4 + 3), where they would multiply to 16"},
		{"always", layered("lull", "lull", ", nested: always"), Warning, "may become 16 attempts at c: 2 layers retry (4 × 4) "},
	} {
		var said []string
		ok := false
		for _, f := range linted(t, "dependencies:\n  "+c.file+"\n").Findings {
			said = append(said, f.Severity.String()+" "+f.Message+" fix: "+f.Fix.Text+";")
			ok = ok || f.Ignored == nil && f.Severity == c.severity && strings.Contains(said[len(said)-1], c.says)
		}
		if !ok {
			t.Errorf("%s: want %v: %s\ngot %s", c.name, c.severity, c.says, strings.Join(said, "\n"))
		}
	}
}

// A fix can be written, and has the effect that it promises.
func TestFixesThatCanBeKept(t *testing.T) {
	const file = "dependencies: {a: {attempts: 2, attempt_timeout: 100ms, deadline: 1s}, b: {attempt_timeout: none, deadline: none}, c: {}, d: {attempts: 1, attempt_timeout: 2ms, deadline: 2ms}}\n" +
		"# lint:file-ignore no-time-limit known\nservices: {s: "
	for service, want := range map[string]string{
		"{slo: 1ns, calls: [a]}":                                "may s take 1s to answer? Then write slo: 1s in services.s",
		"{slo: 3001us, calls: [a]}":                             "write attempts: 1, attempt_timeout: 1ms and deadline: 1ms in dependencies.a; or may s take 1s to answer? Then write slo: 1s in services.s",
		"{slo: 10s, calls: [{dependency: a, times: 10000}, c]}": "may s take 3h3m20s to answer? Then write slo: 3h3m20s in services.s",
		"{slo: 21ms, calls: [{dependency: d, times: 10}]}":      "may s take 60ms to answer? Then write slo: 60ms in services.s",
		"{slo: 2s, calls: [b]}":                                 "write attempts: 2, attempt_timeout: 280ms and deadline: 660ms in dependencies.b",
		"{slo: 1ns, calls: [b]}":                                "write a deadline in the dependencies that s calls, and an slo in services.s that leaves time for it",
		"{slo: 2s, calls: [a]}":                                 "write deadline: 660ms in dependencies.a; or may s take 3s to answer? Then write slo: 3s in services.s",
		"{slo: 10001s, calls: [{dependency: a, times: 10000}]}": "write deadline: 330ms in dependencies.a; or may s take 8h20m to answer? Then write slo: 8h20m in services.s",
	} {
		var got []string
		for _, f := range linted(t, file+service+"}\n").Findings {
			if strings.HasPrefix(f.Rule, "worst-case-over-slo") {
				got = append(got, f.Fix.Text)
			}
		}
		check.Equal(t, strings.Join(got, "\n"), want, "%s", service)
	}
}

// The stock of a budget pays for retries while nothing is earned.
func TestSumOfABudgetThatIsMissing(t *testing.T) {
	for budget, want := range map[string]string{
		"": "1000 5000 1020", ", stock: 5": "1000 5000 1005", ", stock: 9k": "1000 5000 5000", ", window: 10s": "1000 5000",
	} {
		check.Equal(t, totals(linted(t, "dependencies:\n  a: {budget: {unlimited: true"+budget+"}}\n").Findings[0].Sum), want, "%s", budget)
	}
}

// Every rule has its check.
func TestEachRuleIsChecked(t *testing.T) {
	for _, r := range Rules() {
		if checks[r.ID] == nil {
			t.Errorf("%s has no check", r.ID)
		}
	}
	check.Equal(t, len(checks), len(Rules()), "checks")
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
