package serviceconfig_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/serviceconfig"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/throttle"
)

type kase struct {
	Name            string
	RetryPolicy     json.RawMessage
	HedgingPolicy   json.RawMessage
	RetryThrottling json.RawMessage
	Error           *string
}

func fields(err error) []string {
	var all []string
	list, _ := errors.AsType[engine.Problems](err)
	for _, p := range list {
		all = append(all, p.Field)
	}
	return all
}

func of(lost []serviceconfig.Loss) []string {
	var all []string
	for _, l := range lost {
		all = append(all, l.Field)
	}
	return all
}

func marshal(t testing.TB, c serviceconfig.Config) []byte {
	t.Helper()
	data := must.Have(json.Marshal(c))
	return data
}

// made is what a policy is as a service config, and what is lost.
func made(t testing.TB, p lull.Policy, names ...serviceconfig.MethodName) (serviceconfig.Config, []serviceconfig.Loss) {
	t.Helper()
	c, lost, err := serviceconfig.Of(p, names...)
	if err != nil {
		t.Fatal(err)
	}
	return c, lost
}

// valid: whatever was read makes valid policies.
func valid(t *testing.T, c serviceconfig.Config) {
	t.Helper()
	check.Equal(t, c.Validate(), nil, "validity of %+v", c)
	for _, mc := range c.Methods {
		for _, r := range []serviceconfig.Reading{{}, {PolicyOnly: true}, {OldJitter: true, MaxCallAttempts: 1}} {
			if p, _ := mc.Policy(lull.Policy{}, r); p.Validate() != nil {
				t.Errorf("%+v, read as %+v, makes a policy that is not valid: %v", mc, r, p.Validate())
			}
		}
	}
	if c.Throttling != nil {
		if b, _ := serviceconfig.Budget(*c.Throttling); b.Validate() != nil || c.Throttling.Validate() != nil {
			t.Errorf("%+v makes no budget: %v, %v", c.Throttling, b.Validate(), c.Throttling.Validate())
		}
	}
}

// The published cases have their sources in them.
func TestPublishedValidation(t *testing.T) {
	var v struct {
		RetryPolicy     []kase
		HedgingPolicy   []kase
		RetryThrottling []kase
		Names           []struct{ Name, Want string }
		Durations       [][2]string `json:"duration_json"`
	}
	data, err := os.ReadFile("testdata/service_config_validation.json")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(v.RetryPolicy) < 20 || len(v.HedgingPolicy) < 9 || len(v.RetryThrottling) < 9 || len(v.Names) < 8 || len(v.Durations) < 17 {
		t.Fatalf("cases are missing: %+v", v)
	}
	holds := func(section, field string, c kase, config string) {
		sc, err := serviceconfig.Parse([]byte(config))
		if c.Error == nil {
			check.Equal(t, err, nil, "%s, %s", section, c.Name)
			if again, err := serviceconfig.Parse(marshal(t, sc)); err != nil || !reflect.DeepEqual(sc, again) {
				t.Errorf("%s, %s: written and read it is %+v, %v", section, c.Name, again, err)
			}
			valid(t, sc)
			return
		}
		got := fields(err)
		if len(got) == 0 {
			t.Errorf("%s, %s: passed", section, c.Name)
			return
		}
		for _, f := range []string{"maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes", "hedgingDelay", "nonFatalStatusCodes", "maxTokens", "tokenRatio"} {
			named := strings.Contains(c.Name+*c.Error, f)
			found := slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, field+"."+f) })
			if named && !found || !named && found && strings.Contains(c.Name, "omitted") {
				t.Errorf("%s, %s: complains of %v", section, c.Name, got)
			}
		}
		for _, p := range got {
			if !strings.HasPrefix(p, field) {
				t.Errorf("%s, %s: complains of %q", section, c.Name, p)
			}
		}
	}
	const path = "methodConfig[0]."
	for _, c := range v.RetryPolicy {
		holds("retryPolicy", path+"retryPolicy", c, `{"methodConfig":[{"name":[{}],"retryPolicy":`+string(c.RetryPolicy)+`}]}`)
	}
	for _, c := range v.HedgingPolicy {
		holds("hedgingPolicy", path+"hedgingPolicy", c, `{"methodConfig":[{"name":[{}],"hedgingPolicy":`+string(c.HedgingPolicy)+`}]}`)
	}
	for _, c := range v.RetryThrottling {
		holds("retryThrottling", "retryThrottling", c, `{"retryThrottling":`+string(c.RetryThrottling)+`}`)
	}
	for _, n := range v.Names {
		list := "[" + n.Name + "]"
		if after, ok := strings.CutPrefix(n.Name, "dup "); ok {
			list = after
		}
		sc, err := serviceconfig.Parse([]byte(`{"methodConfig":[{"name":` + list + `}]}`))
		switch {
		case n.Want == "error":
			if err == nil {
				t.Errorf("name %s: passed", n.Name)
			}
		case err != nil:
			t.Errorf("name %s: %v", n.Name, err)
		default:
			want := map[string]string{"default": "/"}[n.Want]
			if want == "" {
				want = n.Want
			}
			check.Equal(t, sc.Methods[0].Names[0].Pattern(), want, "name %s", n.Name)
		}
	}
	for _, d := range v.Durations {
		text := `"` + d[0] + `"`
		if number, ok := strings.CutSuffix(d[0], " (number)"); ok {
			text = number
		}
		read := func(text string) (time.Duration, error) {
			sc, err := serviceconfig.Parse([]byte(`{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":` + text + `}}]}`))
			if err != nil {
				return 0, err
			}
			return sc.Methods[0].Hedging.HedgingDelay, nil
		}
		// None may be negative here: the sign must be all that is wrong.
		got, err := read(strings.Replace(text, "-", "", 1))
		if strings.HasPrefix(d[1], "error") {
			if err == nil {
				t.Errorf("duration %s: passed", d[0])
			}
			continue
		}
		if err != nil {
			t.Errorf("duration %s: %v", d[0], err)
			continue
		}
		if strings.HasPrefix(d[1], "saturate") {
			if got != math.MaxInt64 {
				t.Errorf("duration %s: %v", d[0], got)
			}
		} else if want, err := time.ParseDuration(d[1]); err == nil && got != want.Abs() {
			t.Errorf("duration %s: %v", d[0], got)
		}
		if strings.HasPrefix(d[0], "-") {
			if _, err := read(text); err == nil {
				t.Errorf("duration %s: passed", d[0])
			}
		}
	}
}

