package lullgrpc_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	lullgrpc "github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/serviceconfig"
)

// vectors reads a file of published cases.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	must.Succeed(err)
}

func parsed(t testing.TB, config string) lullgrpc.ServiceConfig {
	t.Helper()
	return must.Have(lullgrpc.ParseServiceConfig([]byte(config)))
}

func mustMarshal(t testing.TB, sc lullgrpc.ServiceConfig) []byte {
	t.Helper()
	return must.Have(json.Marshal(sc))
}

// Nothing in a config is lost on its way in, to a policy, and out again.
func TestAllThatAServiceConfigHas(t *testing.T) {
	const text = `{"methodConfig":[` +
		`{"name":[{"service":"a.A","method":"Get"},{"service":"b.B"}],"timeout":"5s","retryPolicy":{"maxAttempts":4,"initialBackoff":"0.1s","maxBackoff":"1s","backoffMultiplier":3,"retryableStatusCodes":["UNAVAILABLE","ABORTED"],"perAttemptRecvTimeout":"2s"}},` +
		`{"name":[{}],"hedgingPolicy":{"maxAttempts":3,"hedgingDelay":"0.02s","nonFatalStatusCodes":["INTERNAL"]}}],` +
		`"retryThrottling":{"maxTokens":10,"tokenRatio":0.1}}`
	want := lullgrpc.ServiceConfig{
		Methods: []lullgrpc.MethodConfig{
			{Names: []lullgrpc.MethodName{{Service: "a.A", Method: "Get"}, {Service: "b.B"}}, Timeout: 5 * time.Second, Retry: &lullgrpc.RetryPolicy{
				MaxAttempts: 4, InitialBackoff: 100 * time.Millisecond, MaxBackoff: time.Second, BackoffMultiplier: 3,
				RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.Aborted}, PerAttemptRecvTimeout: 2 * time.Second,
			}},
			{Names: []lullgrpc.MethodName{{}}, Hedging: &lullgrpc.HedgingPolicy{MaxAttempts: 3, HedgingDelay: 20 * time.Millisecond, NonFatalStatusCodes: []codes.Code{codes.Internal}}},
		},
		Throttling: &budget.GRPCConfig{MaxTokens: 10, TokenRatio: 0.1},
	}
	more := strings.TrimSuffix(text, "}") + `,"loadBalancingConfig":[]}`
	if sc, err := lullgrpc.ParseServiceConfig([]byte(more)); err != nil || !slices.Equal(sc.Ignored, []string{"loadBalancingConfig"}) {
		t.Errorf("ignored %q, %v", sc.Ignored, err)
	}
	sc, err := lullgrpc.ParseServiceConfig([]byte(text))
	if err != nil || !reflect.DeepEqual(sc, want) {
		t.Errorf("%+v, %v\nwant\n%+v", sc, err, want)
	}
	if got := string(mustMarshal(t, want)); got != text {
		t.Errorf("%s\nwant\n%s", got, text)
	}
	base := lull.Policy{HintLimit: time.Minute}
	retry, lost := sc.Methods[0].Policy(base, lullgrpc.ServiceConfigOptions{OldJitter: true, MaxCallAttempts: 2})
	base.Attempts, base.Deadline, base.AttemptTimeout = 2, 5*time.Second, 2*time.Second
	base.Backoff = backoff.Schedule{Base: 100 * time.Millisecond, Cap: time.Second, Factor: 3}
	if retry != base || lost != nil {
		t.Errorf("%+v (lost %v)\nwant\n%+v", retry, lost, base)
	}
	hedged, lost := sc.Methods[1].Policy(lull.Policy{}, lullgrpc.ServiceConfigOptions{})
	if want := (lull.Policy{Attempts: 1, Hedge: hedge.Config{Attempts: 3, Delay: 20 * time.Millisecond, Share: -1, InFlight: -1}}); hedged != want || lost != nil {
		t.Errorf("%+v (lost %v)\nwant\n%+v", hedged, lost, want)
	}
	must.Have(lullgrpc.New(lull.Policy{}, lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{})))
}

