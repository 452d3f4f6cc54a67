package serviceconfig_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config/convert/serviceconfig"
	"github.com/lullgo/lull/hedge"
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
	for _, p := range serviceconfig.Fields(err) {
		all = append(all, p.Field)
	}
	return all
}

func marshal(t testing.TB, c serviceconfig.Config) []byte {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The published cases are those of ../testdata/README.md.
func TestPublishedValidation(t *testing.T) {
	var v struct {
		RetryPolicy     []kase
		HedgingPolicy   []kase
		RetryThrottling []kase
		Names           []struct{ Name, Want string }
		Durations       [][2]string `json:"duration_json"`
	}
	data, err := os.ReadFile("../testdata/grpc_service_config_validation.json")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(v.RetryPolicy) < 20 || len(v.HedgingPolicy) < 9 || len(v.RetryThrottling) < 9 || len(v.Names) < 8 || len(v.Durations) < 17 {
		t.Fatalf("cases are missing: %+v", v)
	}
	check := func(section, field string, c kase, config string) {
		sc, err := serviceconfig.Parse([]byte(config))
		if c.Error == nil {
			if err != nil {
				t.Errorf("%s, %s: %v", section, c.Name, err)
			}
			if again, err := serviceconfig.Parse(marshal(t, sc)); err != nil || !reflect.DeepEqual(sc, again) {
				t.Errorf("%s, %s: written and read it is %+v, %v", section, c.Name, again, err)
			}
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
		check("retryPolicy", path+"retryPolicy", c, `{"methodConfig":[{"name":[{}],"retryPolicy":`+string(c.RetryPolicy)+`}]}`)
	}
	for _, c := range v.HedgingPolicy {
		check("hedgingPolicy", path+"hedgingPolicy", c, `{"methodConfig":[{"name":[{}],"hedgingPolicy":`+string(c.HedgingPolicy)+`}]}`)
	}
	for _, c := range v.RetryThrottling {
		check("retryThrottling", "retryThrottling", c, `{"retryThrottling":`+string(c.RetryThrottling)+`}`)
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
			if got := sc.Methods[0].Names[0].Pattern(); got != want {
				t.Errorf("name %s: %s, want %s", n.Name, got, want)
			}
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
	_, err := serviceconfig.Parse([]byte(`{
		"methodConfig": [
			{"name": [{"service": "a.A"}, {"service": "a.A", "method": 7}], "timeout": "0s",
			 "retryPolicy": {"maxAttempts": 1.5, "initialBackoff": "1ms", "maxBackoff": "2s", "backoffMultiplier": "2", "retryableStatusCodes": ["UNAVAILABLE", "OOPS", 17, "OK"], "perAttemptRecvTimeout": null},
			 "hedgingPolicy": {"maxAttempts": 2}},
			{"name": [{"service": "a.A"}, {"service": "b/B"}], "retryPolicy": [], "timeout": "1s", "timeout": "2s"},
			"odd"
		],
		"retryThrottling": {"maxTokens": 10.5, "tokenRatio": 0.0001}
	}`))
	const want = `line 3: methodConfig[0].name[1].method is 7: want a text
line 3: methodConfig[0].timeout is "0s": want a positive duration in seconds such as "0.25s", with up to nine decimals
line 4: methodConfig[0].retryPolicy.maxAttempts is 1.5: want a whole number from 2
line 4: methodConfig[0].retryPolicy.initialBackoff is "1ms": want a positive duration in seconds such as "0.25s", with up to nine decimals; did you mean 0.001s?
line 4: methodConfig[0].retryPolicy.backoffMultiplier is "2": want a positive number
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[1] is "OOPS": want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[2] is 17: want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
line 4: methodConfig[0].retryPolicy.retryableStatusCodes[3] is "OK": want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
line 5: methodConfig[0].hedgingPolicy is given beside a retryPolicy: want one of the two
line 6: methodConfig[1].name[0] is "/a.A/" once more: want each name once (this one is methodConfig[0].name[0])
line 6: methodConfig[1].name[1] is "/b/B/": want the full name of a service and the name of a method, without slashes
line 6: methodConfig[1].timeout is given twice: want one value
line 6: methodConfig[1].retryPolicy is a list: want an object
line 7: methodConfig[2] is "odd": want an object
line 9: retryThrottling.maxTokens is 10.5: want a whole number from 1 to 1000
line 9: retryThrottling.tokenRatio is 0.0001: want a number from 0.001`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	var p serviceconfig.Problem
	if !errors.As(err, &p) || p.Line != 3 || p.Column != 63 {
		t.Errorf("the first problem is at %d:%d", p.Line, p.Column)
	}
}

func TestWhatIsNoServiceConfig(t *testing.T) {
	for text, want := range map[string]string{
		``:                   "unexpected EOF (line 1, column 1)",
		`{`:                  "unexpected EOF",
		`{"a": 1,}`:          "invalid character",
		"{\n  \"a\" 1}":      "line 2",
		`{} {}`:              "more after the end",
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
	c, err := serviceconfig.Parse([]byte(`{
		"loadBalancingConfig": [{"round_robin": {}}],
		"methodConfig": [
			{"waitForReady": true, "name": [{"service": "a.A", "comment": "x"}], "retryPolicy": {"MaxAttempts": 3, "initialBackoff": "0.1s", "maxbackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": [14, "unavailable", "Cancelled"], "later": 1}},
			{"timeout": "1s"}
		]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"methodConfig[0].name[0].comment", "methodConfig[0].retryPolicy.later", "methodConfig[0].waitForReady", "methodConfig[1]", "loadBalancingConfig"}; !slices.Equal(c.Ignored, want) {
		t.Errorf("ignored %q, want %q", c.Ignored, want)
	}
	want := &serviceconfig.RetryPolicy{MaxAttempts: 3, InitialBackoff: 100 * time.Millisecond, MaxBackoff: time.Second, BackoffMultiplier: 2, RetryableStatusCodes: []serviceconfig.Code{serviceconfig.Unavailable, 1}}
	if len(c.Methods) != 1 || !reflect.DeepEqual(c.Methods[0].Retry, want) {
		t.Errorf("config %+v", c.Methods)
	}
}

func TestPrecedenceOfNames(t *testing.T) {
	c, err := serviceconfig.Parse([]byte(`{"methodConfig": [
		{"name": [{}], "timeout": "1s"},
		{"name": [{"service": "a.A"}, {"service": "b.B", "method": "Get"}], "timeout": "2s"},
		{"name": [{"service": "a.A", "method": "Get"}], "timeout": "3s"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]time.Duration{
		"/a.A/Get": 3 * time.Second, "/a.A/Put": 2 * time.Second, "/b.B/Get": 2 * time.Second,
		"/b.B/Put": time.Second, "/a.AA/Get": time.Second, "odd": time.Second,
	} {
		if mc, ok := c.Method(method); !ok || mc.Timeout != want {
			t.Errorf("%s: timeout %v, want %v", method, mc.Timeout, want)
		}
	}
	if _, ok := (serviceconfig.Config{}).Method("/a.A/Get"); ok {
		t.Error("an empty config knows a method")
	}
	for pattern, ok := range map[string]bool{"/": true, "/a/": true, "/a/B": true, "": false, "a/B": false, "//B": false, "/a": false, "/a/B/C": false, "//": false} {
		if n, got := serviceconfig.NameOf(pattern); got != ok || ok && n.Pattern() != pattern {
			t.Errorf("%q: %v, %v", pattern, n, got)
		}
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
	old, _ := mc.Policy(before, serviceconfig.Reading{OldJitter: true, MaxCallAttempts: 8})
	if old.Attempts != 8 || old.Backoff != (backoff.Schedule{Base: 100 * time.Millisecond, Cap: time.Second, Factor: 3}) {
		t.Errorf("as it was once: %+v", old)
	}
	for _, largest := range []time.Duration{1, 7, 999999999, math.MaxInt64} {
		mc.Retry.InitialBackoff, mc.Retry.MaxBackoff = largest, largest
		p, _ := mc.Policy(lull.Policy{}, serviceconfig.Reading{})
		if got := p.Backoff.Ceiling(1); got != largest && largest != math.MaxInt64 || p.Validate() != nil {
			t.Errorf("maxBackoff %v: %v before jitter, %v", largest, got, p.Validate())
		}
	}
	// A file has nothing but the policy: more is lost.
	p, lost = mc.Policy(before, serviceconfig.Reading{Alone: true})
	if p.Timeouts != lull.TimeoutsNever || p.ThrottleBase <= p.Backoff.Ceiling(1) && p.Backoff.Ceiling(1) < math.MaxInt64/4 {
		t.Errorf("alone: %+v", p)
	}
	var of []string
	for _, l := range lost {
		of = append(of, l.Field)
	}
	if want := []string{"retryPolicy.perAttemptRecvTimeout", "retryPolicy.maxAttempts", "retryPolicy.retryableStatusCodes"}; !slices.Equal(of, want) {
		t.Errorf("alone: lost %q, want %q", of, want)
	}
}

func TestCodesInAPolicy(t *testing.T) {
	const (
		cancelled = serviceconfig.Code(1)
		some      = 100 * time.Millisecond
	)
	for _, c := range []struct {
		codes    []serviceconfig.Code
		timeouts lull.TimeoutRetries
		patient  bool
		why      string
	}{
		{[]serviceconfig.Code{14}, lull.TimeoutsNever, true, "also retries RESOURCE_EXHAUSTED"},
		{[]serviceconfig.Code{14, 8}, lull.TimeoutsNever, false, ""},
		{[]serviceconfig.Code{14, 8, 4}, lull.TimeoutsAlways, false, ""},
		{[]serviceconfig.Code{cancelled, 8}, lull.TimeoutsNever, false, "does not retry CANCELLED and also retries UNAVAILABLE"},
	} {
		mc := serviceconfig.MethodConfig{Retry: &serviceconfig.RetryPolicy{MaxAttempts: 2, InitialBackoff: some, MaxBackoff: some, BackoffMultiplier: 1, RetryableStatusCodes: c.codes}}
		p, lost := mc.Policy(lull.Policy{}, serviceconfig.Reading{Alone: true})
		if p.Timeouts != c.timeouts || (p.ThrottleBase > some) != c.patient {
			t.Errorf("%v: %+v", c.codes, p)
		}
		why := ""
		for _, l := range lost {
			why += l.Why
		}
		if c.why == "" && why != "" || !strings.Contains(why, c.why) {
			t.Errorf("%v: %q, want %q", c.codes, why, c.why)
		}
		// The list comes back as far as a policy can say it.
		back, _, err := serviceconfig.Of(p)
		if err != nil {
			t.Fatal(err)
		}
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
		throttle, err := budget.NewGRPCThrottle(c)
		if err != nil {
			t.Fatal(err)
		}
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
	c, lost, err := serviceconfig.Of(lull.Policy{}, serviceconfig.MethodName{Service: "a.A", Method: "Get"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"methodConfig":[{"name":[{"service":"a.A","method":"Get"}],"timeout":"30s","retryPolicy":{"maxAttempts":3,"initialBackoff":"0.1s","maxBackoff":"20s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":6,"tokenRatio":0.1}}`
	if got := string(marshal(t, c)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var of []string
	for _, l := range lost {
		of = append(of, l.Field)
	}
	if want := []string{"AttemptTimeout", "Backoff.Jitter", "ThrottleBase", "Timeouts", "HintLimit", "Budget", "Nested", "Breaker"}; !slices.Equal(of, want) {
		t.Errorf("lost %q, want %q", of, want)
	}
	if _, _, err := serviceconfig.Of(lull.Policy{Attempts: -1}); err == nil {
		t.Error("an invalid policy was written")
	}
	if c, _, _ := serviceconfig.Of(lull.Policy{Attempts: 1, Deadline: lull.NoTimeout}); string(marshal(t, c)) != `{"methodConfig":[{"name":[{}]}]}` {
		t.Errorf("no retries: %s", marshal(t, c))
	}
	if c, lost, _ := serviceconfig.Of(lull.Policy{Attempts: 9}); c.Methods[0].Retry.MaxAttempts != 5 || lost[1].Field != "Attempts" {
		t.Errorf("nine attempts: %+v, %v", c.Methods[0].Retry, lost)
	}
	for _, h := range []hedge.Config{{Attempts: 3, Delay: 20 * time.Millisecond, Share: -1, InFlight: -1}, {Attempts: 2, Delay: hedge.AtOnce, Share: -1, InFlight: -1}} {
		c, _, err := serviceconfig.Of(lull.Policy{Hedge: h})
		if err != nil {
			t.Fatal(err)
		}
		again, err := serviceconfig.Parse(marshal(t, c))
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := again.Methods[0].Policy(lull.Policy{}, serviceconfig.Reading{Alone: true}); p.Hedge != h || p.Attempts != 1 {
			t.Errorf("%+v comes back as %+v", h, p)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"methodConfig":[{"name":[{"service":"a.A"}],"timeout":"1s","retryPolicy":{"maxAttempts":3,"initialBackoff":".1s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE",4]}}],"retryThrottling":{"maxTokens":10,"tokenRatio":0.1}}`)
	f.Add(`{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":"0s","nonFatalStatusCodes":[]}}],"a":{"b":[null,true,1e9]}}`)
	f.Add(`{"methodConfig":[{"name":null}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := serviceconfig.Parse([]byte(text))
		if err != nil {
			if len(fields(err)) == 0 {
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
		for _, mc := range c.Methods {
			if p, _ := mc.Policy(lull.Policy{}, serviceconfig.Reading{Alone: true}); p.Validate() != nil {
				t.Fatalf("%s makes a policy that is not valid: %v", out, p.Validate())
			}
		}
	})
}
