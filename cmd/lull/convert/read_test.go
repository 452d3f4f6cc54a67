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
		docs := must(parse("", []byte(text)))
		if got, ok := recognise(docs[0]); !ok || got != want {
			t.Errorf("%q is taken for %v, %v, want %v", text, got, ok, want)
		}
		if IsPolicyFile(File{"x", []byte(text)}) != (want == Lull) {
			t.Errorf("%q: IsPolicyFile", text)
		}
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
	out := must(Convert([]File{
		{"i.yaml", []byte(istio)},
		{"g.json", []byte(`{"methodConfig": [{"name": [{"service": "s"}], "timeout": "1s", "waitForReady": true}]} {"methodConfig": [{"name": [{"service": "t"}]}]}`)},
		{"p.yaml", []byte("dependencies: {mine: {attempts: 2}}")},
	}, Lull, Options{}))
	all := policies(t, out.Data)
	if got, want := names(all), []string{"mine", "/s/", "/t/", "a", "a/x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
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
	if want := []string{"a", "a/three", "a (2)", long[:100], "b-c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	assumed := 0
	for _, e := range out.Report {
		if e.Kind == Assumed && strings.Contains(e.Why, "names are taken") {
			assumed++
		}
	}
	if assumed != 4 {
		t.Errorf("%d names are reported, want 4: %v", assumed, out.Report)
	}
}

// And the other way: hosts are names of DNS, each its own.
func TestNamesOfHosts(t *testing.T) {
	f := &config.PolicyFile{}
	for _, name := range []string{"api", "API", "a.b-c", "Über uns", "123", "-", "a..b.", strings.Repeat("y", 90), strings.Repeat("y", 91), "shop/v1", "shop-v1"} {
		f.Dependencies = append(f.Dependencies, config.Dependency{Name: name})
	}
	data := must(config.FormatPolicyFile(f))
	for _, to := range []Format{Istio, Gateway} {
		out := convert(t, File{"p.yaml", data}, to, Options{})
		docs := must(parse("", out.Data))
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
		if len(seen) != len(f.Dependencies) {
			t.Errorf("%v: %d names of %d", to, len(seen), len(f.Dependencies))
		}
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
	if p := one(t, vs, Options{Base: "lull"}); p != (lull.Policy{Deadline: 2 * time.Second}) {
		t.Errorf("as recommended: %+v", p)
	}
	want := preset.ExternalAPI()
	want.Deadline, want.AttemptTimeout = 2*time.Second, 2*time.Second // it would be 15s
	if p := one(t, vs, Options{Base: "external-api"}); p != want {
		t.Errorf("as the preset: %+v", p)
	}
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
	if p := one(t, "retry_policy: {num_retries: 5}\ncluster: c", Options{}); p.Attempts != 1 {
		t.Errorf("without retry_on: %+v", p)
	}
	if p := one(t, "hedge_policy: {hedge_on_per_try_timeout: true}\ncluster: c", Options{}); p.Hedge.Attempts != 0 {
		t.Errorf("hedges without a per_try_timeout: %+v", p)
	}
	if p := one(t, "retry_on: reset\nretry_back_off: {base_interval: 0.0000001s, max_interval: 0.0000002s}", Options{}); p.Backoff.Base != time.Millisecond || p.Backoff.Cap != time.Millisecond {
		t.Errorf("less than a millisecond: %+v", p.Backoff)
	}
	if p := one(t, "retry_on: reset\nnum_retries: 4294967295", Options{}); p.Attempts != 1000 {
		t.Errorf("as many as there are: %+v", p)
	}
	if p := one(t, "timeout: 0s\nretry_policy: {retry_on: 5xx, per_try_timeout: 315576000000s}\ncluster: c", Options{}); p.Deadline != lull.NoTimeout || p.AttemptTimeout <= 0 {
		t.Errorf("for ever: %+v", p)
	}
}

// Policy files are put together; each has its own places, defaults and facts.
func TestSeveralPolicyFiles(t *testing.T) {
	a := File{"a.yaml", []byte("defaults: {deadline: 2s}\ndependencies:\n  one: {attempts: 2}\n")}
	b := File{"b.yaml", []byte("dependencies:\n  two:\n    preset: external-api\n    operations: {pay: {idempotent: false}}\n    p99: 20ms\nservices: {shop: {calls: [two]}}\n")}
	out := must(Convert([]File{a, b}, Lull, Options{}))
	all := policies(t, out.Data)
	want := preset.ExternalAPI()
	if len(all) != 2 || all[0].Policy.Deadline != 2*time.Second || all[1].Policy != want || all[1].P99 != 20*time.Millisecond || len(all[1].Operations) != 1 || !strings.Contains(string(out.Data), "services:") {
		t.Errorf("%+v\n%s", all, out.Data)
	}
	there := must(Convert([]File{a, b}, Envoy, Options{}))
	for path, place := range map[string]string{"dependencies.one.budget": "a.yaml:3:3", "dependencies.two.p99": "b.yaml:5:10", "dependencies.two.budget": "b.yaml:3:13", "services.shop": "b.yaml:6:12"} {
		if !slices.ContainsFunc(there.Report, func(e Entry) bool {
			return e.Path == path && fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column) == place
		}) {
			t.Errorf("%s is not reported at %s:\n%s", path, place, there.Report)
		}
	}
	if strings.Count(string(there.Data), "retriable_request_headers") != 2 {
		t.Errorf("what is safe to repeat is not written for both:\n%s", there.Data)
	}
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

// A file of many routes is no reason to wait.
func BenchmarkConvert(b *testing.B) {
	var text strings.Builder
	text.WriteString("virtual_hosts:\n  - name: v\n    domains: ['*']\n    routes:\n")
	for i := range 100 {
		fmt.Fprintf(&text, "      - {match: {prefix: /%d}, route: {cluster: c%d, timeout: 2s, retry_policy: {retry_on: reset, num_retries: 2}}}\n", i, i)
	}
	f := []File{{"x.yaml", []byte(text.String())}}
	for b.Loop() {
		if _, err := Convert(f, Istio, Options{}); err != nil {
			b.Fatal(err)
		}
	}
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
	if p := policies(t, convert(t, File{"x.json", []byte(with)}, Lull, Options{GAPIC: true}).Data)[0].Policy; p.Attempts != 3 {
		t.Errorf("%+v", p)
	}
}

// The policy that most dependencies have is written once, as that of the defaults.
func TestIdenticalMethodsAreWrittenOnce(t *testing.T) {
	out := convert(t, File{"x.json", []byte(gapicConfig(149))}, Lull, Options{GAPIC: true})
	if n := strings.Count(string(out.Data), "attempts: 1000"); n != 1 {
		t.Errorf("the attempts are written %d times:\n%s", n, out.Data)
	}
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

// What is read of Istio and written for it is read as the same: hosts, subsets and the routes to them
// stay what they are.
func TestIstioKeepsItsHosts(t *testing.T) {
	vs := func(routes string) string {
		return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {hosts: [a], http: [" + routes + "]}\n---\n"
	}
	dr := func(spec string) string {
		return "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: d}\nspec: {" + spec + "}\n---\n"
	}
	const (
		to     = "{route: [{destination: {host: reviews, subset: v1}}], timeout: 3s, retries: {attempts: 2, perTryTimeout: 1s}}"
		second = ", {name: second, route: [{destination: {host: reviews, subset: v2}}], timeout: 5s}"
		plain  = ", {name: all, route: [{destination: {host: reviews}}], timeout: 7s}"
		other  = ", {name: other, route: [{destination: {host: reviews}}], timeout: 9s}"
		eject  = "trafficPolicy: {outlierDetection: {consecutive5xxErrors: 7}}"
		pool   = "trafficPolicy: {connectionPool: {http: {http2MaxRequests: 5}}}"
		v1     = "subsets: [{name: v1, labels: {version: v1}"
	)
	for text, want := range map[string]string{
		vs(to):                                 "reviews/v1",
		vs(to) + dr("host: reviews, "+v1+"}]"): "reviews/v1",
		vs(to+second) + dr("host: reviews, "+v1+", "+eject+"}]"):                                                              "reviews/v1 reviews/v2",
		vs(to+second+plain) + dr("host: reviews, "+eject+", "+v1+", "+pool+"}]"):                                              "reviews reviews/v1 reviews/v2",
		vs(to+plain+other) + dr("host: reviews, "+pool):                                                                       "reviews reviews/other reviews/v1",
		vs(strings.ReplaceAll(to, "reviews", "reviews.shop.svc.cluster.local")):                                               "reviews.shop.svc.cluster.local/v1",
		vs("{route: [{destination: {host: A_b}}]}"):                                                                           "A_b",
		dr("host: '*.example.com', " + eject):                                                                                 "*.example.com",
		dr("host: reviews, "+eject+", "+v1+", trafficPolicy: {outlierDetection: {consecutive5xxErrors: 0}}}]") + vs(to+plain): "reviews reviews/v1",
	} {
		first, _ := readSet(t, strings.TrimSuffix(text, "---\n"))
		got := names(first.File.Dependencies)
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%q, want %q of\n%s", got, want, text)
		}
		data, report, err := Write(first, Istio, Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, _ := readSet(t, string(data))
		if strings.ContainsAny(want, "*_") { // which no route can lead to
			if strings.Contains(string(data), "host: "+want) || !strings.Contains(report.String(), "names of DNS") {
				t.Errorf("%s is written\n%s\n%s", want, data, report)
			}
			continue
		}
		for _, d := range first.File.Dependencies {
			d2, ok := again.File.Dependency(d.Name)
			if !ok || d2.Policy != d.Policy {
				t.Errorf("%s: %+v, then %v %+v\n%s\n%s", d.Name, d.Policy, ok, d2.Policy, text, data)
			}
			if f, g := first.known[d.Name].facts, again.known[d.Name].facts; f.host != g.host || f.subset != g.subset {
				t.Errorf("%s: %s %s, then %s %s", d.Name, f.host, f.subset, g.host, g.subset)
			}
		}
		if len(again.File.Dependencies) != len(first.File.Dependencies) {
			t.Errorf("%q, then %q of\n%s", got, names(again.File.Dependencies), data)
		}
		if strings.Count(string(data), "\nkind: VirtualService") != strings.Count(string(data), "hosts: [") || strings.Count(string(data), "kind: DestinationRule") > 1 {
			t.Errorf("a host is written more than once:\n%s", data)
		}
	}
}

// A name of a dependency of lull's own is never taken for a subset.
func TestOnlyIstioHasSubsets(t *testing.T) {
	data := must(config.FormatPolicyFile(&config.PolicyFile{Dependencies: []config.Dependency{{Name: "reviews/v1"}}}))
	if out := convert(t, File{"p.yaml", data}, Istio, Options{}); !strings.Contains(string(out.Data), "host: reviews-v1") {
		t.Errorf("%s", out.Data)
	}
}
