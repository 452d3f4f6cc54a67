package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lullgo/lull/breaker"
)

func TestMistakesOfAPolicyFile(t *testing.T) {
	_, err := ReadPolicies("testdata/policy-mistakes.yaml")
	golden(t, "policy-mistakes.txt", slashed(err))
	if n := len(located(t, err)); n < 10 {
		t.Errorf("%d mistakes", n)
	}
}

func TestMistakesOfAScenarioFile(t *testing.T) {
	_, err := ReadScenario("testdata/scenario-mistakes.yaml")
	golden(t, "scenario-mistakes.txt", slashed(err))
	if n := len(located(t, err)); n < 10 {
		t.Errorf("%d mistakes", n)
	}
}

// slashed is the text of err with the separators of other systems as ours.
func slashed(err error) string {
	return strings.ReplaceAll(fmt.Sprintln(err), `testdata\`, "testdata/")
}

// What is no YAML, or more YAML than a plain file needs: one mistake each.
func TestMistakesOfTheText(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"", `f:1:1: an empty file: want at least one field`},
		{"# nothing\n", `f:1:1: an empty file: want at least one field`},
		{"attempts:\n\t3\n", `f:2:1: a tab: want spaces, since YAML does not indent by tabs`},
		{"backoff:\n\tbase: 1s\n", `f:2:1: a tab: want spaces, since YAML does not indent by tabs`},
		{"attempts: 3\n---\nattempts: 4\n", `f:2:1: a second document: want one document in a file`},
		{"attempts: *three\n", `f:1:11: *three: want an alias of an anchor that stands before it, &three`},
		{"attempts: @3\n", `f:1:11: a value that begins with '@': want such a value in quotes`},
		{"attempts: 3: 4\n", `f:1:12: a colon in the wrong place: want one field a line, evenly indented; a value with a colon in quotes`},
		{"backoff: {base: 1s\nlimit: 3\n", `f:2:6: not YAML: did not find expected ',' or '}' (while parsing a flow mapping, line 1)`},
		{"backoff: [1, 2\n", `f:2:1: not YAML: did not find expected ',' or ']' (while parsing a flow sequence, line 1)`},
		{"attempts: \"3\n", `f:2:1: not YAML: found unexpected end of stream (while scanning a quoted scalar, line 1)`},
		{"attempts: 3\nä: \xff\n", `f:2:4: the byte 0xff: want text in UTF-8`},
		{"a: " + strings.Repeat("[", 200) + "\n", `f:1:104: nested too deep: want at most 100 lists and mappings in one another`},
		{"#" + strings.Repeat(" ", maxBytes), `f:1:1: a file of more than 1 MiB: want at most 1 MiB`},
		{"attempts: 3\nä: \x01\n", `f:2:4: the character U+0001: want text without control characters`},
		{"a: 1\n# \ufffe\n", `f:2:3: the character U+FFFE: want text without control characters`},
		{"~\n", `f:1:1: an empty document: want at least one field`},
		{"? \n: 3\n", `f:1:2: "" is unknown: want ` + oneOf(policyKeys())},
		{"a b: 3\n", `f:1:1: "a b" is unknown: want ` + oneOf(policyKeys())},
		{"attempts: 3\n---\n[\n", `f:4:1: not YAML: did not find expected node content (while parsing a flow node, line 4)`},
		{"- attempts: 3\n", `f:1:1: a list: want ` + mappingOf(policyType, "preset", "policies")},
		{"just text\n", `f:1:1: "just text": want ` + mappingOf(policyType, "preset", "policies")},
		{"{attempts: 3, {a: b}: 4}\n", `f:1:15: ? is a mapping: want a name`},
		{"!policy {attempts: 3}\n", `f:1:1: tagged "!policy": want a plain value`},
		{"!!str attempts: 3\nattempts: 4\n", `f:2:1: attempts is set twice, first in line 1: want one value`},
	} {
		_, err := ParsePolicies("f", []byte(c.data))
		located(t, err)
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%.40q:\n got %s\nwant %s", c.data, got, c.want)
		}
	}
}

func TestAliasBombsAreRefused(t *testing.T) {
	var lists, merges strings.Builder
	lists.WriteString("services:\n- &a0 {name: x}\n")
	merges.WriteString("attempts: &a0 {attempts: 3}\n")
	for i := 1; i < 12; i++ {
		aliases := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", ")
		fmt.Fprintf(&lists, "- calls: &a%d [%s]\n", i, aliases)
		fmt.Fprintf(&merges, "k%d: &a%d {<<: [%s]}\n", i, i, aliases)
	}
	merges.WriteString("limit: *a11\n")
	var many strings.Builder // every merge reads through all of a large mapping
	many.WriteString("a: &a {")
	for i := range 20_000 {
		fmt.Fprintf(&many, "k%d: 1, ", i)
	}
	many.WriteString("}\nlimit: {<<: [" + strings.Repeat("*a, ", 20_000) + "]}\n")

	for name, data := range map[string]string{
		"lists": lists.String(), "merges": merges.String(), "many merges": many.String(),
		"itself": "limit: &a {<<: *a}\n", "by a list": "limit: &a {<<: [*a, *a]}\n", "as a value": "services: &a [*a, *a]\nlimit: &b {limit: *b}\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{second(ParsePolicies("f", []byte(data))), second(ParseScenario("f", []byte(data)))} {
				if n := len(located(t, err)); n > maxMistakes+1 {
					t.Errorf("%d mistakes", n)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestMistakesEndSomewhere(t *testing.T) {
	_, err := ParsePolicies("f", []byte(strings.Repeat("? x\n", 5000)))
	mistakes := located(t, err)
	if len(mistakes) != maxMistakes+1 {
		t.Errorf("%d mistakes", len(mistakes))
	}
	if last := mistakes[len(mistakes)-1].Error(); last != "f:102:3: more mistakes from here on" {
		t.Errorf("the last is %s", last)
	}
}

func TestListsAreLimited(t *testing.T) {
	_, err := ParseScenario("f", []byte("horizon: 1m\nservices: ["+strings.Repeat("{}, ", maxElements+1)+"]\n"))
	if got, want := fmt.Sprint(err), "f:2:11: services is a list of 10001: want at most 10000 elements"; got != want {
		t.Errorf("got %.200s, want %s", got, want)
	}
}

// What is used in several places by way of an alias is wrong once.
func TestAMistakeIsReportedOnce(t *testing.T) {
	_, err := ParsePolicies("f", []byte("policies:\n  a: &a {attempts: x}\n  b: *a\n  c: {<<: *a}\n"))
	if got, want := fmt.Sprint(err), `f:2:20: policies.a.attempts is "x": want a whole number such as 500, 25k or 2M`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Problems that Validate finds are reported where the field is, or else what it
// belongs to, and not at all where they may follow from another mistake.
func TestProblemsAreLocated(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"atempts: 3\n", `f:1:1: atempts is unknown: want ` + oneOf(policyKeys()) + `; did you mean attempts?`},
		{"attempts: 5000\n", `f:1:11: attempts is 5000: want 1 to 1000 attempts, or 0 for the default of 3`},
		{"attempts: 3\nattempt_timeout: 300s\n", ``}, // no deadline to exceed: the default is not looked at
		{"deadline: 1s\nattempt_timeout: 2s\n", `f:2:18: attempt_timeout is 2s: want no more than the Deadline of 1s`},
		{"attempt_timeout: -2s\n", `f:1:18: attempt_timeout is -2s: want a positive duration, 0 for the default of 10s, or "none"`},
		{"breaker:\n  slow_rate: 10%\n", `f:2:3: breaker.slow_call is 0s: want a positive duration when SlowRate is set, else zero or positive`},
		{"breaker: {slow_rate: 10%, slow_cal: 1s}\n", `f:1:27: breaker.slow_cal is unknown: want ` + oneOf(breakerKeys()) + `; did you mean slow_call?`},
		{"limit:\n  max_wait: 1s\n", `f:2:13: limit.max_wait is 1s: want zero, because without a Limit nobody waits`},
		{"limit:\n  limit: x\n  max_wait: 1s\n", `f:2:10: limit.limit is "x": want a whole number such as 500, 25k or 2M`},
		{"breaker:\n  failure_rate: 50\n", `f:2:17: breaker.failure_rate is 50: want a share above 0 and up to 1, or zero for none; did you mean 50%?`},
		{"breaker:\n  failure_rate: -1\n", `f:2:17: breaker.failure_rate is -1: want a share above 0 and up to 1, or zero for none`},
		{"timeouts: sometimes\n", `f:1:11: timeouts is "sometimes": want when-answered, always or never`},
		{"budget: {floor: 10}\n", `f:1:17: budget.floor is 10: want zero where Window is zero`},
		{"policies:\n  a:\n    budget: {ratio: -1}\n  b: {attempts: -1}\n",
			"f:3:21: policies.a.budget.ratio is -1: want zero (0.1), or a ratio from 1e-05 to 10\n" +
				"f:4:17: policies.b.attempts is -1: want 1 to 1000 attempts, or 0 for the default of 3"},
	} {
		_, err := ParsePolicies("f", []byte(c.data))
		got := ""
		if err != nil {
			located(t, err)
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.data, got, c.want)
		}
	}
}

func policyKeys() []string {
	_, _, keys := find(policyType, "?")
	return append(keys, "preset", "policies")
}

func breakerKeys() []string {
	_, _, keys := find(reflect.TypeFor[breaker.Config](), "?")
	return keys
}

func TestAMistakeIsAnError(t *testing.T) {
	_, err := ParsePolicies("f", []byte("attempts: x\n"))
	var m Mistake
	if !errors.As(err, &m) || m.Path != "attempts" || m.Line != 1 || m.Column != 11 || m.Found != `"x"` {
		t.Errorf("got %+v", m)
	}
}

func TestReadingNoFile(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "none.yaml"), t.TempDir()} {
		if _, err := ReadPolicies(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("reading policies of %s: %v", path, err)
		}
		if _, err := ReadScenario(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("reading a scenario of %s: %v", path, err)
		}
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("#\n", maxBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReadPolicies(large)
	located(t, err)
}
