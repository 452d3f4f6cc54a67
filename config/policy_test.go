package config

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/internal/clients"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/codec/codectest"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/preset"
	"github.com/lullgo/lull/throttle"
)

func TestPolicies(t *testing.T) {
	mail := preset.BackgroundWorker()
	mail.Budget.Ratio, mail.Budget.Stock, mail.Attempts = 0.2, 0, 5
	for _, c := range []struct {
		data string
		want []NamedPolicy
	}{
		{"dependencies:\n  zero:\n  b: {}\n  a: {attempts: 2}\n", []NamedPolicy{{"zero", lull.Policy{}}, {"b", lull.Policy{}}, {"a", lull.Policy{Attempts: 2}}}},
		{"{}", []NamedPolicy{{"retry", lull.Policy{}}}},
		{"attempts: 2", []NamedPolicy{{"retry", lull.Policy{Attempts: 2}}}},
		{"preset: external-api", []NamedPolicy{{"retry", preset.ExternalAPI()}}},
		{"attempts: 5\npreset: background-worker\nbudget: {ratio: 20%, stock: 0}\n", []NamedPolicy{{"retry", mail}}},
		{"dependencies:\n  a: &a {attempts: 2, backoff: {base: 1ms, cap: 1s}}\n  b:\n    <<: *a\n    backoff: {base: 2ms}\n  c: *a\n", []NamedPolicy{
			{"a", lull.Policy{Attempts: 2, Backoff: backoff.Schedule{Base: time.Millisecond, Cap: time.Second}}},
			{"b", lull.Policy{Attempts: 2, Backoff: backoff.Schedule{Base: 2 * time.Millisecond}}},
			{"c", lull.Policy{Attempts: 2, Backoff: backoff.Schedule{Base: time.Millisecond, Cap: time.Second}}},
		}},
	} {
		got, err := ParsePolicies("conf/retry.yaml", []byte(c.data))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q:\n got %+v, %v\nwant %+v", c.data, got, err, c.want)
		}
	}
}

// full is a policy in which every field has been set that others do not forbid: a policy
// hedges or retries, and a linear wait has no factor.
var full = lull.Policy{
	Attempts: 7, AttemptTimeout: lull.NoTimeout, Deadline: 90 * time.Second, RateLimitedBase: 2 * time.Second, Timeouts: lull.TimeoutsAlways, Nested: lull.NestedAlways, HintLimit: time.Hour,
	Backoff: backoff.Schedule{Kind: backoff.Linear, Jitter: backoff.Equal, Base: time.Second, Cap: time.Minute, Floor: time.Millisecond, FastFirst: true},
	Budget:  budget.Config{Ratio: 0.07, Window: time.Minute, Earn: budget.Arrivals, Floor: 0.5, Cooldown: time.Second, Stock: 10, Unlimited: true},
	Breaker: breaker.Config{
		Off: true, Consecutive: 10, ConsecutiveFor: 2 * time.Second, FailureRate: 0.333, SlowRate: 0.9, SlowCall: time.Second, MinCalls: 5, Window: time.Minute,
		OpenFor: time.Second, OpenMax: time.Minute, OpenJitter: -1, Probes: 3, ProbeTimeout: 5 * time.Second, MetricsOnly: true,
	},
	Throttle: throttle.Config{Mode: throttle.Adaptive, Window: time.Minute, K: 1.5, MinRequests: 20, Recent: 5 * time.Second, ProbeEvery: -1},
	Limit:    bulkhead.Config{InFlight: 20_000, MaxWait: time.Second, MaxQueue: 100},
}

func TestPoliciesAreWrittenAndReadAgain(t *testing.T) {
	awkward := []string{"<<", "true", "null", "~", "1", "0x1", "a: b", "- a", "#a", "a #b", "'", `"`, "*a", "&a", "!a", "%a", "@a", "{", "[", "ä", "=", "2001-01-01", "policies", "?", "? a", "|", ">", ",", "a,b]"}
	policies := []NamedPolicy{{"full", full}, {"zero", lull.Policy{}}, {"internal", preset.InternalService()}}
	for _, name := range awkward {
		policies = append(policies, NamedPolicy{name, lull.Policy{Attempts: 2}})
	}
	data := must(FormatPolicies(policies))
	golden.File(t, "testdata/policies.yaml", string(data))
	again, err := ParsePolicies("f", data)
	if err != nil || !reflect.DeepEqual(again, policies) {
		t.Errorf("read again: %+v, %v, want %+v", again, err, policies)
	}
}

