package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
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
		check.Equal(t, p.Backoff, c.want, "%s with %s waits", c.of, c.configs)
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

// attempts4j are the attempts and waits of each dependency that the files make.
func attempts4j(t *testing.T, files ...File) (string, Report) {
	t.Helper()
	set, report, err := Read(files, Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, files[0].Data)
	}
	var all []string
	for _, d := range set.File.Dependencies {
		all = append(all, fmt.Sprintf("%s: %d %v", d.Name, d.Policy.Attempts, d.Policy.Backoff.Base))
	}
	slices.Sort(all)
	return strings.Join(all, ", "), report
}

// Later documents override earlier ones, and those of a profile count with it alone.
func TestProfilesOfSpring(t *testing.T) {
	const (
		base = "resilience4j.retry: {instances: {a: {maxAttempts: 3, waitDuration: 200ms}}}\n"
		prod = "spring.config.activate.on-profile: prod\n"
		more = "resilience4j.retry.instances.a: {maxAttempts: 9}\n"
	)
	for text, want := range map[string]string{
		base:                         "a: 3 200ms",
		base + "---\n" + more:        "a: 9 200ms",
		more + "---\n" + base:        "a: 3 200ms",
		base + "---\n" + prod + more: "a (prod): 9 200ms, a: 3 200ms",
		prod + more + "---\n" + base: "a: 3 200ms", // what comes later counts
		base + "---\n" + prod + "server: {port: 8080}\n":                             "a: 3 200ms",
		"server: {port: 8080}\n---\n" + base:                                         "a: 3 200ms",
		"defaults: {x: 1}\nservices: {b: {calls: 3}}\n---\n" + base:                  "a: 3 200ms",
		base + "---\nspring: {config: {activate: {on-profile: prod}}}\n" + more:      "a (prod): 9 200ms, a: 3 200ms",
		base + "---\nspring: {config.activate: {onProfile: [prod, test]}}\n" + more:  "a (prod): 9 200ms, a: 3 200ms",
		base + "---\nspring.profiles: prod\n" + more:                                 "a (prod): 9 200ms, a: 3 200ms",
		base + "---\nspring.profiles.active: prod\n" + more:                          "a: 9 200ms",
		base + "---\nspring.config.activate.on-profile: '!prod'\n" + more:            "a (prod): 3 200ms, a: 9 200ms",
		base + "---\nspring.config.activate.on-profile: default\n" + more:            "a: 9 200ms",
		base + "---\nspring.config.activate.on-profile: eu & (prod | test)\n" + more: "a (eu, prod): 9 200ms, a: 3 200ms",
		base + "---\nspring.config.activate.on-cloud-platform: kubernetes\n" + more:  "a (kubernetes): 9 200ms, a: 3 200ms",
		prod + base: "a: 3 200ms", // in no other way
		prod + base + "---\nspring.config.activate.on-profile: test\n" + more:                                                                                     "a (prod): 3 200ms, a (test): 9 500ms",
		base + "---\n" + prod + "resilience4j.retry.configs.default.waitDuration: 1s\nresilience4j.retry.instances.b: {}\n":                                       "a: 3 200ms, b: 3 1s",
		"resilience4j.retry: {configs: {default: {maxAttempts: 4}}, instances: {a: {}}}\n---\n" + prod + "resilience4j.retry.configs.default: {maxAttempts: 6}\n": "a (prod): 6 500ms, a: 4 500ms",
		base + "---\n" + prod + "resilience4j:\n  retry:\n    instances:\n      a:\n        max-attempts: 9\n":                                                    "a (prod): 9 200ms, a: 3 200ms",
		base + "---\n" + prod + "resilience4j.retry.instances.a.maxAttempts: 9\n":                                                                                 "a (prod): 9 200ms, a: 3 200ms",
		base + "---\n" + prod + "resilience4j: {retry: {backends: {b.c: {maxAttempts: 2}}}}\n":                                                                    "a: 3 200ms, b.c: 2 500ms",
		base + "---\napiVersion: v1\nkind: Service\n---\n" + prod + more:                                                                                          "a (prod): 9 200ms, a: 3 200ms",
		"x: &x {maxAttempts: 7}\n" + base + "---\n" + prod + "y: &y {maxAttempts: 8}\nresilience4j.retry.instances.a: {<<: *y}\n":                                 "a (prod): 8 200ms, a: 3 200ms",
	} {
		if got, report := attempts4j(t, File{"application.yml", []byte(text)}); got != want {
			t.Errorf("%s, want %s of\n%s\n%s", got, want, text, report)
		}
	}
	for _, wrong := range []string{"a & b | c", "(a", "a b", "!", "''", "a)", "{x: y}"} {
		_, _, err := Read([]File{{"application.yml", []byte(base + "---\nspring.config.activate.on-profile: " + wrong + "\n" + more)}}, Options{})
		if (err == nil) != (wrong == "{x: y}") { // which is something else
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// A file of a profile counts after all others of its application, whatever the order on the command
// line. Files in other folders are of other applications.
func TestFilesOfSpring(t *testing.T) {
	file := func(name, attempts string) File {
		return File{name, []byte("resilience4j.retry.instances.a: {maxAttempts: " + attempts + "}\n")}
	}
	base := File{"x/application.yml", []byte("resilience4j.retry.instances.a: {maxAttempts: 3, waitDuration: 200ms}\n---\nspring.config.activate.on-profile: prod\nresilience4j.retry.instances.a.maxAttempts: 4\n")}
	for _, c := range []struct {
		files []File
		want  string
	}{
		{[]File{base}, "a (prod): 4 200ms, a: 3 200ms"},
		{[]File{base, file("x/application-prod.yaml", "9")}, "a (prod): 9 200ms, a: 3 200ms"},
		{[]File{file("x/application-prod.yml", "9"), base}, "a (prod): 9 200ms, a: 3 200ms"},
		{[]File{base, file("x/application-eu-1.yml", "5")}, "a (eu-1): 5 200ms, a (prod): 4 200ms, a: 3 200ms"},
		{[]File{base, file("y/application-prod.yml", "9")}, "a (2): 9 500ms, a (prod): 4 200ms, a: 3 200ms"},
		{[]File{file("application-prod.yml", "9")}, "a: 9 500ms"},
		{[]File{file("shop.yml", "3"), file("shop-prod.yml", "9"), {"application-prod.yml", []byte("spring.application.name: x\n")}}, "a (prod): 9 500ms, a: 3 500ms"},
		{[]File{{"shop.yml", append(base.Data, "---\nspring.config.activate.on-profile: '!test'\nx: y\n"...)}, file("shop-prod.yml", "9")}, "a (prod): 9 200ms, a: 3 200ms"},
		{[]File{file("product.yml", "3"), file("product-composite.yml", "9")}, "a (2): 9 500ms, a: 3 500ms"},
		{[]File{file("shop.yml", "3"), file("shop2-prod.yml", "9")}, "a (2): 9 500ms, a: 3 500ms"},
		{[]File{{"application.yml", []byte("spring.application.name: shop\n")}, file("application-prod.yml", "9")}, "a: 9 500ms"},
	} {
		got, report := attempts4j(t, c.files...)
		check.Equal(t, got, c.want, "%s", report)
	}
	// What comes from another file has its place there.
	set, _, err := Read([]File{base, file("x/application-prod.yml", "9")}, Options{})
	if err != nil || !slices.Contains(set.Files("a (prod)"), "x/application-prod.yml") {
		t.Errorf("%v %v", err, set.Files("a (prod)"))
	}
	_, _, err = Read([]File{base, file("x/application-prod.yml", "many")}, Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "x/application-prod.yml:1:") {
		t.Errorf("%v", err)
	}
}

// Placeholders have the values of properties, or else their own.
func TestPlaceholdersOfSpring(t *testing.T) {
	for value, want := range map[string]string{
		"${RETRIES:5}":              "5",
		"${app.retries}":            "6",
		"${app.retries:5}":          "6",
		"${RETRIES:${OTHERS:7}}":    "7",
		"${RETRIES:${app.retries}}": "6",
		"${app.again}":              "6",
		"${RETRIES}":                "",
		"${RETRIES:}":               "",
		"${app.loop}":               "",
		"x${RETRIES:5}":             "",
	} {
		text := "app: {retries: 6, again: '${app.retries}', loop: '${app.loop}'}\nresilience4j.retry.instances.a: {maxAttempts: '" + value + "', waitDuration: '${WAIT:1s}', enableExponentialBackoff: '${GROWS:true}'}\n"
		set, report, err := Read([]File{{"application.yml", []byte(text)}}, Options{})
		if (err == nil) != (want != "") {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if err != nil {
			continue
		}
		d, _ := set.File.Dependency("a")
		if fmt.Sprint(d.Policy.Attempts) != want || d.Policy.Backoff.Base != time.Second || d.Policy.Backoff.Factor != 1.5 {
			t.Errorf("%s: %+v", value, d.Policy)
		}
		noted(t, report, Assumed, `["resilience4j.retry.instances.a"].maxAttempts`, "the environment may set")
	}
}

// The default configs are those of each instance, and of those that only the code makes.
func TestDefaultConfigsOfResilience4j(t *testing.T) {
	const both = "resilience4j.retry: {configs: {default: {maxAttempts: 10, waitDuration: 50ms}}}\nresilience4j.circuitbreaker: {configs: {default: {failureRateThreshold: 30}}%s}\n"
	for more, want := range map[string]string{
		"":                     "default",
		", instances: {a: {}}": "a default",
		", instances: {a: {baseConfig: x}}, configs: {x: {}}": "",
		", instances: {default: {}}":                          "default",
	} {
		set, report, err := Read([]File{{"application.yml", []byte(fmt.Sprintf(both, more))}}, Options{})
		if want == "" {
			if err == nil {
				t.Errorf("%s: configs are given twice", more)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, d := range set.File.Dependencies {
			got[d.Name] = true
			if d.Name == "default" && (d.Policy.Attempts != 10 || d.Policy.Backoff.Base != 50*time.Millisecond) {
				t.Errorf("%s: %+v", more, d.Policy)
			}
			if d.Name != "default" || more == "" {
				check.Equal(t, d.Policy.Breaker.FailureRate, 0.3, "%s: %s: %+v", more, d.Name, d.Policy.Breaker)
			}
		}
		check.Equal(t, strings.Join(slices.Sorted(maps.Keys(got)), " "), want, "%s\n%s", more, report)
	}
}

func FuzzSpring(f *testing.F) {
	f.Add([]byte("resilience4j.retry: {instances: {a: {maxAttempts: '${N:3}'}}}\n---\nspring.config.activate.on-profile: '!(a & b) | c'\nresilience4j.retry.instances.a.maxAttempts: 9\n"), "application-x.yml")
	f.Add([]byte("spring: {profiles: [a, b]}\nresilience4j: {retry: {configs: {default: }}}\n---\nresilience4j.retry.configs.default: {waitDuration: 1}\n"), "application.yml")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		from := Resilience4j
		files := []File{{"application.yml", data}, {name, []byte("resilience4j.retry.instances: {a: {maxAttempts: 2}}\n")}}
		first, report, err := Read(files, Options{From: &from})
		second, again, wrong := Read(files, Options{From: &from})
		if fmt.Sprint(err) != fmt.Sprint(wrong) || report.String() != again.String() {
			t.Fatalf("%v, then %v\n%s\n%s", err, wrong, report, again)
		}
		if err == nil && !slices.EqualFunc(first.File.Dependencies, second.File.Dependencies, func(a, b config.Dependency) bool { return a.Name == b.Name && a.Policy == b.Policy }) {
			t.Errorf("%v, then %v", first.File.Dependencies, second.File.Dependencies)
		}
	})
}
