package lint

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// Where each rule begins and ends.
func TestBounds(t *testing.T) {
	const wait = "backoff: {kind: constant, base: 500ms, jitter: equal}"
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		// An attempt that would begin at the deadline is not made (the engine does not begin
		// a wait that reaches it).
		{"begins at the deadline", "a: {attempts: 2, attempt_timeout: 1s, deadline: 1500ms, " + wait + "}", []string{"attempt-never-made"}},
		{"begins before it, with too little", "a: {attempts: 2, attempt_timeout: 1s, deadline: 1999ms, " + wait + "}", []string{"worst-case-over-deadline"}},
		{"begins before it, with half", "a: {attempts: 2, attempt_timeout: 1s, deadline: 2s, " + wait + "}", nil},
		{"begins before it, with less than the p99", "a: {attempts: 2, attempt_timeout: 1s, deadline: 2s, p99: 600ms, " + wait + "}", []string{"worst-case-over-deadline"}},
		{"begins before it, and the p99 is another matter", "a: {attempts: 2, attempt_timeout: 1s, deadline: 2s, p99: 1100ms, " + wait + "}", []string{"attempt-timeout-below-p99"}},
		{"the shortest waits reach it", "a: {attempts: 3, attempt_timeout: 1ms, deadline: 500ms, " + wait + "}", []string{"attempt-never-made"}},
		{"the shortest waits do not", "a: {attempts: 3, attempt_timeout: 1ms, deadline: 1003ms, " + wait + "}", nil},
		{"one attempt is never too many", "a: {attempts: 1, deadline: 1s}", nil},
		{"a hedge after the attempt", "a: {hedge: {attempts: 2, delay: 1s}, attempt_timeout: 1s}", []string{"attempt-never-made"}},
		{"a hedge before its end", "a: {hedge: {attempts: 2, delay: 999ms}, attempt_timeout: 1s}", nil},
		{"a hedge after the deadline", "a: {hedge: {attempts: 2, delay: 1s}, attempt_timeout: none, deadline: 1s}", []string{"attempt-never-made"}},
		{"hedges need no timeout", "a: {hedge: {attempts: 2}, attempt_timeout: none}", nil},

		{"the p99 itself", "a: {attempt_timeout: 100ms, p99: 100ms}", nil},
		{"more than the p99", "a: {attempt_timeout: 100ms, p99: 101ms}", []string{"attempt-timeout-below-p99"}},
		{"of an operation", "a: {attempt_timeout: 100ms, p99: 50ms, operations: {x: {p99: 101ms}}}", []string{"attempt-timeout-below-p99"}},
		{"the deadline is a timeout", "a: {attempts: 1, deadline: 100ms, p99: 101ms}", []string{"attempt-timeout-below-p99"}},

		{"jitter of a tenth", "a: {backoff: {base: 1s, floor: 900ms}}", nil},
		{"jitter of less", "a: {backoff: {base: 1s, floor: 901ms}}", []string{"jitter-useless"}},
		{"half the draws at the cap", "a: {backoff: {base: 1s, cap: 2s, jitter: decorrelated}}", nil},
		{"more than half", "a: {backoff: {base: 1s, cap: 1999ms, jitter: decorrelated}}", []string{"jitter-useless"}},
		{"all after a quick one", "a: {backoff: {base: 1s, cap: 1s, jitter: decorrelated, fast_first: true}}", []string{"jitter-useless"}},
		{"a wait of 1 ms", "a: {backoff: {base: 1ms}}", nil},
		{"a wait of less", "a: {backoff: {base: 999us, cap: 1s}}", []string{"backoff-missing"}},
		{"a floor of 1 ms", "a: {backoff: {base: 5ms, floor: 1ms}, rate_limited_base: 1ms}", nil},
		{"a floor that no timer has", "a: {backoff: {base: 5ms, floor: 999us}, rate_limited_base: 1ms}", []string{"backoff-missing"}},
		{"one quick retry", "a: {attempts: 2, backoff: {fast_first: true}}", nil},
		{"no retries, no waits", "a: {attempts: 1, backoff: {kind: constant, jitter: none}}", nil},
		{"cap at the default base", "a: {backoff: {cap: 100ms}, rate_limited_base: 1ms}", nil},
		{"cap below it", "a: {backoff: {cap: 99ms}, rate_limited_base: 1ms}", []string{"cap-below-base"}},
		{"cap of no wait", "a: {backoff: {kind: constant, cap: 50ms}, rate_limited_base: 1ms}", []string{"backoff-missing"}},
		{"cap at rate_limited_base", "a: {backoff: {base: 50ms, cap: 1s}}", nil},
		{"cap below it", "a: {backoff: {base: 50ms, cap: 999ms}}", []string{"cap-below-base"}},

		{"a caller that waits as long", "a: {attempts: 1, attempt_timeout: 1s}\n  b: {attempts: 1, attempt_timeout: 1s}\nservices: {s: {calls: [a]}, a: {calls: [b]}}", nil},
		{"and one that does not", "a: {attempts: 1, attempt_timeout: 999ms}\n  b: {attempts: 1, attempt_timeout: 1s}\nservices: {s: {calls: [a]}, a: {calls: [b]}}", []string{"caller-gives-up-first"}},
		{"side by side", "a: {attempts: 1, attempt_timeout: 1s}\n  b: {attempts: 1, attempt_timeout: 1s}\n  c: {attempts: 1, attempt_timeout: 1s}\nservices: {s: {calls: [a]}, a: {calls: [{dependency: b, parallel: x}, {dependency: c, parallel: x}]}}", nil},
		{"one after another", "a: {attempts: 1, attempt_timeout: 1s}\n  b: {attempts: 1, attempt_timeout: 1s}\n  c: {attempts: 1, attempt_timeout: 1s}\nservices: {s: {calls: [a]}, a: {calls: [b, c]}}", []string{"caller-gives-up-first"}},
		{"its deadline", "a: {attempts: 1, deadline: 900ms, attempt_timeout: none}\n  b: {attempts: 1, attempt_timeout: 1s}\nservices: {s: {calls: [a]}, a: {calls: [b]}}", []string{"caller-gives-up-first"}},
		{"in a circle", "a: {attempts: 1, attempt_timeout: 1s}\n  b: {attempts: 1, attempt_timeout: 2s}\nservices: {a: {calls: [b]}, b: {calls: [a]}}", []string{"call-cycle"}},

		{"a fifth", "a: {budget: {ratio: 20%}}", nil},
		{"more", "a: {budget: {ratio: 20.1%}}", []string{"budget-too-large"}},
		{"a floor that makes it a fifth", "a: {rate: 10, budget: {ratio: 10%, window: 10s, floor: 1}}", nil},
		{"a floor that makes it more", "a: {rate: 9, budget: {ratio: 10%, window: 10s, floor: 1}}", []string{"budget-too-large"}},
		{"no retries, no budget", "a: {attempts: 1, budget: {unlimited: true}}", nil},
		{"share without a bound, and a budget", "a: {hedge: {attempts: 2, share: -1}}", nil},

		{"one of ten", "a: {breaker: {failure_rate: 10%, min_calls: 10}}", []string{"breaker-trips-on-one"}},
		{"two of eleven", "a: {breaker: {failure_rate: 10%, min_calls: 11}}", nil},
		{"one slow call of one", "a: {breaker: {slow_rate: 100%, slow_call: 1s, min_calls: 1}}", []string{"breaker-trips-on-one"}},
		{"one in a row that has to last", "a: {breaker: {consecutive: 1}}", nil},
		{"slow is as long as a call can take", "a: {deadline: 10s, attempts: 1, breaker: {consecutive: -1, slow_rate: 50%, slow_call: 10s}}", []string{"breaker-cannot-trip"}},
		{"slow is less", "a: {deadline: 10s, attempts: 1, breaker: {consecutive: -1, slow_rate: 50%, slow_call: 9999ms}}", nil},
		{"slow is as long, and failures count", "a: {deadline: 10s, attempts: 1, breaker: {consecutive: -1, failure_rate: 50%, slow_rate: 50%, slow_call: 10s}}", nil},
		{"just enough calls", "a: {rate: 2, breaker: {consecutive: -1, failure_rate: 50%}}", nil},
		{"too few", "a: {rate: 1.9, breaker: {consecutive: -1, failure_rate: 50%}}", []string{"breaker-cannot-trip"}},
		{"too few, and another rule", "a: {rate: 1.9, breaker: {failure_rate: 50%}}", nil},

		{"nobody says whether", "a: {operations: {x: {}}}", nil},
		{"not, once", "a: {attempts: 1, operations: {x: {idempotent: false}}}", nil},
		{"not, hedged", "a: {hedge: {attempts: 2}, operations: {x: {idempotent: false}}}", []string{"retry-not-idempotent"}},

		{"a third of the SLO", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 3s, calls: [a]}}", nil},
		{"more than a third", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 2999ms, calls: [a]}}", []string{"worst-case-over-slo-third"}},
		{"the SLO", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 1s, calls: [a]}}", []string{"worst-case-over-slo-third"}},
		{"more than the SLO", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 999ms, calls: [a]}}", []string{"worst-case-over-slo"}},
		{"three times the SLO's third", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 9s, calls: [{dependency: a, times: 3}]}}", nil},
		{"called three times", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 8s, calls: [{dependency: a, times: 3}]}}", []string{"worst-case-over-slo-third"}},
		{"one after another", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 3s, calls: [a, a, a]}}", nil},
		{"four, one after another", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 3s, calls: [a, a, a, a]}}", []string{"worst-case-over-slo"}},
		{"four, side by side", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 3s, calls: [{dependency: a, parallel: x}, {dependency: a, parallel: x}, {dependency: a, parallel: x}, {dependency: a, parallel: x}]}}", nil},
		{"twice two, side by side", "a: {attempts: 1, deadline: 1s, attempt_timeout: 1s}\nservices: {s: {slo: 1999ms, calls: [{dependency: a, parallel: x}, {dependency: a, parallel: y}, {dependency: a, parallel: x}]}}", []string{"worst-case-over-slo"}},

		{"for ever, twice", "a: {attempt_timeout: none, deadline: none}\nservices: {s: {slo: 1s, calls: [a, a]}}", []string{"no-time-limit", "worst-case-over-slo"}},

		{"visible after the handler", "a: {attempts: 1}\nservices: {s: {handler: 30s, visibility: 30001ms}}", nil},
		{"visible with its end", "a: {attempts: 1}\nservices: {s: {handler: 30s, visibility: 30s}}", []string{"visibility-below-handler"}},
		{"visible before its calls end", "a: {attempts: 1, deadline: 30s}\nservices: {s: {visibility: 10s, calls: [a]}}", []string{"visibility-below-handler"}},
		{"the handler says how long", "a: {attempts: 1, deadline: 30s}\nservices: {s: {handler: 5s, visibility: 10s, calls: [a]}}", nil},

		{"a queue above retries", "a: {attempts: 2, attempt_timeout: 1s}\nservices: {s: {deliveries: 5, calls: [a]}}", []string{"retries-in-layers"}},
		{"a queue above none", "a: {attempts: 1}\nservices: {s: {deliveries: 5, calls: [a]}}", nil},
		{"one layer", "a: {attempts: 1}\n  b: {attempts: 3}\nservices: {s: {calls: [a]}, a: {calls: [b]}}", nil},
		{"two layers, by another name", "a: {attempts: 2}\n  b: {attempts: 3}\nservices: {s: {calls: [a]}, t: {provides: [a], calls: [b]}}", []string{"retries-in-layers"}},
	} {
		check.Slices(t, found(linted(t, "dependencies:\n  "+c.file+"\n")), c.want, "%s: found of %s", c.name, c.file)
	}
}

