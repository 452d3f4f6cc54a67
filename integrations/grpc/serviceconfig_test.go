package lullgrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	lullgrpc "github.com/lullgo/lull/integrations/grpc"
)

// vectors reads a file of published cases.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fields(err error) []string {
	var all []string
	if l, ok := errors.AsType[lull.Problems](err); ok {
		for _, p := range l {
			all = append(all, p.Field)
		}
	}
	return all
}

func TestPublishedValidation(t *testing.T) {
	type kase struct {
		Name            string
		RetryPolicy     json.RawMessage
		HedgingPolicy   json.RawMessage
		RetryThrottling json.RawMessage
		Error           *string
	}
	var v struct {
		RetryPolicy     []kase
		HedgingPolicy   []kase
		RetryThrottling []kase
		Names           []struct{ Name, Want string }
		Duration_JSON   [][2]string
	}
	vectors(t, "service_config_validation.json", &v)
	if len(v.RetryPolicy) < 20 || len(v.HedgingPolicy) < 9 || len(v.RetryThrottling) < 9 || len(v.Names) < 8 || len(v.Duration_JSON) < 17 {
		t.Fatalf("cases are missing: %+v", v)
	}
	check := func(section, field string, c kase, config string) {
		sc, err := lullgrpc.ParseServiceConfig([]byte(config))
		if c.Error == nil {
			if err != nil {
				t.Errorf("%s, %s: %v", section, c.Name, err)
			}
			if again, err := lullgrpc.ParseServiceConfig(mustMarshal(t, sc)); err != nil || !reflect.DeepEqual(sc, again) {
				t.Errorf("%s, %s: written and read it is %+v, %v", section, c.Name, again, err)
			}
			if _, err := lullgrpc.New(lull.Policy{}, lullgrpc.WithServiceConfig(sc, lullgrpc.Reading{})); err != nil {
				t.Errorf("%s, %s: no client comes of it: %v", section, c.Name, err)
			}
			return
		}
		// The published error names the field, where there is one to name.
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
		sc, err := lullgrpc.ParseServiceConfig([]byte(`{"methodConfig":[{"name":` + list + `}]}`))
		switch {
		case n.Want == "error":
			if err == nil {
				t.Errorf("name %s: passed", n.Name)
			}
		case err != nil:
			t.Errorf("name %s: %v", n.Name, err)
		default:
			got := sc.Methods[0].Names[0]
			want := map[string]lullgrpc.MethodName{"default": {}, "/foo/": {Service: "foo"}, "/foo/Bar": {Service: "foo", Method: "Bar"}}[n.Want]
			if got != want {
				t.Errorf("name %s: %+v, want %s", n.Name, got, n.Want)
			}
		}
	}
	for _, d := range v.Duration_JSON {
		text := `"` + d[0] + `"`
		if number, ok := strings.CutSuffix(d[0], " (number)"); ok {
			text = number
		}
		// A hedgingDelay may be zero, but none of these may be negative: the sign
		// must be all that is wrong.
		sc, err := lullgrpc.ParseServiceConfig([]byte(`{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":` + strings.Replace(text, "-", "", 1) + `}}]}`))
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
		got := sc.Methods[0].Hedging.HedgingDelay
		if strings.HasPrefix(d[1], "saturate") {
			if got != math.MaxInt64 {
				t.Errorf("duration %s: %v", d[0], got)
			}
		} else if want, err := time.ParseDuration(d[1]); err == nil && got != want.Abs() {
			t.Errorf("duration %s: %v", d[0], got)
		}
		if strings.HasPrefix(d[0], "-") {
			if _, err := lullgrpc.ParseServiceConfig([]byte(`{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":` + text + `}}]}`)); err == nil {
				t.Errorf("duration %s: passed", d[0])
			}
		}
	}
}