func TestEveryProblemAtOnce(t *testing.T) {
	_, err := serviceconfig.Parse([]byte(`{"retryThrottling": {"tokenRatio": 0.0001, "maxTokens": 10.5},
		"methodConfig": [
			{"name": [{"service": "a.A"}, {"service": "a.A", "method": 7}], "timeout": "0s",
			 "retryPolicy": {"maxAttempts": 2.5, "initialBackoff": "1ms", "maxBackoff": "2s", "backoffMultiplier": "2", "retryableStatusCodes": ["UNAVAILABLE", "UNAVAILBLE", "OOPS", 17, "OK", {}, null, 1.5], "perAttemptRecvTimeout": null},
			 "hedgingPolicy": {"maxAttempts": 2}},
			{"name": [{"service": "a.A"}, {"service": "b/B"}], "retryPolicy": [], "timeout": "1s", "timeout": "2s"},
			"odd",
			{"name": {}, "timeout": {}, "hedgingPolicy": {"maxAttempts": {}, "hedgingDelay": 0, "nonFatalStatusCodes": {}}},
			{"timeout": "0s", "name": [{"method": "Get"}]}
		]
	}`))
	const want = `line 1: retryThrottling.tokenRatio is 0.0001: want a number from 0.001
line 1: retryThrottling.maxTokens is 10.5: want a whole number from 1 to 1000
line 3: methodConfig[0].name[1].method is 7: want a text
line 3: methodConfig[0].timeout is "0s": want a positive duration in seconds such as "0.25s", with up to nine decimals
line 4: methodConfig[0].retryPolicy.maxAttempts is 2.5: want a whole number from 2
line 4: methodConfig[0].retryPolicy.initialBackoff is "1ms": want a positive duration in seconds such as "0.25s", with up to nine decimals; did you mean 0.001s?
line 4: methodConfig[0].retryPolicy.backoffMultiplier is "2": want a positive number
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[1] is "UNAVAILBLE": want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16; did you mean UNAVAILABLE?
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[2] is "OOPS": want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[3] is 17: want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[4] is "OK": want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[5] is an object: want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[6] is null: want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[7] is 1.5: want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
line 5: methodConfig[0].hedgingPolicy is given beside a retryPolicy: want one of the two
line 6: methodConfig[1].name[0] is "/a.A/" once more: want each name once (this one is methodConfig[0].name[0])
line 6: methodConfig[1].name[1] is "/b/B/": want the full name of a service and the name of a method, without slashes
line 6: methodConfig[1].retryPolicy is a list: want an object
line 6: methodConfig[1].timeout is given twice: want one value
line 7: methodConfig[2] is "odd": want an object
line 8: methodConfig[3].name is an object: want a list
line 8: methodConfig[3].timeout is an object: want a positive duration in seconds such as "0.25s", with up to nine decimals
line 8: methodConfig[3].hedgingPolicy.maxAttempts is an object: want a whole number from 2
line 8: methodConfig[3].hedgingPolicy.hedgingDelay is 0: want zero or a positive duration in seconds such as "0.25s", with up to nine decimals
line 8: methodConfig[3].hedgingPolicy.nonFatalStatusCodes is an object: want a list of status codes
line 9: methodConfig[4].timeout is "0s": want a positive duration in seconds such as "0.25s", with up to nine decimals
line 9: methodConfig[4].name[0].service is missing: want the service of method "Get"`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	if p, ok := errors.AsType[tree.Mistake](err); !ok || p.Line != 1 || p.Column != 36 {
		t.Errorf("the first problem is at %d:%d", p.Line, p.Column)
	}
	if p, ok := errors.AsType[engine.Problem](err); !ok || p != (engine.Problem{Field: "retryThrottling.tokenRatio", Value: "0.0001", Allowed: "a number from 0.001"}) {
		t.Errorf("the first problem is %+v", p)
	}
	all, _ := errors.AsType[engine.Problems](err)
	if last := all[len(all)-1]; len(all) != strings.Count(want, "\n")+1 || last.Field != "methodConfig[4].name[0].service" || last.Value != "missing" || last.Allowed != `the service of method "Get"` {
		t.Errorf("%d problems, the last %+v", len(all), last)
	}
}

// What is required and null, or null at first, is missing: nobody may look into it.
func TestNullAndGivenTwice(t *testing.T) {
	for _, name := range []string{"maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes", "hedgingDelay", "maxTokens", "tokenRatio"} {
		for _, values := range [][2]string{{`null`, `1`}, {`null`, `"1s"`}, {`null`, `null`}, {`[]`, `null`}, {`{}`, `{}`}} {
			object := fmt.Sprintf(`{%q: %s, %q: %s}`, name, values[0], name, values[1])
			_, err := serviceconfig.Parse([]byte(`{"methodConfig": [{"name": [{}], "retryPolicy": ` + object + `}, {"hedgingPolicy": ` + object + `}], "retryThrottling": ` + object + `}`))
			if all := fields(err); !slices.ContainsFunc(all, func(f string) bool { return strings.HasSuffix(f, "."+name) }) {
				t.Errorf("%s: %v", object, err)
			}
		}
	}
}