// A config that was made in code may have mistakes, too. Some would configure methods or attempts
// that nobody asked for.
func TestServiceConfigsMadeInCode(t *testing.T) {
	retry := &lullgrpc.RetryPolicy{InitialBackoff: 1, MaxBackoff: 1, BackoffMultiplier: 1, RetryableStatusCodes: []codes.Code{codes.Unavailable, 99}}
	for want, mc := range map[string]lullgrpc.MethodConfig{
		"methodConfig[0].retryPolicy.maxAttempts is 0: want a whole number from 2": {Names: []lullgrpc.MethodName{{}}, Retry: retry},
		"methodConfig[0].retryPolicy.retryableStatusCodes[1] is 99: want":          {Names: []lullgrpc.MethodName{{}}, Retry: retry},
		"methodConfig[0].name[0].service is missing":                               {Names: []lullgrpc.MethodName{{Method: "Get"}}, Timeout: time.Second},
	} {
		sc := lullgrpc.ServiceConfig{Methods: []lullgrpc.MethodConfig{mc}}
		_, err := lullgrpc.New(lull.Policy{}, lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{}))
		if err == nil || !strings.HasPrefix(err.Error(), "lullgrpc: WithServiceConfig: methodConfig") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err := lullgrpc.New(lull.Policy{}, lullgrpc.WithServiceConfig(lullgrpc.ServiceConfig{}, lullgrpc.ServiceConfigOptions{MaxCallAttempts: -1}))
	if err == nil || !strings.Contains(err.Error(), "MaxCallAttempts is -1: want a positive number, or 0 for the default of 5") {
		t.Error(err)
	}
	if _, _, err := lullgrpc.ServiceConfigOf(lull.Policy{}, lullgrpc.MethodName{Method: "Get"}); err == nil || !strings.Contains(err.Error(), "the service of method \"Get\"") {
		t.Errorf("a method without a service: %v", err)
	}
}

func TestPrecedenceOfNames(t *testing.T) {
	sc := parsed(t, `{"methodConfig": [
		{"name": [{}], "timeout": "1s"},
		{"name": [{"service": "a.A"}, {"service": "b.B", "method": "Get"}], "timeout": "2s"},
		{"name": [{"service": "a.A", "method": "Get"}], "timeout": "3s"}]}`)
	c := newClient(t, lull.Policy{}, lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{}))
	for method, want := range map[string]time.Duration{
		"/a.A/Get": 3 * time.Second, "/a.A/Put": 2 * time.Second, "/b.B/Get": 2 * time.Second,
		"/b.B/Put": time.Second, "/a.AA/Get": time.Second, "odd": time.Second,
	} {
		mc, ok := sc.Method(method)
		if !ok || mc.Timeout != want {
			t.Errorf("%s: timeout %v, want %v", method, mc.Timeout, want)
		}
		check.Equal(t, c.Dependency(t.Context(), "x", method).Policy().Deadline, want, "%s: deadline that the client has", method)
	}
	if _, ok := (lullgrpc.ServiceConfig{}).Method("/a.A/Get"); ok {
		t.Error("an empty config knows a method")
	}
}

