package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/clients"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/codec/codectest"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/tree"
)

func TestMistakesOfAPolicyFile(t *testing.T) {
	_, err := ReadPolicies("testdata/policy-mistakes.yaml")
	golden.File(t, "testdata/policy-mistakes.txt", codectest.Slashed(err))
	if n := len(codectest.Located(t, err)); n < 10 {
		t.Errorf("%d mistakes", n)
	}
}

// A wrong is a file, and its mistakes; empty: it has none.
type wrong struct{ data, want string }

func reads(t *testing.T, cases []wrong) {
	t.Helper()
	for _, c := range cases {
		got := ""
		if _, err := ParsePolicyFile("f", []byte(c.data)); err != nil {
			codectest.Located(t, err)
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%.100q:\n got %s\nwant %s", c.data, got, c.want)
		}
	}
}

// What is no YAML, or more YAML than a plain file needs: one mistake each.
func TestMistakesOfTheText(t *testing.T) {
	reads(t, []wrong{
		{"", `f:1:1: an empty file: want at least one field`},
		{"attempts:\n\t3\n", `f:2:1: a tab: want spaces, since YAML does not indent by tabs`},
		{"backoff:\n\tbase: 1s\n", `f:2:1: a tab: want spaces, since YAML does not indent by tabs`},
		{"attempts: *three\n", `f:1:11: *three: want an alias of an anchor that stands before it, &three`},
		{"attempts: @3\n", `f:1:11: a value that begins with '@': want such a value in quotes`},
		{"attempts: 3: 4\n", `f:1:12: a colon in the wrong place: want one field a line, evenly indented; a value with a colon in quotes`},
		{"backoff: {base: 1s\nlimit: 3\n", `f:2:6: not YAML: did not find expected ',' or '}' (while parsing a flow mapping, line 1)`},
		{"backoff: [1, 2\n", `f:2:1: not YAML: did not find expected ',' or ']' (while parsing a flow sequence, line 1)`},
		{"attempts: \"3\n", `f:2:1: not YAML: found unexpected end of stream (while scanning a quoted scalar, line 1)`},
		{"a: " + strings.Repeat("[", 200) + "\n", `f:1:104: nested too deep: want at most 100 lists and mappings in one another`},
		{"#" + strings.Repeat(" ", codec.MaxBytes), `f:1:1: a file of more than 1 MiB: want at most 1 MiB`},
		{"attempts: 3\nä: \x01\n", `f:2:4: the character U+0001: want text without control characters`},
		{"a: 1\n# \ufffe\n", `f:2:3: the character U+FFFE: want text without control characters`},
		{"~\n", `f:1:1: an empty document: want at least one field`},
		{"? \n: 3\n", `f:1:2: ? is empty: want a name, in quotes if it is ~ or null`},
		{"a b: 3\n", `f:1:1: "a b" is unknown: want ` + choice.List(policyKeys())},
		{"attempts: 3\n---\n[\n", `f:4:1: not YAML: did not find expected node content (while parsing a flow node, line 4)`},
		{"- attempts: 3\n", `f:1:1: a list: want ` + "a mapping of " + choice.List(policyKeys())},
		{"just text\n", `f:1:1: "just text": want ` + "a mapping of " + choice.List(policyKeys())},
		{"!policy {attempts: 3}\n", `f:1:1: tagged "!policy": want a plain value`},
		{"!!str attempts: 3\n", `f:1:1: ? is tagged "!!str": want a plain value`},
		{"backoff: &b {base: 1s}\nbudget: {<<: {}, <<: {}}\n", `f:2:18: budget.<< is set twice, first in line 2: want a list of all that is merged, such as [*a, *b]`},
		// YAML ends the comment there, so that what follows counts; an editor may not show it.
		{"deadline: 1s # or\u2028attempts: 9\n", `f:1:18: the character U+2028: want lines that end in \n or \r\n`},
		{"deadline: 1s # or\u2029attempts: 9\n", `f:1:18: the character U+2029: want lines that end in \n or \r\n`},
		{"deadline: 1s # or\u0085attempts: 9\n", `f:1:18: the character U+0085: want lines that end in \n or \r\n`},
		{"deadline: 1s # or\rattempts: 9\n", `f:1:18: the character U+000D: want lines that end in \n or \r\n`},
		{"attempts: 3\r", `f:1:12: the character U+000D: want lines that end in \n or \r\n`},
		{"attempts: 3 # \x7f\n", `f:1:15: the character U+007F: want text without control characters`},
		{"attempts: 3 # \u009b\n", `f:1:15: the character U+009B: want text without control characters`},
		{"\ufeffattempts: 3 # \x7f\n", `f:1:15: the character U+007F: want text without control characters`},
		{"\ufeffattempts: x\r\ndeadline: 3\r\n", `f:1:11: attempts is "x": want a whole number such as 500, 25k or 2M` + "\n" +
			`f:2:11: deadline is "3": want a duration such as 250ms, 1.5s or 2m, or "none"`},
		{"%YAML 2.0\n---\nattempts: 3\n", `f:1:1: a %YAML line for another version: want none, or %YAML 1.1`},
	})
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
			_, err := ParsePolicies("f", []byte(data))
			if n := len(codectest.Located(t, err)); n > tree.MaxMistakes+1 {
				t.Errorf("%d mistakes", n)
			}
		})
	}
}

