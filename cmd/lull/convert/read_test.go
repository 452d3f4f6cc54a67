package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/preset"
)

func one(t *testing.T, text string, o Options) lull.Policy {
	t.Helper()
	all := policies(t, convert(t, File{"x.yaml", []byte(text)}, Lull, o).Data)
	if len(all) != 1 {
		t.Fatalf("%d dependencies in %s", len(all), text)
	}
	return all[0].Policy
}

func names(all []config.Dependency) []string {
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names
}

// The format of a document is recognised by its fields, not by the name of the file.
func TestFormatsAreRecognised(t *testing.T) {
	for text, want := range map[string]Format{
		"attempts: 3":                              Lull,
		"defaults: {}\ndependencies: {a: {}}":      Lull,
		`{"methodConfig": []}`:                     GRPC,
		`{"RetryThrottling": {}}`:                  GRPC,
		`methodConfig: []`:                         GRPC,
		"apiVersion: networking.istio.io/v1beta1":  Istio,
		"apiVersion: gateway.networking.k8s.io/v1": Gateway,
		"apiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy": Gateway,
		"static_resources: {}":     Envoy,
		`{"virtualHosts": []}`:     Envoy,
		"retry_on: 5xx":            Envoy,
		"numRetries: 3":            Envoy,
		"outlier_detection: {}":    Envoy,
		`{"configs": []}`:          Envoy,
		"\"@type\": x.y.z.Cluster": Envoy,
	} {
		docs := must.Have(parse("", []byte(text)))
		if got, ok := recognise(docs[0]); !ok || got != want {
			t.Errorf("%q is taken for %v, %v, want %v", text, got, ok, want)
		}
		check.Equal(t, IsPolicyFile(File{"x", []byte(text)}), (want == Lull), "%q: IsPolicyFile", text)
	}
}

func TestFormatsHaveNames(t *testing.T) {
	for _, f := range Formats() {
		text, err := f.MarshalText()
		var back Format
		if err != nil || back.UnmarshalText([]byte(strings.ToUpper(string(text)))) != nil || back != f || f.Title() == "" || !strings.Contains(FormatNames(), f.String()) {
			t.Errorf("%v: %q, %v, %v", f, text, back, err)
		}
	}
	for k := range kinds {
		text, err := k.MarshalText()
		var back Kind
		if err != nil || back.UnmarshalText(text) != nil || back != k || k.Loss() != (k == Lost || k == Changed) {
			t.Errorf("%v: %q, %v, %v", k, text, back, err)
		}
	}
	if Format(99).String() != "format(99)" || Kind(99).String() != "kind(99)" || Format(99).Title() != "" {
		t.Error("what is none has a name")
	}
}