// A config made in code is held to the rules for those that are read.
func TestValidate(t *testing.T) {
	retry := func(change func(*serviceconfig.RetryPolicy)) serviceconfig.Config {
		r := &serviceconfig.RetryPolicy{MaxAttempts: 3, InitialBackoff: 1, MaxBackoff: 1, BackoffMultiplier: 1, RetryableStatusCodes: []serviceconfig.Code{14}}
		change(r)
		return serviceconfig.Config{Methods: []serviceconfig.MethodConfig{{Names: []serviceconfig.MethodName{{}}, Retry: r}}}
	}
	named := func(names ...serviceconfig.MethodName) serviceconfig.Config {
		return serviceconfig.Config{Methods: []serviceconfig.MethodConfig{{Names: names}}}
	}
	early := named(serviceconfig.MethodName{})
	early.Methods[0].Hedging = &serviceconfig.HedgingPolicy{MaxAttempts: 2, HedgingDelay: -1}
	for want, c := range map[string]serviceconfig.Config{ // those that no text has, and one of the others
		"": retry(func(*serviceconfig.RetryPolicy) {}),
		`methodConfig[0].retryPolicy.initialBackoff is "-0.`:                                     retry(func(r *serviceconfig.RetryPolicy) { r.InitialBackoff = -1 }),
		"methodConfig[0].retryPolicy.backoffMultiplier is NaN":                                   retry(func(r *serviceconfig.RetryPolicy) { r.BackoffMultiplier = math.NaN() }),
		"methodConfig[0].retryPolicy.retryableStatusCodes is empty":                              retry(func(r *serviceconfig.RetryPolicy) { r.RetryableStatusCodes = nil }),
		"methodConfig[0].retryPolicy.retryableStatusCodes[0] is 17":                              retry(func(r *serviceconfig.RetryPolicy) { r.RetryableStatusCodes = []serviceconfig.Code{17} }),
		`methodConfig[0].retryPolicy.retryableStatusCodes[1] is "OK"`:                            retry(func(r *serviceconfig.RetryPolicy) { r.RetryableStatusCodes = []serviceconfig.Code{1, 0} }),
		`methodConfig[0].retryPolicy.perAttemptRecvTimeout is "-1s"`:                             retry(func(r *serviceconfig.RetryPolicy) { r.PerAttemptRecvTimeout = -time.Second }),
		`methodConfig[0].hedgingPolicy.hedgingDelay is "-0.000000001s": want zero or a positive`: early,
		`methodConfig[0].name[0] is "/a/b/"`:                                                     named(serviceconfig.MethodName{Service: "a/b"}),
		`methodConfig[0].name[1] is "/a.A/" once more`:                                           named(serviceconfig.MethodName{Service: "a.A"}, serviceconfig.MethodName{Service: "a.A"}),
		"retryThrottling.maxTokens is 1001: want a whole number from 1":                          {Throttling: &budget.GRPCConfig{MaxTokens: 1001, TokenRatio: 1}},
		"retryThrottling.tokenRatio is +Inf: want a number from 0.001":                           {Throttling: &budget.GRPCConfig{MaxTokens: 10, TokenRatio: math.Inf(1)}},
	} {
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestWhatIsNoServiceConfig(t *testing.T) {
	for text, want := range map[string]string{
		``:                   "line 1: service config is not JSON: unexpected EOF (column 1): want an object",
		`{`:                  "unexpected EOF",
		`{"a": 1,}`:          "invalid character",
		"{\n  \"a\" 1}":      "line 2: service config is not JSON: invalid character '1' after object key (column 7)",
		`{} {}`:              "line 1: service config is not JSON: there is more after the end (column 4)",
		`[]`:                 "service config is a list: want an object",
		`null`:               "service config is null: want an object",
		`{"methodConfig":0}`: "methodConfig is 0: want a list",
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000): "nested deeper than 100",
	} {
		if _, err := serviceconfig.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

func TestWhatIsReadOver(t *testing.T) {
	c := must.Have(serviceconfig.Parse([]byte(`{
		"loadBalancingConfig": [{"round_robin": {}}],
		"methodConfig": [
			{"waitForReady": true, "name": [{"service": "a.A", "comment": "x"}], "retryPolicy": {"MaxAttempts": 3, "initialBackoff": "0.1s", "maxbackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": [14, "unavailable", "Cancelled"], "later": 1}},
			{"timeout": "1s"}
		]
	}`)))
	if want := []string{"methodConfig[0].name[0].comment", "methodConfig[0].retryPolicy.later", "methodConfig[0].waitForReady", "methodConfig[1]", "loadBalancingConfig"}; !slices.Equal(c.Ignored, want) {
		t.Errorf("ignored %q, want %q", c.Ignored, want)
	}
	want := &serviceconfig.RetryPolicy{MaxAttempts: 3, InitialBackoff: 100 * time.Millisecond, MaxBackoff: time.Second, BackoffMultiplier: 2, RetryableStatusCodes: []serviceconfig.Code{serviceconfig.Unavailable, 1}}
	if len(c.Methods) != 1 || !reflect.DeepEqual(c.Methods[0].Retry, want) {
		t.Errorf("config %+v", c.Methods)
	}
}

// More attempts than anybody makes are no mistake: they count as 5.
func TestNumbersWithoutEnd(t *testing.T) {
	for text, want := range map[string]int{"2": 2, "6.0": 6, "2147483648": math.MaxInt32, "1e300": math.MaxInt32} {
		c, err := serviceconfig.Parse([]byte(`{"methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": ` + text + `}}]}`))
		if err != nil || c.Methods[0].Hedging.MaxAttempts != want {
			t.Errorf("%s: %+v, %v", text, c.Methods, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for method, want := range map[string][3]string{
		"/a.A/Get": {"/a.A/Get", "/a.A/", "/"}, "odd": {"odd", "", "/"}, "/": {"/", "/", "/"}, "": {"", "", "/"},
	} {
		check.Equal(t, serviceconfig.Patterns(method), want, "%s", method)
	}
	for pattern, ok := range map[string]bool{"/": true, "/a/": true, "/a/B": true, "": false, "a/B": false, "//B": false, "/a": false, "/a/B/C": false, "//": false} {
		if n, got := serviceconfig.NameOf(pattern); got != ok || ok && n.Pattern() != pattern {
			t.Errorf("%q: %v, %v", pattern, n, got)
		}
	}
}

func TestCodes(t *testing.T) {
	for c := serviceconfig.OK; c <= 16; c++ {
		if got, ok := serviceconfig.CodeOf(strings.ToLower(c.String())); !ok || got != c {
			t.Errorf("%v is %v, %v", c, got, ok)
		}
	}
	if c, ok := serviceconfig.CodeOf("code 17"); ok || serviceconfig.Code(17).String() != "code 17" {
		t.Errorf("a code that gRPC does not have is %v", c)
	}
}

func TestARetryPolicyAsAPolicy(t *testing.T) {
	mc := serviceconfig.MethodConfig{Timeout: 5 * time.Second, Retry: &serviceconfig.RetryPolicy{
		MaxAttempts: 9, InitialBackoff: 100 * time.Millisecond, MaxBackoff: time.Second, BackoffMultiplier: 3,
		RetryableStatusCodes: []serviceconfig.Code{serviceconfig.Unavailable}, PerAttemptRecvTimeout: 10 * time.Second,
	}}
	before := lull.Policy{AttemptTimeout: 7 * time.Second, HintLimit: time.Minute, Backoff: backoff.Schedule{FastFirst: true}}
	p, lost := mc.Policy(before, serviceconfig.Reading{})
	if err := p.Validate(); err != nil || len(lost) != 0 {
		t.Fatal(err, lost)
	}
	if p.Attempts != 5 || p.Deadline != 5*time.Second || p.AttemptTimeout != 5*time.Second || p.HintLimit != time.Minute {
		t.Errorf("policy %+v", p)
	}
	// min(100ms × 3^(n-1), 1s) × 0.8 to 1.2 (gRFC A6).
	for n, c := range []time.Duration{100, 300, 900, 1000, 1000} {
		c *= time.Millisecond
		lo := p.Backoff.Delay(n+1, 0, func() uint64 { return 0 })
		hi := p.Backoff.Delay(n+1, 0, func() uint64 { return math.MaxUint64 })
		if p.Backoff.Ceiling(n+1) != c || lo != c-c/5 || hi != c+c/5 {
			t.Errorf("retry %d: %v, %v to %v", n+1, p.Backoff.Ceiling(n+1), lo, hi)
		}
	}
	// An attempt ends no later than its call.
	short := mc
	short.Retry = nil
	if p, _ := short.Policy(before, serviceconfig.Reading{}); p.AttemptTimeout != 5*time.Second || p.Attempts != 0 || p.Backoff != before.Backoff {
		t.Errorf("a timeout alone: %+v", p)
	}
	old, _ := mc.Policy(before, serviceconfig.Reading{OldJitter: true, MaxCallAttempts: 8})
	if old.Attempts != 8 || old.Backoff != (backoff.Schedule{Base: 100 * time.Millisecond, Cap: time.Second, Factor: 3}) {
		t.Errorf("as it was once: %+v", old)
	}
	for _, largest := range []time.Duration{1, 7, time.Millisecond, 999999999, math.MaxInt64} {
		mc.Retry.InitialBackoff, mc.Retry.MaxBackoff = largest, largest
		p, _ := mc.Policy(lull.Policy{}, serviceconfig.Reading{})
		if got := p.Backoff.Ceiling(1); largest >= time.Millisecond && got != largest && largest != math.MaxInt64 || p.Validate() != nil {
			t.Errorf("maxBackoff %v: %v before jitter, %v", largest, got, p.Validate())
		}
	}
	// A file has nothing but the policy: more is lost.
	p, lost = mc.Policy(before, serviceconfig.Reading{PolicyOnly: true})
	if p.Timeouts != lull.TimeoutsNever || p.RateLimitedBase <= p.Backoff.Ceiling(1) && p.Backoff.Ceiling(1) < math.MaxInt64/4 {
		t.Errorf("alone: %+v", p)
	}
	check.Slices(t, of(lost), []string{"retryPolicy.perAttemptRecvTimeout", "retryPolicy.maxAttempts", "retryPolicy.retryableStatusCodes"}, "alone: lost")
}

func TestARetryPolicyThatNoPolicyCanBe(t *testing.T) {
	mc := serviceconfig.MethodConfig{Retry: &serviceconfig.RetryPolicy{
		MaxAttempts: 2, InitialBackoff: 2 * time.Second, MaxBackoff: time.Second, BackoffMultiplier: 0.5,
		RetryableStatusCodes: []serviceconfig.Code{serviceconfig.ResourceExhausted, serviceconfig.DeadlineExceeded},
	}}
	p, lost := mc.Policy(lull.Policy{}, serviceconfig.Reading{})
	if p.Validate() != nil || p.Backoff.Ceiling(1) != time.Second || p.Backoff.Ceiling(5) != time.Second {
		t.Errorf("policy %+v, %v", p, p.Validate())
	}
	check.Slices(t, of(lost), []string{"retryPolicy.backoffMultiplier", "retryPolicy.initialBackoff", "retryPolicy.retryableStatusCodes"}, "lost")
	// Timeouts are always repeated, since they are in the list.
	if _, lost := mc.Policy(lull.Policy{Timeouts: lull.TimeoutsAlways}, serviceconfig.Reading{}); len(lost) != 2 {
		t.Errorf("lost %q", of(lost))
	}
}

func TestAHedgingPolicyAsAPolicy(t *testing.T) {
	base := lull.Policy{Attempts: 4, HintLimit: time.Minute, Hedge: hedge.Config{Attempts: 1, MaxDelay: time.Second}}
	for _, c := range []struct {
		hedging serviceconfig.HedgingPolicy
		most    int
		want    hedge.Config
		lost    []string
	}{
		{serviceconfig.HedgingPolicy{MaxAttempts: 3, HedgingDelay: 20 * time.Millisecond, NonFatalStatusCodes: []serviceconfig.Code{serviceconfig.Unavailable}}, 0,
			hedge.Config{Attempts: 3, Delay: 20 * time.Millisecond, Share: -1, InFlight: -1}, nil},
		{serviceconfig.HedgingPolicy{MaxAttempts: 2}, 0, hedge.Config{Attempts: 2, Delay: hedge.AtOnce, Share: -1, InFlight: -1}, nil},
		{serviceconfig.HedgingPolicy{MaxAttempts: 100, HedgingDelay: 1}, 0, hedge.Config{Attempts: 5, Delay: problem.ShortestDuration, Share: -1, InFlight: -1}, nil},
		{serviceconfig.HedgingPolicy{MaxAttempts: 100, HedgingDelay: math.MaxInt64}, 3, hedge.Config{Attempts: 3, Delay: math.MaxInt64, Share: -1, InFlight: -1}, nil},
		{serviceconfig.HedgingPolicy{MaxAttempts: 100, HedgingDelay: 1}, 8, hedge.Config{Attempts: 5, Delay: problem.ShortestDuration, Share: -1, InFlight: -1}, []string{"hedgingPolicy.maxAttempts"}},
		{serviceconfig.HedgingPolicy{MaxAttempts: 2, HedgingDelay: 1}, 1, hedge.Config{Attempts: 1, Delay: problem.ShortestDuration, Share: -1, InFlight: -1}, nil},
		{serviceconfig.HedgingPolicy{MaxAttempts: 2, HedgingDelay: 1, NonFatalStatusCodes: []serviceconfig.Code{serviceconfig.ResourceExhausted, serviceconfig.DeadlineExceeded}}, 0,
			hedge.Config{Attempts: 2, Delay: problem.ShortestDuration, Share: -1, InFlight: -1}, []string{"hedgingPolicy.hedgingDelay", "hedgingPolicy.nonFatalStatusCodes"}},
	} {
		p, lost := (serviceconfig.MethodConfig{Timeout: time.Second, Hedging: &c.hedging}).Policy(base, serviceconfig.Reading{MaxCallAttempts: c.most})
		want := base
		want.Attempts, want.Hedge, want.Deadline = 1, c.want, time.Second
		if p != want || !slices.Equal(of(lost), c.lost) || p.Validate() != nil {
			t.Errorf("%+v: %+v (%v), lost %v", c.hedging, p.Hedge, p.Validate(), lost)
		}
	}
	// A retryPolicy under a client that hedges: the method is retried, not hedged.
	retry := &serviceconfig.RetryPolicy{MaxAttempts: 3, InitialBackoff: 1, MaxBackoff: 1, BackoffMultiplier: 1, RetryableStatusCodes: []serviceconfig.Code{serviceconfig.Unavailable}}
	p, lost := serviceconfig.MethodConfig{Retry: retry}.Policy(lull.Policy{Hedge: hedge.Config{Attempts: 2}}, serviceconfig.Reading{})
	if p.Attempts != 3 || p.Hedge != (hedge.Config{}) || len(lost) != 0 || p.Validate() != nil {
		t.Errorf("a retryPolicy: %+v, %v", p, p.Validate())
	}
}

func TestCodesInAPolicy(t *testing.T) {
	const (
		cancelled = serviceconfig.Code(1)
		some      = 100 * time.Millisecond
	)
	for _, c := range []struct {
		codes    []serviceconfig.Code
		timeouts engine.TimeoutRetries
		patient  bool
		why      string
	}{
		{[]serviceconfig.Code{14}, lull.TimeoutsNever, true, "also retries RESOURCE_EXHAUSTED"},
		{[]serviceconfig.Code{14, 8}, lull.TimeoutsNever, false, ""},
		{[]serviceconfig.Code{14, 8, 4}, lull.TimeoutsAlways, false, ""},
		{[]serviceconfig.Code{cancelled, 8}, lull.TimeoutsNever, false, "does not retry CANCELLED and also retries UNAVAILABLE"},
	} {
		mc := serviceconfig.MethodConfig{Retry: &serviceconfig.RetryPolicy{MaxAttempts: 2, InitialBackoff: some, MaxBackoff: some, BackoffMultiplier: 1, RetryableStatusCodes: c.codes}}
		p, lost := mc.Policy(lull.Policy{}, serviceconfig.Reading{PolicyOnly: true})
		if p.Timeouts != c.timeouts || (p.RateLimitedBase > some) != c.patient {
			t.Errorf("%v: %+v", c.codes, p)
		}
		why := ""
		for _, l := range lost {
			why += l.Why
		}
		if c.why == "" && why != "" || !strings.Contains(why, c.why) {
			t.Errorf("%v: %q, want %q", c.codes, why, c.why)
		}
		// The list comes back as far as a policy can hold it.
		back, _ := made(t, p)
		if want := c.codes; c.codes[0] == 14 && !slices.Equal(back.Methods[0].Retry.RetryableStatusCodes, want) {
			t.Errorf("%v comes back as %v", want, back.Methods[0].Retry.RetryableStatusCodes)
		}
	}
}

func TestThrottlingAndBudgets(t *testing.T) {
	for tokens := 1; tokens <= 1000; tokens++ {
		c := budget.GRPCConfig{MaxTokens: tokens, TokenRatio: 0.1}
		b, lost := serviceconfig.Budget(c)
		if err := b.Validate(); err != nil || len(lost) != 1 || !lost[0].Changed {
			t.Fatalf("%d tokens: %v, %v", tokens, err, lost)
		}
		// The throttle pays for as many retries in a row as the budget has in stock, one
		// at least.
		throttle := must.Have(budget.NewGRPCThrottle(c))
		granted := 0
		for throttle.Failed(0); throttle.Withdraw(0, budget.Transient, nil).OK; throttle.Failed(0) {
			granted++
		}
		if want := max(granted, 1); b.Stock != float64(want) {
			t.Fatalf("%d tokens: %v in stock, the throttle pays for %d", tokens, b.Stock, granted)
		}
	}
	for _, ratio := range []float64{0.001, 0.5466, 0.1, 7, 1e6} {
		b, _ := serviceconfig.Budget(budget.GRPCConfig{MaxTokens: 10, TokenRatio: ratio})
		if want := min(math.Trunc(ratio*1000+1e-6)/1000, budget.MaxRatio); b.Ratio != want || b.Validate() != nil {
			t.Errorf("ratio %v: %v, want %v", ratio, b.Ratio, want)
		}
	}
}

func TestAPolicyAsAServiceConfig(t *testing.T) {
	c, lost := made(t, lull.Policy{}, serviceconfig.MethodName{Service: "a.A", Method: "Get"})
	const want = `{"methodConfig":[{"name":[{"service":"a.A","method":"Get"}],"timeout":"30s","retryPolicy":{"maxAttempts":5,"initialBackoff":"0.1s","maxBackoff":"20s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":42,"tokenRatio":0.1}}`
	check.Equal(t, string(marshal(t, c)), want, "string(marshal(t, c))")
	check.Slices(t, of(lost), []string{"AttemptTimeout", "Backoff.Jitter", "RateLimitedBase", "Timeouts", "HintLimit", "Budget", "Nested", "Breaker"}, "lost")
	if _, _, err := serviceconfig.Of(lull.Policy{Attempts: -1}); err == nil {
		t.Error("an invalid policy was written")
	}
	const twice = `methodConfig[0].name[2] is "/a/" once more: want`
	if c, lost, err := serviceconfig.Of(lull.Policy{}, serviceconfig.MethodName{Service: "a"}, serviceconfig.MethodName{Service: "b"}, serviceconfig.MethodName{Service: "a"}); err == nil || !strings.HasPrefix(err.Error(), twice) || c.Methods != nil || lost != nil {
		t.Errorf("%v, want %s", err, twice)
	}
	if c, lost, _ := serviceconfig.Of(lull.Policy{Attempts: 9}); c.Methods[0].Retry.MaxAttempts != 5 || lost[1].Field != "Attempts" {
		t.Errorf("nine attempts: %+v, %v", c.Methods[0].Retry, lost)
	}
}

func TestAPolicyThatHedgesAsAServiceConfig(t *testing.T) {
	for _, c := range []struct {
		hedge hedge.Config
		want  string
		lost  []string
	}{
		{hedge.Config{Attempts: 3, Delay: 20 * time.Millisecond}, `"hedgingPolicy":{"maxAttempts":3,"hedgingDelay":"0.02s","nonFatalStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":42,"tokenRatio":0.1}}`,
			[]string{"AttemptTimeout", "Hedge.Share", "Hedge.InFlight", "RateLimitedBase", "Timeouts", "HintLimit", "Budget", "Nested", "Breaker"}},
		{hedge.Config{Attempts: 3, Delay: 20 * time.Millisecond, Share: -1, InFlight: -1}, `"hedgingPolicy":{"maxAttempts":3,"hedgingDelay":"0.02s","nonFatalStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":42,"tokenRatio":0.1}}`,
			[]string{"AttemptTimeout", "RateLimitedBase", "Timeouts", "HintLimit", "Budget", "Nested", "Breaker"}},
		{hedge.Config{Attempts: 2, Delay: hedge.AtOnce, Share: -1, InFlight: -1}, `"hedgingPolicy":{"maxAttempts":2,"nonFatalStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":42,"tokenRatio":0.1}}`,
			[]string{"AttemptTimeout", "RateLimitedBase", "Timeouts", "HintLimit", "Budget", "Nested", "Breaker"}},
		{hedge.Config{Attempts: 2}, `"retryPolicy":{"maxAttempts":2,"initialBackoff":"0.1s","maxBackoff":"20s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":42,"tokenRatio":0.1}}`,
			[]string{"AttemptTimeout", "Hedge", "Backoff.Jitter", "RateLimitedBase", "Timeouts", "HintLimit", "Budget", "Nested", "Breaker"}},
	} {
		sc, lost := made(t, lull.Policy{Hedge: c.hedge})
		want := `{"methodConfig":[{"name":[{}],"timeout":"30s",` + c.want
		text := marshal(t, sc)
		check.Equal(t, string(text), want, "text")
		check.Slices(t, of(lost), c.lost, "lost")
		again, err := serviceconfig.Parse(text)
		if err != nil || !reflect.DeepEqual(sc, again) {
			t.Fatalf("%s reads back as %+v, %v", text, again, err)
		}
		for _, r := range []serviceconfig.Reading{{}, {PolicyOnly: true}} {
			if p, _ := again.Methods[0].Policy(lull.Policy{}, r); c.hedge.Share < 0 && (p.Hedge != c.hedge || p.Attempts != 1) { // nothing of it is lost
				t.Errorf("%+v comes back as %+v", c.hedge, p.Hedge)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"methodConfig":[{"name":[{"service":"a.A"}],"timeout":"1s","retryPolicy":{"maxAttempts":3,"initialBackoff":".1s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE",4]}}],"retryThrottling":{"maxTokens":10,"tokenRatio":0.1}}`)
	f.Add(`{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":"0s","nonFatalStatusCodes":[]}}],"a":{"b":[null,true,1e9]}}`)
	f.Add(`{"methodConfig":[{"name":null}]}`)
	f.Add(`{"retryThrottling":{"maxTokens":null,"maxTokens":1,"tokenRatio":null,"tokenRatio":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := serviceconfig.Parse([]byte(text))
		if err != nil {
			if all := fields(err); len(all) == 0 || slices.Contains(all, "") {
				t.Fatalf("error %v names no field", err)
			}
			return
		}
		out := marshal(t, c)
		again, err := serviceconfig.Parse(out)
		c.Ignored = nil
		for _, mc := range c.Methods {
			if mc.Hedging != nil && len(mc.Hedging.NonFatalStatusCodes) == 0 {
				mc.Hedging.NonFatalStatusCodes = nil
			}
		}
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("%+v written as %s reads back as %+v, %v", c, out, again, err)
		}
		valid(t, c)
	})
}

const ms = time.Millisecond

// plain is a policy that a service config can hold whole: nothing of it is lost.
func plain() lull.Policy {
	return lull.Policy{
		AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, HintLimit: math.MaxInt64,
		Backoff:         backoff.Schedule{Jitter: backoff.Proportional, Cap: 1200 * ms},
		RateLimitedBase: 1, Timeouts: lull.TimeoutsNever, Nested: lull.NestedAlways,
		Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
}

// Each thing that gRPC does not have is reported, and by itself.
func TestWhatIsLostOfAPolicy(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*lull.Policy)
	}{
		{"[]", func(*lull.Policy) {}},
		{"[AttemptTimeout]", func(p *lull.Policy) { p.AttemptTimeout = time.Second }},
		{"[]", func(p *lull.Policy) { p.AttemptTimeout, p.Deadline = time.Second, time.Second }}, // the call ends as soon
		{"[Attempts]", func(p *lull.Policy) { p.Attempts = 6 }},
		{"[]", func(p *lull.Policy) { p.Attempts = 5 }},
		{"[HintLimit]", func(p *lull.Policy) { p.HintLimit = time.Hour }},
		{"[RateLimitedBase]", func(p *lull.Policy) { p.RateLimitedBase = 101 * ms }},
		{"[]", func(p *lull.Policy) { p.RateLimitedBase = 100 * ms }},
		{"[Timeouts]", func(p *lull.Policy) { p.Timeouts = engine.TimeoutsWhenAnswered }},
		{"[]", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsAlways }},
		{"[Nested]", func(p *lull.Policy) { p.Nested = engine.NestedNever }},
		{"[Budget]", func(p *lull.Policy) { p.Budget = budget.Config{} }},
		{"[Breaker]", func(p *lull.Policy) { p.Breaker = breaker.Config{} }},
		{"[Throttle]", func(p *lull.Policy) { p.Throttle.Mode = throttle.Adaptive }},
		{"[Limit]", func(p *lull.Policy) { p.Limit = bulkhead.Config{InFlight: 1} }},
		{"[Hedge]", func(p *lull.Policy) { p.Hedge = hedge.Config{Attempts: 2} }},
	} {
		p := plain()
		c.change(&p)
		out, lost := made(t, p)
		check.Equal(t, fmt.Sprint(of(lost)), c.want, "is lost")
		if len(lost) > 0 {
			continue
		}
		// Nothing is lost: it comes back as it was, on top of what gRPC has for everybody.
		base := plain()
		base.Backoff, base.RateLimitedBase, base.Timeouts = backoff.Schedule{}, 0, 0
		back, more := out.Methods[0].Policy(base, serviceconfig.Reading{PolicyOnly: true})
		if back.Attempts != p.WithDefaults().Attempts || back.Deadline != p.Deadline || back.Timeouts != p.Timeouts || back.Backoff.Ceiling(1) != 100*ms || back.Backoff.Ceiling(9) != time.Second || len(more) != 0 {
			t.Errorf("%+v comes back as %+v, %v", p, back, more)
		}
	}
}

// Without retries there is nothing that a config could get wrong.
func TestOneAttemptLosesNothing(t *testing.T) {
	p := plain()
	p.Attempts, p.HintLimit, p.RateLimitedBase, p.Nested, p.Backoff = 1, 0, 0, engine.NestedNever, backoff.Schedule{}
	c, lost, err := serviceconfig.Of(p)
	if err != nil || len(lost) != 0 || string(marshal(t, c)) != `{"methodConfig":[{"name":[{}]}]}` {
		t.Errorf("%s, %v, %v", marshal(t, c), lost, err)
	}
}

func TestSchedulesAsRetryPolicies(t *testing.T) {
	const p = backoff.Proportional
	for _, c := range []struct {
		name     string
		attempts int
		schedule backoff.Schedule
		want     string // initialBackoff, maxBackoff, backoffMultiplier, maxAttempts
		lost     []string
	}{
		{"exponential", 3, backoff.Schedule{Jitter: p, Base: 50 * ms, Cap: 1200 * ms, Factor: 1.6}, "50ms 1s 1.6 3", nil},
		{"one that never grows", 5, backoff.Schedule{Jitter: p, Base: 50 * ms, Cap: 1200 * ms, Factor: 1}, "50ms 1s 1 5", nil},
		{"full jitter", 3, backoff.Schedule{}, "100ms 20s 2 3", []string{"Backoff.Jitter"}},
		{"constant", 4, backoff.Schedule{Kind: backoff.Constant, Jitter: p, Base: 50 * ms}, "50ms 50ms 1 4", nil},
		{"constant, and none", 4, backoff.Schedule{Kind: backoff.Constant}, "1ms 1ms 1 4", []string{"Backoff.Base", "Backoff.Jitter"}},
		{"linear, as long as it is exponential", 3, backoff.Schedule{Kind: backoff.Linear, Jitter: p, Cap: 1200 * ms}, "100ms 1s 2 3", nil},
		{"linear", 4, backoff.Schedule{Kind: backoff.Linear, Jitter: p, Cap: 1200 * ms}, "100ms 1s 2 4", []string{"Backoff.Kind"}},
		{"once, at once", 4, backoff.Schedule{Kind: backoff.Immediate}, "1ms 1ms 1 2", []string{"Backoff.Kind", "Backoff.Base", "Backoff.Jitter"}},
		{"from the one before", 3, backoff.Schedule{Jitter: backoff.Decorrelated, Cap: time.Second}, "300ms 1s 3 3", []string{"Backoff.Jitter"}},
		{"the first at once", 3, backoff.Schedule{Jitter: p, Cap: 1200 * ms, FastFirst: true}, "100ms 1s 2 3", []string{"Backoff.FastFirst"}},
		{"no less than", 3, backoff.Schedule{Jitter: p, Cap: 1200 * ms, Floor: 99 * ms}, "100ms 1s 2 3", []string{"Backoff.Floor"}},
		{"too short for gRPC", 2, backoff.Schedule{Jitter: p, Base: ms / 2, Cap: 1200 * ms}, "1ms 1s 2 2", []string{"Backoff.Base"}},
		{"beyond the fifth attempt", 99, backoff.Schedule{Jitter: p, Cap: 1200 * ms}, "100ms 1s 2 5", []string{"Attempts"}},
	} {
		policy := plain()
		policy.Attempts, policy.Backoff, policy.RateLimitedBase = c.attempts, c.schedule, time.Hour
		out, lost := made(t, policy)
		r := out.Methods[0].Retry
		check.Equal(t, fmt.Sprint(r.InitialBackoff, r.MaxBackoff, r.BackoffMultiplier, r.MaxAttempts), c.want, "%s", c.name)
		check.Slices(t, of(lost), append(c.lost, "RateLimitedBase"), "%s: lost", c.name)
	}
}

// With RESOURCE_EXHAUSTED in the list gRPC sends the next hedge at once. So it is only in the
// list of a policy that does the same.
func TestHedgesAfterResourceExhausted(t *testing.T) {
	for _, c := range []struct {
		base    time.Duration
		backoff backoff.Schedule
		want    []serviceconfig.Code
	}{
		{1, backoff.Schedule{Kind: backoff.Constant}, []serviceconfig.Code{serviceconfig.Unavailable, serviceconfig.ResourceExhausted}},
		{1, backoff.Schedule{}, []serviceconfig.Code{serviceconfig.Unavailable}},
		{time.Second, backoff.Schedule{Kind: backoff.Constant}, []serviceconfig.Code{serviceconfig.Unavailable}},
	} {
		p := plain()
		p.Hedge = hedge.Config{Attempts: 2, Delay: ms, Share: -1, InFlight: -1}
		p.RateLimitedBase, p.Backoff = c.base, c.backoff
		out, lost := made(t, p)
		if got := out.Methods[0].Hedging.NonFatalStatusCodes; !slices.Equal(got, c.want) || (len(lost) == 0) != (len(got) == 2) {
			t.Errorf("%v, %v: %v, lost %v", c.base, c.backoff, got, lost)
		}
		base := p
		base.Backoff, base.RateLimitedBase = backoff.Schedule{}, 0
		back, _ := out.Methods[0].Policy(base, serviceconfig.Reading{PolicyOnly: true})
		if patient := back.RateLimitedBase > ms; patient == (len(c.want) == 2) || !patient && back != (lull.Policy{
			Attempts: 1, AttemptTimeout: p.AttemptTimeout, Deadline: p.Deadline, HintLimit: p.HintLimit, Backoff: p.Backoff, RateLimitedBase: 1,
			Timeouts: p.Timeouts, Nested: p.Nested, Budget: p.Budget, Breaker: p.Breaker, Hedge: p.Hedge,
		}) {
			t.Errorf("%v, %v: comes back as %+v", c.base, c.backoff, back)
		}
	}
}

func TestBudgetsAsThrottling(t *testing.T) {
	for _, c := range []struct {
		budget budget.Config
		want   budget.GRPCConfig
	}{
		{budget.Config{}, budget.GRPCConfig{MaxTokens: 2*budget.DefaultStock + 2, TokenRatio: budget.DefaultRatio}},
		{budget.Config{Window: time.Second}, budget.GRPCConfig{MaxTokens: 4, TokenRatio: 0.1}}, // no stock: as little as gRPC can
		{budget.Config{Window: time.Second, Stock: 3.5}, budget.GRPCConfig{MaxTokens: 10, TokenRatio: 0.1}},
		{budget.Config{Stock: 1e6, Ratio: budget.MaxRatio}, budget.GRPCConfig{MaxTokens: 1000, TokenRatio: budget.MaxRatio}},
		{budget.Config{Ratio: budget.MinRatio}, budget.GRPCConfig{MaxTokens: 42, TokenRatio: 0.001}},
		{budget.Config{Ratio: 0.12345}, budget.GRPCConfig{MaxTokens: 42, TokenRatio: 0.123}}, // gRPC has three decimals
	} {
		p := plain()
		p.Budget = c.budget
		out, lost, err := serviceconfig.Of(p)
		if err != nil || *out.Throttling != c.want || len(lost) != 1 || !lost[0].Changed {
			t.Errorf("%+v: %+v, %v, %v, want %+v", c.budget, out.Throttling, lost, err, c.want)
		}
	}
}