func TestMistakesEndSomewhere(t *testing.T) {
	_, err := ParsePolicies("f", []byte(strings.Repeat("? x\n", 5000)))
	mistakes := codectest.Located(t, err)
	if len(mistakes) != tree.MaxMistakes+1 {
		t.Errorf("%d mistakes", len(mistakes))
	}
	if last := mistakes[len(mistakes)-1].Error(); last != "f:102:3: more mistakes from here on" {
		t.Errorf("the last is %s", last)
	}
}

// What is used in several places by way of an alias is wrong once.
func TestAMistakeIsReportedOnce(t *testing.T) {
	reads(t, []wrong{{"dependencies:\n  a: &a {attempts: x}\n  b: *a\n  c: {<<: *a}\n", `f:2:20: dependencies.a.attempts is "x": want a whole number such as 500, 25k or 2M`}})
}

// Problems that Validate finds are reported at the field, or at what it belongs to. They are left
// out if they may be a consequence of another mistake.
func TestProblemsAreLocated(t *testing.T) {
	reads(t, []wrong{
		{"atempts: 3\n", `f:1:1: atempts is unknown: want ` + choice.List(policyKeys()) + `; did you mean attempts?`},
		{"attempts: 5000\n", `f:1:11: attempts is 5000: want 1 to 1000 attempts, or 0 for the default of 5`},
		{"attempts: 3\nattempt_timeout: 300s\n", ``}, // no deadline to exceed: the default is not looked at
		{"deadline: 1s\nattempt_timeout: 2s\n", `f:2:18: attempt_timeout is 2s: want no more than the Deadline of 1s`},
		{"attempt_timeout: -2s\n", `f:1:18: attempt_timeout is -2s: want a positive duration, 0 for the default of 10s, or "none"`},
		{"breaker:\n  slow_rate: 10%\n", `f:2:3: breaker.slow_call is 0s: want a positive duration when SlowRate is set, else zero or positive`},
		{"breaker: {slow_rate: 10%, slow_cal: 1s}\n", `f:1:27: breaker.slow_cal is unknown: want ` + choice.List(breakerKeys()) + `; did you mean slow_call?`},
		{"limit:\n  max_wait: 1s\n", `f:2:13: limit.max_wait is 1s: want zero, because nobody waits where InFlight is zero`},
		{"limit:\n  in_flight: x\n  max_wait: 1s\n", `f:2:14: limit.in_flight is "x": want a whole number such as 500, 25k or 2M`},
		{"breaker:\n  failure_rate: 50\n", `f:2:17: breaker.failure_rate is "50": want a share such as 0.1 or 10%, and with the % above 1; did you mean 50%?`},
		{"breaker:\n  failure_rate: 250%\n", `f:2:17: breaker.failure_rate is 2.5: want a share above 0 and up to 1, or zero for none`},
		// A value that could not be read causes no other mistake.
		{"preset: external-api\nattempt_timeout: x\ndeadline: 1s\n", `f:2:18: attempt_timeout is "x": want a duration such as 250ms, 1.5s or 2m, or "none"`},
		// What was meant is read on with.
		{"budget: {ratio: 10, floor: 1}\n", `f:1:17: budget.ratio is "10": want a share such as 0.1 or 10%, and with the % above 1; did you mean 10%?` + "\n" +
			`f:1:28: budget.floor is 1: want zero where Window is zero`},
		{"hedge: {attempts: 2, delay: at-once, share: 50%}\n", `f:1:45: hedge.share is 0.5: want at least Attempts-1 with a Delay of "at-once", since every call is late then, or negative for no bound`},
		{"breaker:\n  failure_rate: -1\n", `f:2:17: breaker.failure_rate is -1: want a share above 0 and up to 1, or zero for none`},
		{"timeouts: sometimes\n", `f:1:11: timeouts is "sometimes": want when-answered, always or never`},
		{"budget: {floor: 10}\n", `f:1:17: budget.floor is 10: want zero where Window is zero`},
		{"dependencies:\n  a:\n    budget: {ratio: -1}\n  b: {attempts: -1}\n",
			"f:3:21: dependencies.a.budget.ratio is -1: want zero (0.1), or a ratio from 1e-05 to 4\n" +
				"f:4:17: dependencies.b.attempts is -1: want 1 to 1000 attempts, or 0 for the default of 5"},
	})
}