// The waits of a call that gets no hints.
func TestOwnWaits(t *testing.T) {
	for jitter, want := range map[backoff.Jitter]time.Duration{
		backoff.Full: 2300, backoff.None: 2300, backoff.Equal: 2300,
		backoff.Proportional: 2000 + 120 + 240,
		backoff.Decorrelated: 2000 + 300, // 3 × 100 ms, and 900 ms
	} {
		p := lull.Policy{Attempts: 3, AttemptTimeout: time.Second * 2 / 3, Backoff: backoff.Schedule{Jitter: jitter, Base: 100 * time.Millisecond}}
		want *= time.Millisecond
		if jitter == backoff.Decorrelated {
			want += 900 * time.Millisecond
		}
		check.Equal(t, newTimeline(p).ownWorst().Round(time.Millisecond), want, "%v", jitter)
	}
	// What is hedged follows a failure at once.
	p := lull.Policy{AttemptTimeout: time.Second}
	p.Hedge.Attempts = 3
	check.Equal(t, newTimeline(p).ownWorst(), 3*time.Second, "hedged")
}

// The deadline ends the call in the sum only if it would end it in fact.
func TestDeadlineThatIsNotReached(t *testing.T) {
	p := lull.Policy{Attempts: 1, AttemptTimeout: time.Second, Deadline: time.Second}
	if steps := newTimeline(p).explain(); len(steps) != 1 || steps[0].Total != "1s" {
		t.Errorf("%+v", steps)
	}
}

