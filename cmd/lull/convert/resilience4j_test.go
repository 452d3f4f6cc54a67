package convert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
)

// read4j returns the policy of the instance called a, and the report.
func read4j(t *testing.T, text string) (lull.Policy, Report) {
	t.Helper()
	set, report := readSet(t, text)
	d, ok := set.File.Dependency("a")
	if !ok {
		t.Fatalf("no dependency of\n%s", text)
	}
	return d.Policy, report
}

// What an instance of retry waits for, by the switches.
func TestWaitsOfResilience4j(t *testing.T) {
	constant := func(d time.Duration) backoff.Schedule {
		return backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: d, Cap: d}
	}
	grows := func(base, longest time.Duration, factor float64) backoff.Schedule {
		return backoff.Schedule{Jitter: backoff.None, Base: base, Cap: longest, Factor: factor}
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		of, configs string
		want        backoff.Schedule
	}{
		{"{}", "{}", constant(500 * ms)},
		{"", "{}", constant(500 * ms)}, // null: all of it is left to the configs
		{"", "{default: {waitDuration: 2s}}", constant(2 * time.Second)},
		{"{waitDuration: 200}", "{}", constant(200 * ms)},
		{"{wait-duration: PT0.2S}", "{}", constant(200 * ms)},
		{"{waitDuration: 0}", "{}", backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None}},
		// Without a wait of its own the switches have no effect.
		{"{enableExponentialBackoff: true}", "{}", constant(500 * ms)},
		{"{waitDuration: 100ms, enableExponentialBackoff: true}", "{}", grows(100*ms, 150*ms, 1.5)},
		{"{waitDuration: 100ms, enableExponentialBackoff: true, exponentialBackoffMultiplier: 3, maxAttempts: 4}", "{}", grows(100*ms, 900*ms, 3)},
		{"{waitDuration: 100ms, enableExponentialBackoff: true, exponentialBackoffMultiplier: 3, maxAttempts: 4, exponentialMaxWaitDuration: 400ms}", "{}", grows(100*ms, 400*ms, 3)},
		// The longest wait counts only beside a multiplier.
		{"{waitDuration: 100ms, enableExponentialBackoff: true, maxAttempts: 4, exponentialMaxWaitDuration: 110ms}", "{}", grows(100*ms, 225*ms, 1.5)},
		// Switches and the multiplier come from the configs; a wait of the instance does not hide them.
		{"{waitDuration: 100ms}", "{default: {waitDuration: 1s, enableExponentialBackoff: true, exponentialBackoffMultiplier: 2}}", grows(100*ms, 200*ms, 2)},
		{"{baseConfig: x}", "{default: {waitDuration: 9s}, x: {waitDuration: 1s}}", constant(time.Second)},
		{"{baseConfig: x}", "{default: {waitDuration: 9s}, x: {maxAttempts: 2}}", constant(9 * time.Second)},
	} {
		p, _ := read4j(t, fmt.Sprintf("resilience4j.retry:\n  configs: %s\n  instances:\n    a: %s\n", c.configs, c.of))
		if p.Backoff != c.want {
			t.Errorf("%s with %s waits %+v, want %+v", c.of, c.configs, p.Backoff, c.want)
		}
	}
	p, report := read4j(t, "resilience4j: {retry: {instances: {a: {waitDuration: 1s, enableRandomizedWait: true}}}}")
	if p.Backoff.Jitter != backoff.Proportional || p.Backoff.Ceiling(1) != time.Second || p.Backoff.Ceiling(2) != time.Second || !strings.Contains(report.String(), "spreads a wait by 0.5") {
		t.Errorf("%+v\n%s", p.Backoff, report)
	}
	if _, report := read4j(t, "resilience4j: {retry: {instances: {a: {waitDuration: 1s, enableRandomizedWait: true, randomizedWaitFactor: 0.2}}}}"); strings.Contains(report.String(), "spreads a wait") {
		t.Errorf("a fifth is a fifth:\n%s", report)
	}
}