// names are n keys without values, in braces.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x%d: ,", i)
	}
	return b.String()
}

// Each call looks for its operation among those there are: to list them for each would
// take gigabytes for a file of half a megabyte.
func TestMemoryGrowsWithTheFile(t *testing.T) {
	read := func(n int) (bytes uint64) {
		var calls strings.Builder
		for i := range n {
			fmt.Fprintf(&calls, "{dependency: a, operation: x%d},", i)
		}
		data := []byte("dependencies: {a: {operations: {" + names(n) + "}}}\nservices: {s: {calls: [" + calls.String() + "]}}\n")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := ParsePolicyFile("f", data); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	read(1000)
	if once, twice := read(1000), read(2000); twice > 3*once {
		t.Errorf("%d bytes for a file, %d for one that is twice as long", once, twice)
	}
}

// A field with parts, given as if it had none.
func TestBracesAreSuggested(t *testing.T) {
	for data, want := range map[string]string{
		"breaker: off": "{off: true}", "budget: unlimited": "{unlimited: true}", "throttle: off": "{mode: off}", "throttle: Cubic": "{mode: Cubic}",
		"backoff: exponential": "{kind: exponential}", "limit: 256": "{in_flight: 256}", "budget: 10%": "{ratio: 10%}", "hedge: 2": "{attempts: 2}",
		// Anything could be meant.
		"breaker: true": "", "breaker: 50%": "", "backoff: none": "", "backoff: 100ms": "", "hedge: off": "", "limit: none": "", "budget: []": "",
	} {
		_, err := ParsePolicies("f", []byte(data))
		if got := codectest.Located(t, err); len(got) != 1 || got[0].Suggestion != want {
			t.Errorf("%s: %v, want the suggestion %s", data, got, want)
		}
	}
}

// policyKeys are what a file can have at its top that holds one policy.
func policyKeys() []string {
	_, _, keys := codec.Find(reflect.TypeFor[Dependency](), "?")
	return append(keys, fileKeys...)
}

func breakerKeys() []string {
	_, _, keys := codec.Find(reflect.TypeFor[breaker.Config](), "?")
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
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	done(t, os.WriteFile(large, []byte(strings.Repeat("#\n", codec.MaxBytes)), 0o600))
	_, err := ReadPolicies(large)
	codectest.Located(t, err)
}

// Demand of the format: ten mistakes, ten messages, one run.
func TestTenMistakes(t *testing.T) {
	_, err := ReadPolicyFile("testdata/ten-mistakes.yaml")
	if n := len(codectest.Located(t, err)); n != 10 {
		t.Errorf("%d messages", n)
	}
	golden.File(t, "testdata/ten-mistakes.txt", codectest.Slashed(err))
}

// A mistake is reported where its value is, and once. Its possible consequences are left out.
func TestProblemsOfWhatIsInherited(t *testing.T) {
	reads(t, []wrong{
		{"defaults: {attempts: 5000}\ndependencies: {a: , b: {attempts: 2}, c: {preset: external-api}}\n",
			`f:1:22: defaults.attempts is 5000: want 1 to 1000 attempts, or 0 for the default of 5`},
		{"defaults: {attempts: 5000}\ndependencies:\n  a: {attempts: 5000}\n",
			"f:1:22: defaults.attempts is 5000: want 1 to 1000 attempts, or 0 for the default of 5\n" +
				"f:3:17: dependencies.a.attempts is 5000: want 1 to 1000 attempts, or 0 for the default of 5"},
		{"defaults: {attempt_timeout: 5s}\ndependencies: {a: , b: {deadline: 2s}}\n",
			`f:1:29: dependencies.b.attempt_timeout is 5s, from defaults: want no more than the Deadline of 2s`},
		{"defaults:\n  preset: internal-service\ndependencies: {b: {deadline: 500ms}}\n",
			`f:2:11: dependencies.b.attempt_timeout is 1s, from the defaults' preset internal-service: want no more than the Deadline of 500ms`},
		{"defaults:\n  preset: internal-service\n  deadline: 500ms\ndependencies: {b: }\n",
			`f:2:11: defaults.attempt_timeout is 1s, from the preset internal-service: want no more than the Deadline of 500ms`},
		{"dependencies:\n  b:\n    preset: external-api\n    deadline: 1s\n",
			`f:3:13: dependencies.b.attempt_timeout is 15s, from the preset external-api: want no more than the Deadline of 1s`},
		// A mistake in the defaults is not one in what has it from there.
		{"defaults: {backoff: {base: 1 sec}}\ndependencies: {a: {backoff: {floor: 500ms}}}\n",
			`f:1:28: defaults.backoff.base is "1 sec": want a duration such as 250ms, 1.5s or 2m; did you mean 1s?`},
		{"defaults: {preset: internal}\ndependencies: {a: {limit: {max_wait: 1s}}}\n",
			`f:1:20: defaults.preset is "internal": want ` + allowedPreset(clients.All()) + `; did you mean internal-service?`},
		// But one in what does not.
		{"defaults: {backoff: {base: 1 sec}}\ndependencies: {a: {backoff: {base: 1s, floor: 5s}}}\n",
			`f:1:28: defaults.backoff.base is "1 sec": want a duration such as 250ms, 1.5s or 2m; did you mean 1s?` + "\n" +
				`f:2:47: dependencies.a.backoff.floor is 5s: want zero or less than Base (1s), so that jitter has room above it`},
		{"dependencies: {a: {preset: grpc}}\n",
			`f:1:28: dependencies.a.preset is "grpc", which has a budget or a jitter that no policy can have: want ` + allowedPreset(clients.All())},
		{"dependencies: {a: {preset: {}}}\n", `f:1:28: dependencies.a.preset is a mapping: want ` + allowedPreset(clients.All())},
		{"dependencies: {a: {preset: }}\n", `f:1:28: dependencies.a.preset is empty: want ` + allowedPreset(clients.All())},
		{"dependencies: {a: {preset: !x lull}}\n", `f:1:28: dependencies.a.preset is tagged "!x": want a plain value`},
	})
}

func TestMistakesOfAFilesParts(t *testing.T) {
	const graph = "dependencies: {a: {operations: {x: , y: }}, b: }\nservices:\n"
	reads(t, []wrong{
		{"version: 2\n", `f:1:10: version is "2": want 1, the only version of the format there is`},
		{"version: one\n", `f:1:10: version is "one": want 1, the only version of the format there is`},
		{"version: 0.001k\n", `f:1:10: version is "0.001k": want 1, the only version of the format there is`},
		{"version:\n", `f:1:9: version is empty: want 1, the only version of the format there is`},
		{"version: !v 1\n", `f:1:10: version is tagged "!v": want a plain value`},
		{"preset: lull\nattempts: 3\nversion: 1\n", `f:1:1: preset is unknown: want version, defaults, dependencies or services; did you mean defaults.preset?` + "\n" +
			`f:2:1: attempts is unknown: want version, defaults, dependencies or services; did you mean defaults.attempts?`},
		{"dependencies: {}\n", `f:1:15: dependencies is empty: want at least one dependency, such as api: {attempts: 2}`},
		{"dependencies:\n", `f:1:14: dependencies is empty: want at least one dependency, such as api: {attempts: 2}`},
		{"dependencies: [a]\n", `f:1:15: dependencies is a list: want a mapping of names to dependencies, such as api: {attempts: 2}`},
		{"dependancies: {a: }\nversion: 1\n", `f:1:1: dependancies is unknown: want version, defaults, dependencies or services; did you mean dependencies?`},
		{"defaults: {operations: {}}\n", `f:1:12: defaults.operations is unknown: want preset, attempts, attempt_timeout, deadline, backoff, rate_limited_base, timeouts, nested, hint_limit, budget, breaker, hedge, throttle or limit`},
		{"defaults: {name: x}\n", `f:1:12: defaults.name is unknown: want preset, attempts, attempt_timeout, deadline, backoff, rate_limited_base, timeouts, nested, hint_limit, budget, breaker, hedge, throttle or limit`},
		{"dependencies: {a: {operations: {}}}\n", `f:1:32: dependencies.a.operations is empty: want at least one operation, such as charge: {idempotent: false}`},
		{"dependencies: {a: {operations: {\"\": }}}\n", `f:1:33: dependencies.a.operations is "": want ` + allowedName},
		{"dependencies: {a: {operations: {x: {idempotent: maybe}}}}\n", `f:1:49: dependencies.a.operations.x.idempotent is "maybe": want true or false`},
		{"dependencies: {a: {operations: {x: {idempotent: unsaid}}}}\n", `f:1:49: dependencies.a.operations.x.idempotent is "unsaid": want true or false`},
		{"dependencies: {a: {operations: {chargeCard: {p99: -1s}}}}\n", `f:1:51: dependencies.a.operations.chargeCard.p99 is -1s: want a positive duration, or 0 for that of the dependency`},
		{"dependencies: {a: {p99: -1s, rate: -2}}\n", "f:1:25: dependencies.a.p99 is -1s: want a positive duration, or 0 for unknown\n" +
			"f:1:36: dependencies.a.rate is -2: want a positive number of calls a second, or 0 for unknown"},
		{graph + "  s: {calls: [c]}\n", `f:3:15: services.s.calls.0.dependency is "c": want a dependency: a or b; did you mean a?`},
		{graph + "  s: {calls: [{}]}\n", `f:3:15: services.s.calls.0.dependency is "": want the name of a dependency`},
		{graph + "  s: {calls: [{dependency: a, operation: z}]}\n", `f:3:42: services.s.calls.0.operation is "z": want an operation of a: x or y; did you mean x?`},
		{graph + "  s: {calls: [{dependency: b, operation: z}]}\n", ``}, // b names none
		{graph + "  s: {calls: [[a]]}\n", `f:3:15: services.s.calls.0 is a list: want a mapping of dependency, operation, times or parallel`},
		{graph + "  s: {calls: [{dependency: a, times: -1}]}\n", `f:3:38: services.s.calls.0.times is -1: want 1 to 10000 calls for each request, or 0 for one`},
		{graph + "  s: {calls: a}\n", `f:3:14: services.s.calls is "a": want a list, each element after a "- " or all in brackets`},
		{graph + "  s: {provides: [elsewhere]}\n", ``}, // in the file of those who call s
		{graph + "  s: {provides: [a]}\n  t: {provides: [b, a]}\n", `f:4:21: services.t.provides.1 is "a", which s provides: want a dependency that no other service provides`},
		{graph + "  s: {slo: -1s, handler: -1s, visibility: -1s, deliveries: 1001}\n", "f:3:12: services.s.slo is -1s: want a positive duration, or 0 for unknown\n" +
			"f:3:26: services.s.handler is -1s: want a positive duration, or 0 for unknown\n" +
			"f:3:43: services.s.visibility is -1s: want a positive duration, or 0 for unknown\n" +
			"f:3:60: services.s.deliveries is 1001: want 1 to 1000 deliveries of one message, or 0 for unknown"},
		{graph + "  s: {server: lul}\n", `f:3:15: services.s.server is "lul": want other or lull; did you mean lull?`},
		{"services: {s: {calls: [c], provides: [d]}}\n", ``}, // a call graph alone
		{"services: {s: {provides: [\"\"]}}\n", `f:1:27: services.s.provides.0 is "": want the name of a dependency`},
		// What the dependencies are is not known.
		{"dependencies: [a]\nservices: {s: {calls: [b]}}\n", `f:1:15: dependencies is a list: want a mapping of names to dependencies, such as api: {attempts: 2}`},
		{"services: {" + names(codec.MaxElements+1) + "}\n", `f:1:11: services is a mapping of 10001: want at most 10000`},
		{"dependencies: {" + names(codec.MaxElements+1) + "}\n", `f:1:15: dependencies is a mapping of 10001: want at most 10000`},
		{"dependencies: {a: {operations: {" + names(codec.MaxElements+1) + "}}}\n", `f:1:32: dependencies.a.operations is a mapping of 10001: want at most 10000`},
	})
	for _, name := range []string{"", ".yaml", "conf/.yml", " .yaml", strings.Repeat("a", maxName+1)} {
		_, err := ParsePolicyFile(name, []byte("attempts: 3\n"))
		want := name + ":1:1: one dependency without a name, since that of the file gives it none: want it under dependencies, such as dependencies: {api: {attempts: 2}}"
		if name == "" {
			want = "line 1" + strings.TrimPrefix(want, ":1:1")
		}
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%q: got %s", name, got)
		}
	}
	_, err := ParsePolicies("f", []byte("version: 1\n"))
	if got, want := fmt.Sprint(err), "f:1:1: a file without dependencies: want at least one under dependencies, such as api: {attempts: 2}"; got != want {
		t.Errorf("got %s", got)
	}
}