func TestFits(t *testing.T) {
	p := newTimeline(lull.Policy{Attempts: 4, AttemptTimeout: 150 * time.Millisecond, Backoff: backoff.Schedule{Base: 100 * time.Millisecond}})
	for limit, want := range map[time.Duration]int{149: 0, 150: 1, 399: 1, 400: 2, 749: 2, 750: 3, 1299: 3, 1300: 4, 9000: 4} {
		check.Equal(t, p.fits(limit*time.Millisecond), want, "within %d ms", limit)
	}
}

func BenchmarkCheck(b *testing.B) {
	rule, _ := FindRule("retries-in-layers")
	b.ReportAllocs()
	for b.Loop() {
		linted(b, rule.Bad)
	}
}

// examples are files that are looked at: those of the rules, those in the repository, and some
// that were found.
func examples(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, r := range Rules() {
		all[r.ID+", bad"], all[r.ID+", good"] = r.Bad, r.Good
	}
	maps.Copy(all, filesOf(t, "../../../docs/examples/policies/*/*.yaml", "testdata/found/*.yaml"))
	return all
}

// change makes a change in a file that was read: in the policy of a dependency, or in the defaults and all that
// have the field from there.
func change(t *testing.T, was, f *config.PolicyFile, c Change) {
	t.Helper()
	field, ok := strings.CutPrefix(c.Path, "defaults.")
	if !ok {
		for i := range f.Dependencies {
			d := &f.Dependencies[i]
			if field, ok := strings.CutPrefix(c.Path, "dependencies."+d.Name+"."); ok {
				if err := config.SetPolicy(&d.Policy, field+"="+c.Value); err != nil {
					t.Fatalf("%v: %v", c, err)
				}
				return
			}
		}
		t.Fatalf("%v is no change of a policy", c)
	}
	if err := config.SetPolicy(&f.Defaults.Policy, field+"="+c.Value); err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	for i := range f.Dependencies {
		if d := &f.Dependencies[i]; was.Origin("dependencies."+d.Name+"."+field) != config.Written {
			if err := config.SetPolicy(&d.Policy, field+"="+c.Value); err != nil {
				t.Fatalf("%v: %v", c, err)
			}
		}
	}
}