// For every policy, the written config is valid, for gRPC itself too, and reads back as what was
// written. A policy that is read from a config is written as that config.
func TestWrittenAndRead(t *testing.T) {
	schedules := []backoff.Schedule{
		{}, {Jitter: backoff.Proportional, Cap: 12 * time.Second}, {Kind: backoff.Constant}, {Kind: backoff.Constant, Base: time.Second}, {Kind: backoff.Linear, Base: 100 * time.Microsecond},
		{Kind: backoff.Immediate}, {Kind: backoff.Ethernet}, {Jitter: backoff.Decorrelated}, {FastFirst: true}, {Base: 2 * time.Hour, Factor: 1.5}, {Floor: time.Millisecond},
	}
	for _, s := range schedules {
		for _, b := range []budget.Config{{}, {Unlimited: true}, {Ratio: 4, Stock: 1e6}, {Ratio: budget.MinRatio}, {Window: time.Second}} {
			p := lull.Policy{Attempts: 7, Backoff: s, Budget: b}
			sc, _, err := lullgrpc.ServiceConfigOf(p)
			must.Succeed(err)
			text := mustMarshal(t, sc)
			again, err := lullgrpc.ParseServiceConfig(text)
			if err != nil || !reflect.DeepEqual(sc, again) {
				t.Errorf("%s reads back as %+v, %v", text, again, err)
			}
			cc, err := grpc.NewClient("passthrough:///x", grpc.WithDefaultServiceConfig(string(text)), local[0])
			if err != nil {
				t.Errorf("gRPC does not take %s: %v", text, err)
				continue
			}
			cc.Close()
		}
	}
	const config = `{"methodConfig":[{"name":[{}],"timeout":"3.5s","retryPolicy":{"maxAttempts":4,"initialBackoff":"0.25s","maxBackoff":"1.000000001s","backoffMultiplier":1.5,"retryableStatusCodes":["UNAVAILABLE"]}}]}`
	sc := parsed(t, config)
	p, _ := sc.Methods[0].Policy(lull.Policy{Budget: budget.Config{Unlimited: true}}, lullgrpc.ServiceConfigOptions{})
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
	sc := parsed(t, config)
	synctest.Test(t, func(t *testing.T) {
		e := &echo{unary: func(_ context.Context, n int, _ string) (string, error) {
			return "", status.Error(server(n), "as published") // nil if OK
		}}
		base := quick() // neither breaker nor budget of lull's
		cc := inMemory(t, e, base, lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{}))
		for i, w := range want {
			_, err := call(t.Context(), cc, "")
			if code := serviceconfig.Code(status.Code(err)).String(); code != w[0] || e.count()-1 != int(w[1].(float64)) {
				t.Errorf("call %d: %v after request %d, want %v after %v", i, code, e.count()-1, w[0], w[1])
			}
		}
	})
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
	sc := parsed(t, config)
	for code, want := range map[codes.Code]int{codes.Internal: 3, codes.ResourceExhausted: 3, codes.Unavailable: 1, codes.NotFound: 1} {
		synctest.Test(t, func(t *testing.T) {
			var ev events
			e := &echo{unary: func(context.Context, int, string) (string, error) { return "", fails(code) }}
			p := quick()
			p.RateLimitedBase = 10 * time.Second
			cc := inMemory(t, e, p, lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{}), ev.watch())
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
		cc := inMemory(t, e, quick(), lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{}), lullgrpc.WithNotIdempotent("/lull.test.Echo/"))
		_, err := call(t.Context(), cc, "")
		wantFailure(t, err, codes.Internal, lull.ErrNotIdempotent, 1)
	})
}

func TestTheThrottleIsTheTargets(t *testing.T) {
	sc := parsed(t, `{"methodConfig":[{"name":[{"service":"a.A"}],"timeout":"1s"}],"retryThrottling":{"maxTokens":10,"tokenRatio":0.1}}`)
	c := newClient(t, lull.Policy{}, lullgrpc.WithServiceConfig(sc, lullgrpc.ServiceConfigOptions{}))
	of := func(target, method string) *budget.GRPCThrottle {
		b, _ := c.Dependency(t.Context(), target, method).Budget().(*budget.GRPCThrottle)
		return b
	}
	if of("x", "/a.A/Get") == nil || of("x", "/a.A/Get") != of("x", "/b.B/Get") || of("x", "/a.A/Get") == of("y", "/a.A/Get") {
		t.Error("want one throttle for each target")
	}
}