func TestPoliciesThatCannotBeWritten(t *testing.T) {
	for want, policies := range map[string][]NamedPolicy{
		`config: a policy file with nothing in it`:                                   nil,
		`config: the name "" under dependencies: want names`:                         {{Name: ""}},
		`config: the name " a" under dependencies: want names`:                       {{Name: " a"}},
		`config: the name "a\n" under dependencies: want names`:                      {{Name: "a\n"}},
		`config: the name "b" under dependencies: want names`:                        {{Name: "b"}, {Name: "b"}},
		`config: the name "` + strings.Repeat("a", 59):                               {{Name: strings.Repeat("a", 101)}},
		"config: dependencies.a.budget.ratio is NaN, which a file cannot hold":       {{"a", lull.Policy{Budget: budget.Config{Ratio: math.NaN()}}}},
		"config: dependencies.a.backoff.kind is kind(9), which a file cannot hold":   {{"a", lull.Policy{Backoff: backoff.Schedule{Kind: 9}}}},
		"config: dependencies.a.backoff.factor is +Inf, which a file cannot hold":    {{"a", lull.Policy{Backoff: backoff.Schedule{Factor: math.Inf(1)}}}},
		"config: dependencies.a.breaker.slow_rate is -Inf, which a file cannot hold": {{"a", lull.Policy{Breaker: breaker.Config{SlowRate: math.Inf(-1)}}}},
	} {
		if _, err := FormatPolicies(policies); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Texts with space around them, which a file has in quotes or over lines, are refused as
// the schema refuses them; so are letters that only look like ours when they are folded.
func TestWhatComesNearIsNotTaken(t *testing.T) {
	for data, want := range map[string]string{
		"attempts: ' 3'":            "3",
		"attempts: |\n  3\n":        "3",
		"deadline: '3s '":           "3s",
		"deadline: ' 3 sec'":        "3s",
		"budget: {ratio: '5% '}":    "5%",
		"breaker: {off: ' true'}":   "true",
		"timeouts: 'always '":       "always",
		"timeouts: alway\u017f":     "always",
		"throttle: {mode: a d}":     "",
		"backoff: {base: ' 0.1ns'}": "",
	} {
		_, err := ParsePolicies("f", []byte(data))
		if got := codectest.Located(t, err); len(got) != 1 || got[0].Suggestion != want || got[0].Allowed == "" {
			t.Errorf("%q: %v, want the suggestion %q", data, got, want)
		}
	}
}

func TestSetPolicy(t *testing.T) {
	p := full
	for _, assignment := range []string{"preset=external-api", "attempts=4", "backoff.base=50ms", "budget={ratio: 20%}", "breaker.off=true", "deadline=none"} {
		if err := SetPolicy(&p, assignment); err != nil {
			t.Errorf("%s: %v", assignment, err)
		}
	}
	want := preset.ExternalAPI()
	want.Backoff.Base, want.Breaker.Off, want.Deadline = 50*time.Millisecond, true, lull.NoTimeout
	want.Budget = lull.Policy{}.Budget
	want.Budget.Ratio = 0.2
	if p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
	for assignment, message := range map[string]string{
		"attempts":        `"attempts": want an assignment such as backoff.base=50ms`,
		"base=1s":         `base is unknown: want ` + strings.TrimPrefix(codec.MappingOf(reflect.TypeFor[lull.Policy](), "preset"), "a mapping of ") + `; did you mean rate_limited_base?`,
		"preset=internal": `preset is "internal": want internal-service, external-api, background-worker, command-line, edge, per-key, llm or a client that is all policy, such as go-retryablehttp; did you mean internal-service?`,
	} {
		if got := fmt.Sprint(SetPolicy(&p, assignment)); got != message {
			t.Errorf("%q:\n got %s\nwant %s", assignment, got, message)
		}
	}
	if p != want {
		t.Errorf("refused assignments changed it to %+v", p)
	}
}

// These tests have a few clients, as the program lull has all of them.
func init() {
	client := lull.Policy{
		Attempts: 5, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout,
		Backoff: backoff.Schedule{Jitter: backoff.None, Base: time.Second, Cap: 30 * time.Second}, RateLimitedBase: 1,
		Timeouts: lull.TimeoutsAlways, Nested: lull.NestedAlways, HintLimit: time.Hour,
		Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
	none := client
	none.Attempts, none.Backoff = 1, backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None}
	clients.Register([]clients.Client{
		{Name: "lull"}, {Name: "none", Policy: none}, {Name: "go-retryablehttp", Policy: client}, {Name: "grpc", Policy: client, Partial: true},
	})
}

// clientNames are the clients that the program lull takes. A test of package lab/rivals writes the file.
func clientNames(t testing.TB) []string {
	t.Helper()
	data := must(os.ReadFile("testdata/clients.txt"))
	return strings.Fields(string(data))
}

// What a program says that has no clients but its own.
func TestClientsAreUnknownToALibrary(t *testing.T) {
	for list, want := range map[int]string{0: "llm", 1: "a client that is all policy, such as go-retryablehttp"} {
		names := "internal-service, external-api, background-worker, command-line, edge, per-key"
		if list == 1 {
			names += ", llm"
		}
		if got := allowedPreset(clients.All()[:list]); got != names+" or "+want {
			t.Errorf("with %d clients: %s", list, got)
		}
	}
}