// Instances of one name are one dependency; what nothing says is as in resilience4j.
func TestRegistriesOfResilience4j(t *testing.T) {
	p, report := read4j(t, "resilience4j:\n  circuitbreaker.instances.a: {}\n  timelimiter.instances: {a: {}}\n  bulkhead: {instances: {a: {}}}\n")
	want := breaker.Config{Consecutive: -1, FailureRate: 0.5, SlowRate: 1, SlowCall: time.Minute, MinCalls: 100, Window: r4jWindow, OpenFor: time.Minute, OpenMax: time.Minute, OpenJitter: -1, Probes: 10}
	if p.Breaker != want || p.AttemptTimeout != time.Second || p.Limit != (bulkhead.Config{InFlight: 25}) || p.Attempts != 1 || p.Deadline != lull.NoTimeout {
		t.Errorf("%+v", p)
	}
	for _, text := range []string{"failureRateThreshold 50", "timeoutDuration 1s", "maxConcurrentCalls 25", "the last 100 calls"} {
		if !strings.Contains(report.String(), text) {
			t.Errorf("%q is not reported:\n%s", text, report)
		}
	}
	p, _ = read4j(t, `resilience4j.circuitbreaker:
  configs: {a: {slidingWindowType: time_based, slidingWindowSize: 7}, default: {failureRateThreshold: 9}}
  instances: {a: {minimumNumberOfCalls: 3, waitDurationInOpenState: 2s, enableRandomizedWait: true}}
`)
	if p.Breaker.Window != 7*time.Second || p.Breaker.MinCalls != 3 || p.Breaker.FailureRate != 0.5 || p.Breaker.OpenFor != 2*time.Second || p.Breaker.OpenMax != 3*time.Second || p.Breaker.OpenJitter != 0 {
		t.Errorf("%+v", p.Breaker)
	}
}

// What is wrong has its place, and what is allowed.
func TestMistakesInResilience4j(t *testing.T) {
	for text, want := range map[string]string{
		"retry: {instances: {a: {maxAttempts: 0}}}":                                                                     `resilience4j.retry.instances.a.maxAttempts is 0: want a whole number from 1`,
		"retry: {instances: {a: {maxAttempts: '${N}'}}}":                                                                "want a whole number from 1",
		"retry: {instances: {a: {waitDuration: 1 min}}}":                                                                "want a duration such as 500ms",
		"retry: {instances: {a: {waitDuration: -1s}}}":                                                                  "want a duration such as 500ms",
		"retry: {instances: {a: {waitDuration: P}}}":                                                                    "want a duration such as 500ms",
		"retry: {instances: {a: {waitDuration: 300000000d}}}":                                                           "want a duration such as 500ms",
		"retry: {instances: {a: {baseConfig: b}}}":                                                                      "want the name of another of the configs",
		"retry: {configs: {b: {baseConfig: b}}, instances: {a: {baseConfig: b}}}":                                       "want the name of another of the configs",
		"retry: {instances: [a]}":                                                                                       "resilience4j.retry.instances is a list: want a mapping",
		"retry: {instances: {a: 3}}":                                                                                    "want a mapping",
		"circuitbreaker: {instances: {a: {failureRateThreshold: 0}}}":                                                   "want a percentage above 0 and up to 100",
		"circuitbreaker: {instances: {a: {slidingWindowType: TIME}}}":                                                   "want COUNT_BASED or TIME_BASED",
		"retry: {instances: {a: {waitDuration: 1s, enableRandomizedWait: true, randomizedWaitFactor: 2}}}":              "want a number from 0 to 1",
		"retry: {instances: {a: {waitDuration: 1s, enableExponentialBackoff: 1}}}":                                      "want true or false",
		"retry: {instances: {a: {waitDuration: 1, enableExponentialBackoff: true, exponentialBackoffMultiplier: 0.5}}}": "want a number from 1 to 1000",
	} {
		_, _, err := Read([]File{{"application.yml", []byte("resilience4j:\n  " + text + "\n")}}, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "application.yml:2:") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, err := Convert([]File{{"a.yaml", []byte("attempts: 2")}}, Resilience4j, Options{})
	if err == nil || !strings.Contains(err.Error(), "want lull, grpc, istio, envoy, gateway, envoy-gateway or dapr") {
		t.Errorf("it cannot be written: %v", err)
	}
}

func FuzzResilience4j(f *testing.F) {
	f.Add([]byte("resilience4j.retry.instances: {a: {waitDuration: 1s, enableExponentialBackoff: true, maxAttempts: 999999}}"))
	f.Add([]byte("resilience4j: {circuitbreaker: {instances: {a: {baseConfig: b}}, configs: {b: {slidingWindowType: TIME_BASED, slidingWindowSize: 2147483647}}}}"))
	fuzz(f, new(Resilience4j))
}