// Files of several formats, documents of several kinds, lists and anchors.
func TestSeveralFilesAndDocuments(t *testing.T) {
	istio := `apiVersion: v1
kind: List
items:
  - apiVersion: networking.istio.io/v1
    kind: VirtualService
    spec: {http: [{route: [{destination: &there {host: a}}], retries: &r {attempts: 1, retryOn: reset}}]}
  - apiVersion: networking.istio.io/v1
    kind: VirtualService
    spec: {http: [{route: [{destination: {<<: *there, subset: x}}], retries: {<<: *r, attempts: 4}}]}
---
# nothing
---
apiVersion: apps/v1
kind: Deployment
`
	out := must.Have(Convert([]File{
		{"i.yaml", []byte(istio)},
		{"g.json", []byte(`{"methodConfig": [{"name": [{"service": "s"}], "timeout": "1s", "waitForReady": true}]} {"methodConfig": [{"name": [{"service": "t"}]}]}`)},
		{"p.yaml", []byte("dependencies: {mine: {attempts: 2}}")},
	}, Lull, Options{}))
	all := policies(t, out.Data)
	check.Slices(t, names(all), []string{"mine", "/s/", "/t/", "a", "a/x"}, "names(all)")
	if d, _ := (&config.PolicyFile{Dependencies: all}).Dependency("a/x"); d.Policy.Attempts != 5 || d.Policy.Timeouts != lull.TimeoutsAlways {
		t.Errorf("merged: %+v", d.Policy)
	}
	if !slices.ContainsFunc(out.Report, func(e Entry) bool { return e.Kind == Aside && strings.Contains(e.Why, "Deployment") && e.Line > 10 }) {
		t.Errorf("the Deployment is not reported: %v", out.Report)
	}
	inOrder := slices.IsSortedFunc(out.Report, func(a, b Entry) int {
		order := []string{"i.yaml", "g.json", "p.yaml"}
		return cmp.Or(slices.Index(order, a.File)-slices.Index(order, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	if !inOrder {
		t.Errorf("the report is not in the order of the files: %s", out.Report)
	}
}

// Two routes to one host with the same settings are one dependency; others have names of their own.
func TestNamesOfDependencies(t *testing.T) {
	route := func(name, host, retries string) string {
		return fmt.Sprintf("{name: %q, route: [{destination: {host: %q}}], retries: {%s}}", name, host, retries)
	}
	long := strings.Repeat("x", 150)
	out := convert(t, File{"x.yaml", []byte("apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec:\n  http:\n    - " + strings.Join([]string{
		route("one", "a", "attempts: 1"), route("two", "a", "attempts: 1"), route("three", "a", "attempts: 2"), route("three", "a", "attempts: 3"),
		route("four", long, "attempts: 1"), route("five", "b\tc", "attempts: 1"),
	}, "\n    - "))}, Lull, Options{})
	got := names(policies(t, out.Data))
	check.Slices(t, got, []string{"a", "a/three", "a (2)", long[:100], "b-c"}, "names")
	assumed := 0
	for _, e := range out.Report {
		if e.Kind == Assumed && strings.Contains(e.Why, "names are taken") {
			assumed++
		}
	}
	check.Equal(t, assumed, 4, "names are reported: %v", out.Report)
}

// And the other way: hosts are names of DNS, each its own.
func TestNamesOfHosts(t *testing.T) {
	f := &config.PolicyFile{}
	for _, name := range []string{"api", "API", "a.b-c", "Über uns", "123", "-", "a..b.", strings.Repeat("y", 90), strings.Repeat("y", 91), "shop/v1", "shop-v1"} {
		f.Dependencies = append(f.Dependencies, config.Dependency{Name: name})
	}
	data := must.Have(config.FormatPolicyFile(f))
	for _, to := range []Format{Istio, Gateway} {
		out := convert(t, File{"p.yaml", data}, to, Options{})
		docs := must.Have(parse("", out.Data))
		seen := map[string]bool{}
		for _, d := range docs {
			kind, name := d.Get("kind").Text, d.Get("metadata").Get("name").Text
			if kind != "VirtualService" && kind != "HTTPRoute" {
				continue
			}
			if seen[name] || len(name) > 253 {
				t.Errorf("%v: %q twice, or too long", to, name)
			}
			seen[name] = true
			for label := range strings.SplitSeq(name, ".") {
				if len(label) == 0 || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || label[0] == '-' || label[len(label)-1] == '-' {
					t.Errorf("%v: %q is no name of DNS", to, name)
				}
			}
		}
		check.Equal(t, len(seen), len(f.Dependencies), "%v: names", to)
		for _, d := range f.Dependencies {
			told := slices.ContainsFunc(out.Report, func(e Entry) bool {
				return e.Path == "dependencies."+d.Name && strings.HasPrefix(e.Why, "hosts have names")
			})
			if told == seen[d.Name] && d.Name != "shop-v1" {
				t.Errorf("%v: %q is reported: %v", to, d.Name, told)
			}
		}
	}
}

// What a file leaves open is as in the other system, or as in the base.
func TestBases(t *testing.T) {
	const vs = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{route: [{destination: {host: a}}], timeout: 2s}]}\n"
	p := one(t, vs, Options{})
	if p.Attempts != 3 || p.Deadline != 2*time.Second || !p.Breaker.Off || !p.Budget.Unlimited || p.AttemptTimeout != lull.NoTimeout {
		t.Errorf("as Istio: %+v", p)
	}
	check.Equal(t, one(t, vs, Options{Base: "lull"}), (lull.Policy{Deadline: 2 * time.Second}), "as recommended")
	want := preset.ExternalAPI()
	want.Deadline, want.AttemptTimeout = 2*time.Second, 2*time.Second // it would be 15s
	check.Equal(t, one(t, vs, Options{Base: "external-api"}), want, "as the preset")
	// A base counts in what is written for another proxy, too.
	out := convert(t, File{"x.yaml", []byte(vs)}, Envoy, Options{Base: "external-api"})
	if !strings.Contains(string(out.Data), "retry_budget") || !strings.Contains(string(out.Data), "rate_limited_retry_back_off") {
		t.Errorf("the base's budget is not written:\n%s", out.Data)
	}
	if p := one(t, "retry_on: 5xx\nnum_retries: 3\nretry_back_off: {base_interval: 0.1s}", Options{Base: "lull"}); p.Attempts != 4 || p.Budget != (budget.Config{}) || p.Backoff != (backoff.Schedule{Base: 100 * time.Millisecond, Cap: time.Second}) {
		t.Errorf("a retry policy: %+v", p)
	}
}

// Both spellings of protobuf's JSON are read.
func TestEnvoyInCamelCase(t *testing.T) {
	p := one(t, `{"virtualHosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c", "timeout": "2s",
		"retryPolicy": {"retryOn": "reset", "numRetries": 2, "perTryTimeout": "0.5s", "retryBackOff": {"baseInterval": "0.01s", "maxInterval": "0.02s"}}}}]}]}`, Options{})
	if p.Attempts != 3 || p.AttemptTimeout != 500*time.Millisecond || p.Deadline != 2*time.Second || p.Backoff.Base != 10*time.Millisecond || p.Backoff.Cap != 20*time.Millisecond || p.Timeouts != lull.TimeoutsAlways {
		t.Errorf("%+v", p)
	}
}

// Where a value has no effect in the other system, it has none here.
func TestWhatHasNoEffect(t *testing.T) {
	p := one(t, "retry_policy: {retry_on: reset, per_try_timeout: 3s}\ntimeout: 3s\ncluster: c", Options{})
	if p.AttemptTimeout != lull.NoTimeout || p.Deadline != 3*time.Second {
		t.Errorf("per_try_timeout beyond the timeout: %+v", p)
	}
	check.Equal(t, one(t, "retry_policy: {num_retries: 5}\ncluster: c", Options{}).Attempts, 1, "without retry_on")
	check.Equal(t, one(t, "hedge_policy: {hedge_on_per_try_timeout: true}\ncluster: c", Options{}).Hedge.Attempts, 0, "hedges without a per_try_timeout")
	if p := one(t, "retry_on: reset\nretry_back_off: {base_interval: 0.0000001s, max_interval: 0.0000002s}", Options{}); p.Backoff.Base != time.Millisecond || p.Backoff.Cap != time.Millisecond {
		t.Errorf("less than a millisecond: %+v", p.Backoff)
	}
	check.Equal(t, one(t, "retry_on: reset\nnum_retries: 4294967295", Options{}).Attempts, 1000, "as many as there are")
	if p := one(t, "timeout: 0s\nretry_policy: {retry_on: 5xx, per_try_timeout: 315576000000s}\ncluster: c", Options{}); p.Deadline != lull.NoTimeout || p.AttemptTimeout <= 0 {
		t.Errorf("for ever: %+v", p)
	}
}

// Policy files are put together; each has its own places, defaults and facts.
func TestSeveralPolicyFiles(t *testing.T) {
	a := File{"a.yaml", []byte("defaults: {deadline: 2s}\ndependencies:\n  one: {attempts: 2}\n")}
	b := File{"b.yaml", []byte("dependencies:\n  two:\n    preset: external-api\n    operations: {pay: {idempotent: false}}\n    p99: 20ms\nservices: {shop: {calls: [two]}}\n")}
	out := must.Have(Convert([]File{a, b}, Lull, Options{}))
	all := policies(t, out.Data)
	want := preset.ExternalAPI()
	if len(all) != 2 || all[0].Policy.Deadline != 2*time.Second || all[1].Policy != want || all[1].P99 != 20*time.Millisecond || len(all[1].Operations) != 1 || !strings.Contains(string(out.Data), "services:") {
		t.Errorf("%+v\n%s", all, out.Data)
	}
	there := must.Have(Convert([]File{a, b}, Envoy, Options{}))
	for path, place := range map[string]string{"dependencies.one.budget": "a.yaml:3:3", "dependencies.two.p99": "b.yaml:5:10", "dependencies.two.budget": "b.yaml:3:13", "services.shop": "b.yaml:6:12"} {
		if !slices.ContainsFunc(there.Report, func(e Entry) bool {
			return e.Path == path && fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column) == place
		}) {
			t.Errorf("%s is not reported at %s:\n%s", path, place, there.Report)
		}
	}
	check.Equal(t, strings.Count(string(there.Data), "retriable_request_headers"), 2, "what is safe to repeat in\n%s", there.Data)
	_, err := Convert([]File{a, {"c.yaml", a.Data}}, Lull, Options{})
	if err == nil || err.Error() != "c.yaml:3:3: dependencies.one is in another file as well: want each once" {
		t.Errorf("twice: %v", err)
	}
}

// One dependency of a file with a call graph is a file without it.
func TestOneDependency(t *testing.T) {
	f := File{"a.yaml", []byte("dependencies: {one: {attempts: 2}, two: {attempts: 3}}\nservices: {shop: {calls: [one, two]}}\n")}
	all := policies(t, convert(t, f, Lull, Options{Only: "two"}).Data)
	if len(all) != 1 || all[0].Name != "two" || all[0].Policy.Attempts != 3 {
		t.Errorf("%+v", all)
	}
}

// Of two numbers of failures in a row the smaller one is the breaker's, and the other one
// is reported.
func TestFailuresInARow(t *testing.T) {
	for _, c := range []struct {
		fields string
		want   int
		lost   string
	}{
		{"consecutive5xxErrors: 7", 7, ""},
		{"consecutive5xxErrors: 7, consecutiveGatewayErrors: 3", 3, "consecutive5xxErrors"},
		{"consecutive5xxErrors: 7, consecutiveGatewayErrors: 9", 7, "consecutiveGatewayErrors"},
		{"consecutive5xxErrors: 0, consecutiveGatewayErrors: 9", 9, ""},
		{"consecutive5xxErrors: 0", 0, ""},
		{"interval: 5s", 5, ""},
	} {
		out := convert(t, File{"x.yaml", []byte("apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: a, trafficPolicy: {outlierDetection: {maxEjectionPercent: 100, " + c.fields + "}}}")}, Lull, Options{})
		b := policies(t, out.Data)[0].Policy.Breaker
		if b.Off != (c.want == 0) || b.Consecutive != c.want || c.want > 0 && b.ConsecutiveFor != -1 {
			t.Errorf("%s: %+v", c.fields, b)
		}
		lost := slices.ContainsFunc(out.Report, func(e Entry) bool { return e.Kind == Lost && strings.Contains(e.Path, ".consecutive") })
		if lost != (c.lost != "") || lost && !has(out.Report, "spec.trafficPolicy.outlierDetection."+c.lost) {
			t.Errorf("%s: %v", c.fields, out.Report)
		}
	}
}

// What would be too large to be read is not written.
func TestPolicyFilesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: the same every time, on one goroutine")
	}
	var text strings.Builder
	text.WriteString("virtual_hosts: [{name: v, domains: ['*'], routes: [\n")
	for i := range 6000 {
		fmt.Fprintf(&text, "  {match: {prefix: /}, route: {cluster: c%d, timeout: %ds, retry_policy: {retry_on: reset}}},\n", i, i+1) // equal ones would be folded
	}
	text.WriteString("]}]")
	refused(t, File{"x.yaml", []byte(text.String())}, Options{}, "6000 dependencies make a policy file of more than the 1 MiB")
}

