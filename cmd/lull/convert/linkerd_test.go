package convert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
)

// A route that may be retried is bounded by the budget of its profile alone; without one Linkerd's counts.
func TestServiceProfilesOfLinkerd(t *testing.T) {
	profile := func(spec string) (lull.Policy, Report) {
		set, report := readSet(t, "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {name: a}\nspec: "+spec+"\n")
		d, ok := set.File.Dependency("a x")
		if !ok {
			t.Fatalf("%s: no dependency", spec)
		}
		return d.Policy, report
	}
	p, report := profile("{routes: [{name: x, isRetryable: true}]}")
	if p.Attempts != 1000 || p.Deadline != 10*time.Second || p.Timeouts != lull.TimeoutsNever || p.Budget != (budget.Config{Ratio: 0.2, Floor: 10, Window: 10 * time.Second}) || p.Backoff.Ceiling(3) != 0 {
		t.Errorf("%+v", p)
	}
	if text := report.String(); !strings.Contains(text, "retryRatio 0.2, minRetriesPerSecond 10, ttl 10s") || !strings.Contains(text, "after 10s") {
		t.Errorf("reported\n%s", text)
	}
	if p, _ := profile("{retryBudget: {retryRatio: 9, minRetriesPerSecond: 0, ttl: 1m}, routes: [{name: x, isRetryable: true, timeout: 2s}]}"); p.Budget != (budget.Config{Ratio: 4, Window: time.Minute}) || p.Deadline != 2*time.Second {
		t.Errorf("%+v", p)
	}
	if p, _ := profile("{routes: [{name: x}]}"); p.Attempts != 1 || !p.Budget.Unlimited {
		t.Errorf("%+v", p)
	}
	for spec, want := range map[string]string{
		"{retryBudget: {retryRatio: many}, routes: []}":       "spec.retryBudget.retryRatio is \"many\": want a number from 0 to 1000",
		"{retryBudget: {ttl: 10}, routes: []}":                "want a duration such as 200ms",
		"{routes: [{name: x, timeout: soon}]}":                "spec.routes[0].timeout is \"soon\": want a duration such as 200ms",
		"{routes: [{name: x, isRetryable: often}]}":           "want true or false",
		"{retryBudget: {minRetriesPerSecond: -1}, routes: 3}": "want a whole number from 0",
	} {
		_, _, err := Read([]File{{"p.yaml", []byte("apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nspec: " + spec + "\n")}}, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "p.yaml:3:") {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

// Annotations are those of a Service without a profile.
func TestAnnotationsOfLinkerd(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {retry.linkerd.io/http: 5xx, retry.linkerd.io/timeout: 1s}}\n"
	set, report := readSet(t, service)
	d, _ := set.File.Dependency("a")
	if p := d.Policy; p.Attempts != 2 || p.AttemptTimeout != time.Second || p.Deadline != lull.NoTimeout || p.Timeouts != lull.TimeoutsAlways || p.Backoff != (backoff.Schedule{Jitter: backoff.Equal, Base: 50 * time.Millisecond, Cap: 250 * time.Millisecond}) || !p.Budget.Unlimited {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(report.String(), "there is one retry") {
		t.Errorf("reported\n%s", report)
	}
	set, report = readSet(t, service+"---\napiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {name: a.b.svc.cluster.local}\nspec: {routes: [{name: x}]}\n")
	if _, ok := set.File.Dependency("a"); ok || !strings.Contains(report.String(), "since the Service has a ServiceProfile") {
		t.Errorf("beside a profile: %t\n%s", ok, report)
	}
}

func FuzzLinkerd(f *testing.F) {
	f.Add([]byte("apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nspec: {retryBudget: {retryRatio: 1e-9, ttl: 99999h}, routes: [{isRetryable: true, timeout: 1ns}]}"))
	f.Add([]byte("apiVersion: v1\nkind: Service\nmetadata: {annotations: {retry.linkerd.io/grpc: x, retry.linkerd.io/limit: 65535, retry.linkerd.io/timeout: 1ns}}"))
	fuzz(f, new(Linkerd))
}

// gapicConfig is a service config as googleapis has them: many methods, and no maxAttempts.
func gapicConfig(methods int) string {
	var names []string
	for i := range methods {
		names = append(names, fmt.Sprintf(`{"service": "google.cloud.example.v1.Example", "method": "Method%d"}`, i))
	}
	return `{"methodConfig": [{"name": [` + strings.Join(names, ",\n") + `], "timeout": "60s",
  "retryPolicy": {"initialBackoff": "0.100s", "maxBackoff": "60s", "backoffMultiplier": 1.3, "retryableStatusCodes": ["UNAVAILABLE"]}},
 {"name": [{"service": "google.cloud.example.v1.Other"}], "timeout": "30s"}]}`
}

// A service config of googleapis is refused as gRPC refuses it, with a word of the option, and read
// with the option as its generators do.
func TestServiceConfigsOfGoogleapis(t *testing.T) {
	f := File{"example_grpc_service_config.json", []byte(gapicConfig(149))}
	refused(t, f, Options{}, "methodConfig[0].retryPolicy.maxAttempts is missing: want a whole number from 2 (--gapic reads")
	out := convert(t, f, Lull, Options{GAPIC: true})
	noted(t, out.Report, Assumed, "methodConfig[0].retryPolicy", "retries until the timeout")
	all := policies(t, out.Data)
	if len(all) != 150 || all[0].Policy.Attempts != 1000 || all[0].Policy.Deadline != time.Minute || all[149].Policy.Attempts != 1 {
		t.Errorf("%d dependencies, %+v", len(all), all[0])
	}
	// A policy with attempts keeps them.
	with := strings.Replace(string(f.Data), `"retryPolicy": {`, `"retryPolicy": {"maxAttempts": 3, `, 1)
	check.Equal(t, policies(t, convert(t, File{"x.json", []byte(with)}, Lull, Options{GAPIC: true}).Data)[0].Policy.Attempts, 3, "attempts")
}

// The policy that most dependencies have is written once, as that of the defaults.
func TestIdenticalMethodsAreWrittenOnce(t *testing.T) {
	out := convert(t, File{"x.json", []byte(gapicConfig(149))}, Lull, Options{GAPIC: true})
	check.Equal(t, strings.Count(string(out.Data), "attempts: 1000"), 1, "attempts written in\n%s", out.Data)
	noted(t, out.Report, Assumed, "(all)", "149 dependencies have the same policy")
	// What each of them has is as it was.
	set, _, err := Read([]File{{"x.json", []byte(gapicConfig(149))}}, Options{GAPIC: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range policies(t, out.Data) {
		if was, ok := set.File.Dependency(d.Name); !ok || was.Policy != d.Policy {
			t.Errorf("%s: %+v, want %+v", d.Name, d.Policy, was.Policy)
		}
	}
}