func mustMarshal(t testing.TB, sc lullgrpc.ServiceConfig) []byte {
	t.Helper()
	data, err := json.Marshal(sc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEveryProblemAtOnce(t *testing.T) {
	_, err := lullgrpc.ParseServiceConfig([]byte(`{
		"methodConfig": [
			{"name": [{"service": "a.A"}, {"service": "a.A", "method": 7}], "timeout": "0s",
			 "retryPolicy": {"maxAttempts": 1.5, "initialBackoff": "1ms", "maxBackoff": "2s", "backoffMultiplier": "2", "retryableStatusCodes": ["UNAVAILABLE", "OOPS", 17, "OK"], "perAttemptRecvTimeout": null},
			 "hedgingPolicy": {"maxAttempts": 2}},
			{"name": [{"service": "a.A"}, {"service": "b/B"}], "retryPolicy": [], "timeout": "1s", "timeout": "2s"},
			"odd"
		],
		"retryThrottling": {"maxTokens": 10.5, "tokenRatio": 0.0001}
	}`))
	const want = `methodConfig[0].name[1].method is 7: want a text
methodConfig[0].timeout is "0s": want a positive duration in seconds such as "0.25s", with up to nine decimals
methodConfig[0].retryPolicy.maxAttempts is 1.5: want a whole number from 2
methodConfig[0].retryPolicy.initialBackoff is "1ms": want a positive duration in seconds such as "0.25s", with up to nine decimals
methodConfig[0].retryPolicy.backoffMultiplier is "2": want a positive number
methodConfig[0].retryPolicy.retryableStatusCodes[1] is "OOPS": want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
methodConfig[0].retryPolicy.retryableStatusCodes[2] is 17: want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
methodConfig[0].retryPolicy.retryableStatusCodes[3] is "OK": want the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16
methodConfig[0].hedgingPolicy is given beside a retryPolicy: want one of the two
methodConfig[1].name[0] is "/a.A/" once more: want each name once (this one is methodConfig[0].name[0])
methodConfig[1].name[1] is "/b/B/": want the full name of a service and the name of a method, without slashes
methodConfig[1].timeout is given twice: want one value
methodConfig[1].retryPolicy is a list: want an object
methodConfig[2] is "odd": want an object
retryThrottling.maxTokens is 10.5: want a whole number from 1 to 1000
retryThrottling.tokenRatio is 0.0001: want a number from 0.001`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
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
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000): "nested too deep",
	} {
		if _, err := lullgrpc.ParseServiceConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

func TestWhatIsReadOver(t *testing.T) {
	sc, err := lullgrpc.ParseServiceConfig([]byte(`{
		"loadBalancingConfig": [{"round_robin": {}}],
		"methodConfig": [
			{"waitForReady": true, "name": [{"service": "a.A", "comment": "x"}], "retryPolicy": {"MaxAttempts": 3, "initialBackoff": "0.1s", "maxbackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": [14, "unavailable", "Cancelled"], "later": 1}},
			{"timeout": "1s"}
		]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"methodConfig[0].name[0].comment", "methodConfig[0].retryPolicy.later", "methodConfig[0].waitForReady", "methodConfig[1]", "loadBalancingConfig"}; !slices.Equal(sc.Ignored, want) {
		t.Errorf("ignored %q, want %q", sc.Ignored, want)
	}
	want := &lullgrpc.RetryPolicy{MaxAttempts: 3, InitialBackoff: 100 * time.Millisecond, MaxBackoff: time.Second, BackoffMultiplier: 2, RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.Canceled}}
	if len(sc.Methods) != 1 || !reflect.DeepEqual(sc.Methods[0].Retry, want) {
		t.Errorf("config %+v", sc.Methods)
	}
}

func TestPrecedenceOfNames(t *testing.T) {
	sc, err := lullgrpc.ParseServiceConfig([]byte(`{"methodConfig": [
		{"name": [{}], "timeout": "1s"},
		{"name": [{"service": "a.A"}, {"service": "b.B", "method": "Get"}], "timeout": "2s"},
		{"name": [{"service": "a.A", "method": "Get"}], "timeout": "3s"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, lull.Policy{}, lullgrpc.WithServiceConfig(sc, lullgrpc.Reading{}))
	for method, want := range map[string]time.Duration{
		"/a.A/Get": 3 * time.Second, "/a.A/Put": 2 * time.Second, "/b.B/Get": 2 * time.Second,
		"/b.B/Put": time.Second, "/a.AA/Get": time.Second, "odd": time.Second,
	} {
		mc, ok := sc.Method(method)
		if !ok || mc.Timeout != want {
			t.Errorf("%s: timeout %v, want %v", method, mc.Timeout, want)
		}
		if d := c.Dependency(t.Context(), "x", method); d.Policy().Deadline != want {
			t.Errorf("%s: the client has %v, want %v", method, d.Policy().Deadline, want)
		}
	}
	if _, ok := (lullgrpc.ServiceConfig{}).Method("/a.A/Get"); ok {
		t.Error("an empty config knows a method")
	}
}

func TestARetryPolicyAsAPolicy(t *testing.T) {
	mc := lullgrpc.MethodConfig{Timeout: 5 * time.Second, Retry: &lullgrpc.RetryPolicy{
		MaxAttempts: 9, InitialBackoff: 100 * time.Millisecond, MaxBackoff: time.Second, BackoffMultiplier: 3,
		RetryableStatusCodes: []codes.Code{codes.Unavailable}, PerAttemptRecvTimeout: 10 * time.Second,
	}}
	base := lull.Policy{AttemptTimeout: 7 * time.Second, HintLimit: time.Minute, Backoff: backoff.Schedule{FastFirst: true}}
	p, lost := mc.Policy(base, lullgrpc.Reading{})
	if err := p.Validate(); err != nil || len(lost) != 0 {
		t.Fatal(err, lost)
	}
	if p.Attempts != 5 || p.Deadline != 5*time.Second || p.AttemptTimeout != 5*time.Second || p.HintLimit != time.Minute {
		t.Errorf("policy %+v", p)
	}
	// min(100ms × 3^(n-1), 1s) × 0.8 to 1.2 (gRFC A6).
	for n, c := range []time.Duration{100, 300, 900, 1000, 1000} {
		c *= time.Millisecond
		if got := p.Backoff.Ceiling(n + 1); got != c {
			t.Errorf("retry %d: %v before jitter, want %v", n+1, got, c)
		}
		lo := p.Backoff.Delay(n+1, 0, func() uint64 { return 0 })
		hi := p.Backoff.Delay(n+1, 0, func() uint64 { return math.MaxUint64 })
		if lo != c-c/5 || hi != c+c/5 {
			t.Errorf("retry %d: %v to %v", n+1, lo, hi)
		}
	}
	old, _ := mc.Policy(base, lullgrpc.Reading{OldJitter: true, MaxCallAttempts: 8})
	if old.Attempts != 8 || old.Backoff != (backoff.Schedule{Base: 100 * time.Millisecond, Cap: time.Second, Factor: 3}) {
		t.Errorf("as it was once: %+v", old)
	}
	for _, largest := range []time.Duration{1, 7, 999999999, math.MaxInt64} {
		mc.Retry.InitialBackoff, mc.Retry.MaxBackoff = largest, largest
		p, _ := mc.Policy(lull.Policy{}, lullgrpc.Reading{})
		if got := p.Backoff.Ceiling(1); got != largest && largest != math.MaxInt64 || p.Validate() != nil {
			t.Errorf("maxBackoff %v: %v before jitter, %v", largest, got, p.Validate())
		}
	}

	mc = lullgrpc.MethodConfig{Retry: &lullgrpc.RetryPolicy{
		MaxAttempts: 2, InitialBackoff: 2 * time.Second, MaxBackoff: time.Second, BackoffMultiplier: 0.5,
		RetryableStatusCodes: []codes.Code{codes.ResourceExhausted, codes.DeadlineExceeded},
	}}
	p, lost = mc.Policy(lull.Policy{}, lullgrpc.Reading{})
	if p.Validate() != nil || p.Backoff.Ceiling(1) != time.Second || p.Backoff.Ceiling(5) != time.Second {
		t.Errorf("policy %+v, %v", p, p.Validate())
	}
	if len(lost) != 3 || !strings.HasPrefix(lost[0].String(), "retryPolicy.backoffMultiplier: ") {
		t.Errorf("lost %v", lost)
	}
}

func TestAHedgingPolicyAsAPolicy(t *testing.T) {
	base := lull.Policy{Attempts: 4, HintLimit: time.Minute, Hedge: hedge.Config{Attempts: 1, MaxDelay: time.Second}}
	for _, c := range []struct {
		hedging lullgrpc.HedgingPolicy
		most    int
		want    hedge.Config
		lost    []string
	}{
		{lullgrpc.HedgingPolicy{MaxAttempts: 3, HedgingDelay: 20 * time.Millisecond, NonFatalStatusCodes: []codes.Code{codes.Unavailable}}, 0,
			hedge.Config{Attempts: 3, Delay: 20 * time.Millisecond, Share: -1, InFlight: -1}, nil},
		{lullgrpc.HedgingPolicy{MaxAttempts: 2}, 0, hedge.Config{Attempts: 2, Delay: hedge.AtOnce, Share: -1, InFlight: -1}, nil},
		{lullgrpc.HedgingPolicy{MaxAttempts: 100, HedgingDelay: 1}, 0, hedge.Config{Attempts: 5, Delay: 1, Share: -1, InFlight: -1}, nil},
		{lullgrpc.HedgingPolicy{MaxAttempts: 100, HedgingDelay: math.MaxInt64}, 3, hedge.Config{Attempts: 3, Delay: math.MaxInt64, Share: -1, InFlight: -1}, nil},
		{lullgrpc.HedgingPolicy{MaxAttempts: 100, HedgingDelay: 1}, 8, hedge.Config{Attempts: 5, Delay: 1, Share: -1, InFlight: -1}, []string{"hedgingPolicy.maxAttempts"}},
		{lullgrpc.HedgingPolicy{MaxAttempts: 2, HedgingDelay: 1}, 1, hedge.Config{Attempts: 1, Delay: 1, Share: -1, InFlight: -1}, nil},
		{lullgrpc.HedgingPolicy{MaxAttempts: 2, HedgingDelay: 1, NonFatalStatusCodes: []codes.Code{codes.ResourceExhausted, codes.DeadlineExceeded}}, 0,
			hedge.Config{Attempts: 2, Delay: 1, Share: -1, InFlight: -1}, []string{"hedgingPolicy.hedgingDelay", "hedgingPolicy.nonFatalStatusCodes"}},
	} {
		p, lost := (lullgrpc.MethodConfig{Timeout: time.Second, Hedging: &c.hedging}).Policy(base, lullgrpc.Reading{MaxCallAttempts: c.most})
		want := base
		want.Attempts, want.Hedge, want.Deadline = 1, c.want, time.Second
		var of []string
		for _, l := range lost {
			of = append(of, l.Field)
		}
		if p != want || !slices.Equal(of, c.lost) || p.Validate() != nil {
			t.Errorf("%+v: %+v (%v), lost %v", c.hedging, p.Hedge, p.Validate(), lost)
		}
	}
	// A retryPolicy under a client that hedges: the method is retried, not hedged.
	retry := &lullgrpc.RetryPolicy{MaxAttempts: 3, InitialBackoff: 1, MaxBackoff: 1, BackoffMultiplier: 1, RetryableStatusCodes: []codes.Code{codes.Unavailable}}
	p, lost := lullgrpc.MethodConfig{Retry: retry}.Policy(lull.Policy{Hedge: hedge.Config{Attempts: 2}}, lullgrpc.Reading{})
	if p.Attempts != 3 || p.Hedge != (hedge.Config{}) || len(lost) != 0 || p.Validate() != nil {
		t.Errorf("a retryPolicy: %+v, %v", p, p.Validate())
	}
}

func TestAPolicyThatHedgesAsAServiceConfig(t *testing.T) {
	for _, c := range []struct {
		hedge hedge.Config
		want  string
		lost  []string
	}{
		{hedge.Config{Attempts: 3, Delay: 20 * time.Millisecond}, `"hedgingPolicy":{"maxAttempts":3,"hedgingDelay":"0.02s","nonFatalStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":6,"tokenRatio":0.1}}`,
			[]string{"AttemptTimeout", "Hedge.Share", "Hedge.InFlight", "ThrottleBase", "Timeouts", "HintLimit", "Budget", "Breaker"}},
		{hedge.Config{Attempts: 2, Delay: hedge.AtOnce, Share: -1, InFlight: -1}, `"hedgingPolicy":{"maxAttempts":2,"nonFatalStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":6,"tokenRatio":0.1}}`,
			[]string{"AttemptTimeout", "ThrottleBase", "Timeouts", "HintLimit", "Budget", "Breaker"}},
		{hedge.Config{Attempts: 2}, `"retryPolicy":{"maxAttempts":2,"initialBackoff":"0.1s","maxBackoff":"20s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":6,"tokenRatio":0.1}}`,
			[]string{"AttemptTimeout", "Hedge", "Backoff.Jitter", "ThrottleBase", "Timeouts", "HintLimit", "Budget", "Breaker"}},
	} {
		sc, lost, err := lullgrpc.ServiceConfigOf(lull.Policy{Hedge: c.hedge})
		if err != nil {
			t.Fatal(err)
		}
		want := `{"methodConfig":[{"name":[{}],"timeout":"30s",` + c.want
		text := mustMarshal(t, sc)
		if string(text) != want {
			t.Errorf("%s\nwant\n%s", text, want)
		}
		var of []string
		for _, l := range lost {
			of = append(of, l.Field)
		}
		if !slices.Equal(of, c.lost) {
			t.Errorf("lost %q, want %q", of, c.lost)
		}
		again, err := lullgrpc.ParseServiceConfig(text)
		if err != nil || !reflect.DeepEqual(sc, again) {
			t.Errorf("%s reads back as %+v, %v", text, again, err)
		}
		if c.hedge.Share < 0 { // nothing of it is lost
			if p, _ := again.Methods[0].Policy(lull.Policy{}, lullgrpc.Reading{}); p.Hedge != c.hedge {
				t.Errorf("%+v comes back as %+v", c.hedge, p.Hedge)
			}
		}
	}
}

func TestAPolicyAsAServiceConfig(t *testing.T) {
	sc, lost, err := lullgrpc.ServiceConfigOf(lull.Policy{}, lullgrpc.MethodName{Service: "a.A", Method: "Get"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"methodConfig":[{"name":[{"service":"a.A","method":"Get"}],"timeout":"30s","retryPolicy":{"maxAttempts":3,"initialBackoff":"0.1s","maxBackoff":"20s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":6,"tokenRatio":0.1}}`
	if got := string(mustMarshal(t, sc)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var of []string
	for _, l := range lost {
		of = append(of, l.Field)
	}
	if want := []string{"AttemptTimeout", "Backoff.Jitter", "ThrottleBase", "Timeouts", "HintLimit", "Budget", "Breaker"}; !slices.Equal(of, want) {
		t.Errorf("lost %q, want %q", of, want)
	}
	if _, _, err := lullgrpc.ServiceConfigOf(lull.Policy{Attempts: -1}); err == nil {
		t.Error("an invalid policy was written")
	}
	// The throttle pays for as many retries in a row as the budget has in stock.
	throttle, err := budget.NewGRPCThrottle(*sc.Throttling)
	if err != nil {
		t.Fatal(err)
	}
	granted := 0
	for range 10 {
		throttle.Failed(0)
		if throttle.Withdraw(0, budget.Transient, nil).OK {
			granted++
		}
	}
	if granted != budget.DefaultStock {
		t.Errorf("%d retries, want %d", granted, budget.DefaultStock)
	}
	if sc, _, _ := lullgrpc.ServiceConfigOf(lull.Policy{Attempts: 1, Deadline: lull.NoTimeout}); string(mustMarshal(t, sc)) != `{"methodConfig":[{"name":[{}]}]}` {
		t.Errorf("no retries: %s", mustMarshal(t, sc))
	}
}

// Whatever the policy, what is written is valid, for gRPC itself too, and reads
// back as what was written; and a policy that is read from a config is written as
// that config.
func TestWrittenAndRead(t *testing.T) {
	schedules := []backoff.Schedule{
		{}, {Jitter: backoff.Proportional, Cap: 12 * time.Second}, {Kind: backoff.Constant}, {Kind: backoff.Constant, Base: time.Second}, {Kind: backoff.Linear, Base: 1},
		{Kind: backoff.Immediate}, {Kind: backoff.Ethernet}, {Jitter: backoff.Decorrelated}, {FastFirst: true}, {Base: 2 * time.Hour, Factor: 1.5}, {Floor: time.Millisecond},
	}
	for _, s := range schedules {
		for _, b := range []budget.Config{{}, {Unlimited: true}, {Ratio: 10, Stock: 1e6}, {Ratio: budget.MinRatio}} {
			p := lull.Policy{Attempts: 7, Backoff: s, Budget: b}
			sc, lost, err := lullgrpc.ServiceConfigOf(p)
			if err != nil {
				t.Fatal(err)
			}
			if len(lost) == 0 {
				t.Errorf("%+v: nothing is lost", p)
			}
			text := mustMarshal(t, sc)
			again, err := lullgrpc.ParseServiceConfig(text)
			if err != nil || !reflect.DeepEqual(sc, again) {
				t.Errorf("%s reads back as %+v, %v", text, again, err)
			}
			cc, err := grpc.NewClient("passthrough:///x", grpc.WithDefaultServiceConfig(string(text)), insecureOption)
			if err != nil {
				t.Errorf("gRPC does not take %s: %v", text, err)
				continue
			}
			cc.Close()
		}
	}
	const config = `{"methodConfig":[{"name":[{}],"timeout":"3.5s","retryPolicy":{"maxAttempts":4,"initialBackoff":"0.25s","maxBackoff":"1.000000001s","backoffMultiplier":1.5,"retryableStatusCodes":["UNAVAILABLE"]}}]}`
	sc, err := lullgrpc.ParseServiceConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := sc.Methods[0].Policy(lull.Policy{Budget: budget.Config{Unlimited: true}}, lullgrpc.Reading{})
	back, lost, err := lullgrpc.ServiceConfigOf(p)
	if err != nil || string(mustMarshal(t, back)) != config {
		t.Errorf("%s, %v (lost %v)\nwant\n%s", mustMarshal(t, back), err, lost, config)
	}
}

// TestPublishedThrottling and TestPublishedRetries are grpc-go's end-to-end tests.
type published struct {
	EndToEnd struct {
		MaxTokens   int
		TokenRatio  float64
		RetryPolicy json.RawMessage
		OK          []int    `json:"server_ok_at_request_index"`
		Calls       [][2]any `json:"calls_want"`
	} `json:"end_to_end_grpc_go"`
	Unary struct {
		RetryPolicy json.RawMessage
		Server      struct{ OK, INTERNAL []int }
		Calls       [][2]any `json:"calls_want"`
	} `json:"end_to_end_retry_unary_grpc_go"`
}

func replayPublished(t *testing.T, config string, server func(n int) codes.Code, want [][2]any) {
	t.Helper()
	sc, err := lullgrpc.ParseServiceConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		e := &echo{unary: func(_ context.Context, n int, _ string) (string, error) {
			return "", status.Error(server(n), "as published") // nil if OK
		}}
		base := quick() // neither breaker nor budget of lull's
		cc := inMemory(t, e, base, lullgrpc.WithServiceConfig(sc, lullgrpc.Reading{}))
		for i, w := range want {
			_, err := call(t.Context(), cc, "")
			if code := fmt.Sprint(w[0]); statusName(err) != code || e.count()-1 != int(w[1].(float64)) {
				t.Errorf("call %d: %v after request %d, want %v after %v", i, statusName(err), e.count()-1, code, w[1])
			}
		}
	})
}

func statusName(err error) string {
	text, _ := json.Marshal(lullgrpc.ServiceConfig{Methods: []lullgrpc.MethodConfig{{Names: []lullgrpc.MethodName{{}}, Hedging: &lullgrpc.HedgingPolicy{NonFatalStatusCodes: []codes.Code{status.Code(err)}}}}})
	_, after, _ := strings.Cut(string(text), `nonFatalStatusCodes":["`)
	name, _, _ := strings.Cut(after, `"`)
	return name
}

func TestPublishedThrottling(t *testing.T) {
	var v published
	vectors(t, "throttle_sequences.json", &v)
	e := v.EndToEnd
	config := fmt.Sprintf(`{"methodConfig":[{"name":[{}],"retryPolicy":%s}],"retryThrottling":{"maxTokens":%d,"tokenRatio":%v}}`, e.RetryPolicy, e.MaxTokens, e.TokenRatio)
	replayPublished(t, config, func(n int) codes.Code {
		if slices.Contains(e.OK, n) {
			return codes.OK
		}
		return codes.Unavailable
	}, e.Calls)
}

func TestPublishedRetries(t *testing.T) {
	var v published
	vectors(t, "throttle_sequences.json", &v)
	u := v.Unary
	replayPublished(t, fmt.Sprintf(`{"methodConfig":[{"name":[{}],"retryPolicy":%s}]}`, u.RetryPolicy), func(n int) codes.Code {
		switch {
		case slices.Contains(u.Server.OK, n):
			return codes.OK
		case slices.Contains(u.Server.INTERNAL, n):
			return codes.Internal
		}
		return codes.AlreadyExists
	}, u.Calls)
}

func TestAServiceConfigDecides(t *testing.T) {
	const config = `{"methodConfig":[{"name":[{"service":"lull.test.Echo","method":"Unary"}],"retryPolicy":{"maxAttempts":3,"initialBackoff":"1s","maxBackoff":"1s","backoffMultiplier":1,"retryableStatusCodes":["INTERNAL","RESOURCE_EXHAUSTED"]}}]}`
	sc, err := lullgrpc.ParseServiceConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[codes.Code]int{codes.Internal: 3, codes.ResourceExhausted: 3, codes.Unavailable: 1, codes.NotFound: 1} {
		synctest.Test(t, func(t *testing.T) {
			var ev events
			e := &echo{unary: func(context.Context, int, string) (string, error) { return "", fails(code) }}
			p := quick()
			p.ThrottleBase = 10 * time.Second
			cc := inMemory(t, e, p, lullgrpc.WithServiceConfig(sc, lullgrpc.Reading{}), ev.watch())
			_, err := call(t.Context(), cc, "")
			if status.Code(err) != code || e.count() != want {
				t.Errorf("%v: %d attempts, want %d", code, e.count(), want)
			}
			if waits := ev.waits(); code == codes.ResourceExhausted && waits[0] < 5*time.Second {
				t.Errorf("RESOURCE_EXHAUSTED: waits %v", waits)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		e := &echo{unary: func(context.Context, int, string) (string, error) { return "", fails(codes.Internal) }}
		cc := inMemory(t, e, quick(), lullgrpc.WithServiceConfig(sc, lullgrpc.Reading{}), lullgrpc.WithNotIdempotent("/lull.test.Echo/"))
		_, err := call(t.Context(), cc, "")
		wantFailure(t, err, codes.Internal, lull.ErrNotIdempotent, 1)
	})
}

func TestTheThrottleIsTheTargets(t *testing.T) {
	sc, err := lullgrpc.ParseServiceConfig([]byte(`{"methodConfig":[{"name":[{"service":"a.A"}],"timeout":"1s"}],"retryThrottling":{"maxTokens":10,"tokenRatio":0.1}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, lull.Policy{}, lullgrpc.WithServiceConfig(sc, lullgrpc.Reading{}))
	of := func(target, method string) *budget.GRPCThrottle {
		b, _ := c.Dependency(t.Context(), target, method).Budget().(*budget.GRPCThrottle)
		return b
	}
	if of("x", "/a.A/Get") == nil || of("x", "/a.A/Get") != of("x", "/b.B/Get") || of("x", "/a.A/Get") == of("y", "/a.A/Get") {
		t.Error("want one throttle for each target")
	}
}

func FuzzParseServiceConfig(f *testing.F) {
	f.Add(`{"methodConfig":[{"name":[{"service":"a.A"}],"timeout":"1s","retryPolicy":{"maxAttempts":3,"initialBackoff":".1s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE",4]}}],"retryThrottling":{"maxTokens":10,"tokenRatio":0.1}}`)
	f.Add(`{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":"0s","nonFatalStatusCodes":[]}}],"a":{"b":[null,true,1e9]}}`)
	f.Add(`{"methodConfig":[{"name":null}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		sc, err := lullgrpc.ParseServiceConfig([]byte(text))
		if err != nil {
			if len(fields(err)) == 0 {
				t.Fatalf("error %v names no field", err)
			}
			return
		}
		out := mustMarshal(t, sc)
		again, err := lullgrpc.ParseServiceConfig(out)
		sc.Ignored = nil
		for _, mc := range sc.Methods {
			if mc.Hedging != nil && len(mc.Hedging.NonFatalStatusCodes) == 0 {
				mc.Hedging.NonFatalStatusCodes = nil
			}
		}
		if err != nil || !reflect.DeepEqual(sc, again) {
			t.Fatalf("%+v written as %s reads back as %+v, %v", sc, out, again, err)
		}
		if _, err := lullgrpc.New(lull.Policy{}, lullgrpc.WithServiceConfig(sc, lullgrpc.Reading{})); err != nil {
			t.Fatalf("a config that was read makes no client: %v", err)
		}
	})
}