// A fix ends its finding, and causes no other.
func TestFixesDoNotContradictEachOther(t *testing.T) {
	tried := 0
	for name, text := range examples(t) {
		file, err := config.ParsePolicyFile(name, []byte(text))
		if err != nil {
			continue
		}
		before := findings(file)
		for _, found := range before {
			if len(found.Fix.Changes) == 0 {
				continue
			}
			better := *file
			better.Dependencies, better.Services = slices.Clone(file.Dependencies), slices.Clone(file.Services)
			for _, c := range found.Fix.Changes {
				change(t, file, &better, c)
			}
			tried++
			after := findings(&better)
			for _, f := range after {
				same := func(g Finding) bool { return f.Rule == g.Rule && f.Path == g.Path }
				if same(found) || !slices.ContainsFunc(before, same) {
					t.Errorf("%s: %s: %s\n  fix: %s\n  leads to %s: %s", name, found.Rule, found.Message, found.Fix.Text, f.Rule, f.Message)
				}
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d fixes were tried", tried)
	}
}

// Every file can be checked and printed.
func FuzzCheck(f *testing.F) {
	for _, r := range Rules() {
		f.Add([]byte(r.Bad))
		f.Add([]byte(r.Good))
	}
	for _, text := range filesOf(f, "../../../docs/examples/policies/*/*.yaml", "testdata/systems/*") {
		f.Add([]byte(text))
	}
	f.Add([]byte("dependencies: {a: {attempts: 1000, attempt_timeout: 2562047h, deadline: none, backoff: {base: 2562047h, cap: 2562047h}}}\nservices: {a: {slo: 1ns, visibility: 1ns, calls: [{dependency: a, times: 10000}, a]}}\n"))
	f.Add([]byte(istioRoute + "---\n" + shopGraph + "---\napiVersion: v1\nkind: ConfigMap\ndata:\n  a: |2\n      attempts: 3\n  b: \"attempts: 3\"\n"))
	f.Add([]byte("--- {attempts: 3, backoff: {jitter: none}}\n--- |\n text\n...\n---\nattempts: x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := must.Have(Check([]File{{Name: "a.yaml", Data: data}, {Name: "b.yaml", Data: data}}, Options{}))
		for _, write := range []func(io.Writer) error{
			r.Text, r.GitHub, r.GitLab, r.JSON,
			func(w io.Writer) error { return r.JUnit(w, Warning) },
			func(w io.Writer) error { return r.SARIF(w, "") },
		} {
			printed(t, write)
		}
		for _, found := range r.Findings {
			if found.Line < 1 || found.Column < 1 || found.Line > len(split(data)) || found.Message == "" || found.Fix.Text == "" {
				t.Errorf("%+v", found)
			}
		}
	})
}
