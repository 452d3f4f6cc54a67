package convert

import (
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
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