// Which requests may be repeated is lull's own decision; a setting that differs from it is lost.
func TestOtherRequests(t *testing.T) {
	const text = `{"cluster": "c", "retry_policy": {"retry_on": "reset", "retriable_request_headers": [{"name": ":method", "string_match": {"exact": "%s"}}]}}`
	out := convert(t, File{"x.json", []byte(fmt.Sprintf(text, "GET"))}, Envoy, Options{})
	if !slices.Contains(losses(out.Report), "retry_policy.retriable_request_headers") || strings.Contains(string(out.Data), "retriable_request_headers") {
		t.Errorf("%s\n%s", out.Data, out.Report)
	}
}

// Where a base has what the file leaves open, nothing of the file is handed on beside the
// policy, so what the policy cannot hold is lost.
func TestABaseLeavesNothingBeside(t *testing.T) {
	const rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: a, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 4, maxEjectionPercent: 20}, retryBudget: {percent: 7}}}"
	const lost = "spec.trafficPolicy.outlierDetection.maxEjectionPercent"
	out := convert(t, File{"x.yaml", []byte(rule)}, Istio, Options{})
	if slices.Contains(losses(out.Report), lost) || !strings.Contains(string(out.Data), "maxEjectionPercent: 20") {
		t.Errorf("as it is:\n%s%s", out.Data, out.Report)
	}
	out = convert(t, File{"x.yaml", []byte(rule)}, Istio, Options{Base: "lull"})
	if !slices.Contains(losses(out.Report), lost) || !strings.Contains(string(out.Data), "maxEjectionPercent: 100") || !strings.Contains(string(out.Data), "percent: 7") {
		t.Errorf("with a base:\n%s%s", out.Data, out.Report)
	}
}
