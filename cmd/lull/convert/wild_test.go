package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// What is found in the field: dumps, lists, delegates, names of namespaces, patches.

// find is the dependency of that name in what Convert has written.
func find(t *testing.T, out Output, name string) lull.Policy {
	t.Helper()
	all := policies(t, out.Data)
	d, ok := (&config.PolicyFile{Dependencies: all}).Dependency(name)
	if !ok {
		t.Fatalf("no %q in %q", name, names(all))
	}
	return d.Policy
}

// entry is that of a report with that path, kind, and part of its reason.
func entry(r Report, kind Kind, path, why string) *Entry {
	for i, e := range r {
		if e.Kind == kind && e.Path == path && strings.Contains(e.Why, why) {
			return &r[i]
		}
	}
	return nil
}

// noted fails if a report has no such entry.
func noted(t *testing.T, r Report, kind Kind, path, why string) {
	t.Helper()
	if entry(r, kind, path, why) == nil {
		t.Errorf("%s is not %v, %q:\n%s", path, kind, why, r)
	}
}

// refused fails if a file is converted, or with another error than one that has these words.
func refused(t *testing.T, f File, o Options, words string) {
	t.Helper()
	if _, err := Convert([]File{f}, Lull, o); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v, want %q", f.Data, err, words)
	}
}

const dump = `{"configs": [
 {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {
   "static_resources": {"clusters": [{"name": "xds", "connect_timeout": "1s"}]},
   "dynamic_resources": {"ads_config": {"api_type": "GRPC", "grpc_services": [{"timeout": "1s"}]}, "cds_config": {"initial_fetch_timeout": "3s"}}}},
 {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
  "static_clusters": [{"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "xds", "connect_timeout": "1s"}}],
  "dynamic_active_clusters": [{"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "api",
    "typed_extension_protocol_options": {"x.HttpProtocolOptions": {"common_http_protocol_options": {"idle_timeout": "5s"}}},
    "health_checks": [{"timeout": "1s"}]}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [{"active_state": {"listener": {"name": "l", "listener_filters_timeout": "0s",
   "filter_chains": [{"filters": [{"typed_config": {"stream_idle_timeout": "7s", "http_filters": [{"typed_config": {"@type": "x.v3.AdmissionControl"}}],
     "route_config": {"name": "r", "virtual_hosts": [{"name": "v", "domains": ["*"], "retry_policy_typed_config": {"a": 1}, "per_request_buffer_limit_bytes": 9,
       "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "api", "priority": "HIGH", "max_stream_duration": {"max_stream_duration": "0s"}, "retry_policy": {"retry_on": "5xx"}},
         "request_headers_to_add": [{"header": {"key": "x-envoy-max-retries", "value": "9"}}],
         "typed_per_filter_config": {"f": {"@type": "x.v3.HTTPFault"}}}]}]}}}]}]}}}]}
]}`

// A dump of a configuration has clusters twice, and much that is neither route nor cluster.
func TestDumps(t *testing.T) {
	out := convert(t, File{"dump.json", []byte(dump)}, Lull, Options{})
	check.Slices(t, names(policies(t, out.Data)), []string{"api", "xds"}, "names(policies(t, out.Data))")
	const (
		listener = "configs[2].dynamic_listeners[0].active_state.listener"
		manager  = listener + ".filter_chains[0].filters[0].typed_config"
		host     = manager + ".route_config.virtual_hosts[0]"
	)
	for path, value := range map[string]string{
		manager + ".stream_idle_timeout":                         `"7s"`,
		manager + ".http_filters[0].typed_config.@type":          `"x.v3.AdmissionControl"`,
		host + ".retry_policy_typed_config":                      "",
		host + ".per_request_buffer_limit_bytes":                 "9",
		host + ".routes[0].route.priority":                       `"HIGH"`,
		host + ".routes[0].request_headers_to_add[0].header.key": `"x-envoy-max-retries"`,
		host + ".routes[0].typed_per_filter_config.f.@type":      `"x.v3.HTTPFault"`,
		"configs[1].dynamic_active_clusters[0].cluster.typed_extension_protocol_options[\"x.HttpProtocolOptions\"].common_http_protocol_options.idle_timeout": `"5s"`,
	} {
		if e := entry(out.Report, Lost, path, ""); e == nil || e.Value != value || e.Line < 2 || e.Column < 2 {
			t.Errorf("%s is not lost: %+v", path, e)
		}
	}
	for _, e := range out.Report {
		for _, part := range []string{"initial_fetch_timeout", "grpc_services", "health_checks[0].timeout", "listener_filters_timeout", "max_stream_duration"} {
			if e.Kind == Lost && strings.Contains(e.Path, part) {
				t.Errorf("%v", e)
			}
		}
	}
	if t.Failed() {
		t.Log(out.Report)
	}
	twice := `{"clusters": [{"name": "a"}, {"name": "a", "connect_timeout": "1s"}]}`
	refused(t, File{"c.json", []byte(twice)}, Options{}, `clusters[1].name is "a" once more`)
}

// A route, a virtual host or a list of them is read wherever it stands.
func TestPartsOfEnvoy(t *testing.T) {
	const (
		route = `{"match": {"prefix": "/"}, "route": {"cluster": "a", "timeout": "7s"}}`
		host  = `{"name": "v", "domains": ["*"], "routes": [` + route + `]}`
	)
	for _, text := range []string{
		route,
		host,
		`{"resources": [{"@type": "type.googleapis.com/envoy.config.route.v3.VirtualHost", ` + host[1:] + `]}`,
		`[{"name": "80", "virtualHosts": [` + host + `]}, {"name": "81", "virtualHosts": []}]`,
		`{cluster: a, timeout: 7s, retry_policy: {}}`,
	} {
		check.Equal(t, find(t, convert(t, File{"x.json", []byte(text)}, Lull, Options{}), "a").Deadline, 7*time.Second, "%s", text)
	}
}

// The defaults of Envoy count, and are reported.
func TestWhatEnvoyDoesByItself(t *testing.T) {
	const text = `{"resources": [
	{"@type": "x.RouteConfiguration", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "a", "retry_policy": {"retry_on": "5xx"}}}]}]},
	{"@type": "x.Cluster", "name": "a", "outlier_detection": {"enforcing_success_rate": 0}},
	{"@type": "x.Cluster", "name": "b", "circuit_breakers": {"thresholds": [{"max_requests": 7, "retry_budget": {}}]}}]}`
	out := convert(t, File{"x.json", []byte(text)}, Lull, Options{})
	for _, want := range []struct{ path, why string }{
		{"resources[0].virtual_hosts[0].routes[0].route", "15s"},
		{"resources[0].virtual_hosts[0].routes[0].route.retry_policy", "without num_retries"},
		{"resources[0].virtual_hosts[0].routes[0].route.retry_policy", "25ms"},
		{"resources[1]", "1024 requests"},
		{"resources[1]", "three retries"},
		{"resources[1].outlier_detection", "base_ejection_time 30s, interval 10s, max_ejection_time 300s, consecutive_5xx 5"},
		{"resources[2].circuit_breakers.thresholds[0].retry_budget", "has 3"},
		{"resources[2].circuit_breakers.thresholds[0].retry_budget", "20 %"},
	} {
		noted(t, out.Report, Assumed, want.path, want.why)
	}
	if p := find(t, out, "a"); p.Deadline != 15*time.Second || p.Attempts != 2 || p.Limit.InFlight != 1024 || p.Budget.Stock != 3 || p.Breaker.Consecutive != 5 {
		t.Errorf("%+v", p)
	}
	for _, e := range convert(t, File{"x.json", []byte(text)}, Lull, Options{Base: "lull"}).Report {
		if e.Kind == Assumed && (strings.Contains(e.Why, "15s") || strings.Contains(e.Why, "1024") || strings.Contains(e.Why, "25ms")) {
			t.Errorf("with a base: %v", e)
		}
	}
}

// What is there to be referred to is not lost.
func TestAnchorsOfEnvoy(t *testing.T) {
	for _, key := range []string{"x-common", "!ignore common"} {
		text := key + ": &common {retry_on: 5xx, num_retries: 7}\nvirtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: a, retry_policy: {<<: *common}}}]}]"
		out := convert(t, File{"x.yaml", []byte(text)}, Lull, Options{})
		if p := find(t, out, "a"); p.Attempts != 8 || slices.ContainsFunc(out.Report, func(e Entry) bool { return e.Kind == Lost }) {
			t.Errorf("%s: %+v\n%s", key, p, out.Report)
		}
	}
}

// What a gateway does by default is not known; the report has what the policy does.
func TestWhatGatewaysDoByThemselves(t *testing.T) {
	const text = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {rules: [{retry: {}, backendRefs: [{name: a}]}, {backendRefs: [{name: b}]}]}\n" +
		"---\napiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy\nspec: {targetRefs: [{name: a}], retryConstraint: {}}"
	out := convert(t, File{"x.yaml", []byte(text)}, Lull, Options{})
	for _, want := range []struct{ path, why string }{
		{"spec.rules[0]", "without timeouts.request"}, {"spec.rules[0].retry", "without codes"}, {"spec.rules[0].retry", "without attempts"},
		{"spec.rules[0].retry", "without backoff"}, {"spec.rules[1]", "without retry"}, {"spec.retryConstraint", "20 %"}, {"spec.retryConstraint", "minRetryRate.count it is 10"}, {"spec.retryConstraint", "each second"},
	} {
		noted(t, out.Report, Assumed, want.path, want.why)
	}
	// Services of one name in two namespaces are two.
	const two = "apiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy\nmetadata: {namespace: %s}\nspec: {targetRefs: [{name: a}], retryConstraint: {budget: {percent: %d}}}\n---\n"
	const routes = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: y}\nspec: {rules: [{retry: {}, backendRefs: [{name: a}]}, {retry: {}, backendRefs: [{name: a, namespace: x}]}]}\n"
	out = convert(t, File{"x.yaml", []byte(fmt.Sprintf(two, "x", 7) + fmt.Sprintf(two, "y", 9) + routes)}, Lull, Options{})
	if a, b := find(t, out, "a"), find(t, out, "a/rules[1]"); a.Budget.Ratio != 0.09 || b.Budget.Ratio != 0.07 {
		t.Errorf("%+v and %+v", a.Budget, b.Budget)
	}
	refused(t, File{"x.yaml", []byte("apiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy\nspec: {targetRefs: [{name: a}], retryConstraint: {minRetryRate: {interval: 2h}}}")}, Options{}, `minRetryRate.interval is "2h": want a duration from 1s to 1h`)
}

// Outlier detection that ejects sometimes, or nothing that a breaker knows.
func TestOutlierDetectionThatIsNoBreaker(t *testing.T) {
	detect := func(fields string) (lull.Policy, Report) {
		out := convert(t, File{"x.yaml", []byte("name: a\noutlier_detection: {enforcing_success_rate: 0, max_ejection_percent: 100, " + fields + "}")}, Lull, Options{})
		return find(t, out, "a"), out.Report
	}
	for _, c := range []struct {
		fields string
		kind   Kind
		lost   string
		off    bool
	}{
		{"enforcing_consecutive_5xx: 50", Changed, "enforcing_consecutive_5xx", false},
		{"enforcing_failure_percentage: 1, failure_percentage_minimum_hosts: 1", Changed, "enforcing_failure_percentage", false},
		{"enforcing_consecutive_5xx: 0, consecutive_5xx: 7", Lost, "consecutive_5xx", true},
		{"consecutive_gateway_failure: 7", Lost, "consecutive_gateway_failure", false},
		{"enforcing_consecutive_5xx: 0, base_ejection_time: 7s", Lost, "base_ejection_time", true},
		{"interval: 7s", Lost, "interval", false},
	} {
		p, report := detect(c.fields)
		if e := entry(report, c.kind, "outlier_detection."+c.lost, ""); e == nil || e.Value == "" || p.Breaker.Off != c.off {
			t.Errorf("%s: breaker %+v, reported\n%s", c.fields, p.Breaker, report)
		}
	}
	refused(t, File{"x.yaml", []byte("name: a\noutlier_detection: {base_ejection_time: 60s, max_ejection_time: 30s}")}, Options{}, "outlier_detection.max_ejection_time is 30s: want at least base_ejection_time, 60s")
}

// Envoy cuts durations off, to whole milliseconds; less than one is none.
func TestMillisecondsOfEnvoy(t *testing.T) {
	for text, want := range map[string][2]time.Duration{
		"timeout: 1.0009s\nretry_policy: {retry_on: 5xx, per_try_timeout: 0.0019s}": {time.Second, time.Millisecond},
		"timeout: 0.0009s\nretry_policy: {retry_on: 5xx, per_try_timeout: 0.0009s}": {lull.NoTimeout, lull.NoTimeout},
		"timeout: 0.002s\nretry_policy: {retry_on: 5xx, per_try_timeout: 0.0029s}":  {2 * time.Millisecond, lull.NoTimeout},
		"timeout: 0.003s\nretry_policy: {retry_on: 5xx, per_try_timeout: 0.0029s}":  {3 * time.Millisecond, 2 * time.Millisecond},
	} {
		out := convert(t, File{"a.yaml", []byte(text + "\ncluster: a")}, Lull, Options{})
		if p := find(t, out, "a"); p.Deadline != want[0] || p.AttemptTimeout != want[1] || entry(out.Report, Changed, "retry_policy.per_try_timeout", "whole milliseconds") == nil {
			t.Errorf("%s: %v and %v, want %v\n%s", text, p.Deadline, p.AttemptTimeout, want, out.Report)
		}
	}
}

// The timeout of an attempt may be equal to that of the call after it is rounded up for Istio.
func TestMillisecondsOfIstio(t *testing.T) {
	const policies = "dependencies: {a: {attempt_timeout: %s, deadline: 2ms}}"
	for timeout, said := range map[string]bool{"1.5ms": true, "1ms": false} {
		out := convert(t, File{"p.yaml", []byte(fmt.Sprintf(policies, timeout))}, Istio, Options{})
		if (entry(out.Report, Changed, "dependencies.a.attempt_timeout", "no effect in Istio") != nil) != said {
			t.Errorf("%s: said %v\n%s", timeout, !said, out.Report)
		}
	}
}

// A hedge is sent after the route's per_try_timeout, not after the base's.
func TestHedgesAreTheRoutes(t *testing.T) {
	const text = "cluster: a\nhedge_policy: {hedge_on_per_try_timeout: true}\nretry_policy: {retry_on: 5xx%s}"
	if p := find(t, convert(t, File{"a.yaml", []byte(fmt.Sprintf(text, ""))}, Lull, Options{Base: "external-api"}), "a"); p.Hedge.Attempts != 0 || p.Attempts != 2 {
		t.Errorf("without: %+v", p)
	}
	if p := find(t, convert(t, File{"a.yaml", []byte(fmt.Sprintf(text, ", per_try_timeout: 1s"))}, Lull, Options{Base: "external-api"}), "a"); p.Hedge.Delay != time.Second {
		t.Errorf("with: %+v", p)
	}
}

// Circuit breakers count wherever the number of retries comes from.
func TestClustersThatLetNoRetryPass(t *testing.T) {
	const text = `{"resources": [
	{"@type": "x.RouteConfiguration", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "a"}}]}]},
	{"@type": "x.Cluster", "name": "a", "circuit_breakers": {"thresholds": [{"max_retries": 0}]}}]}`
	for _, base := range []string{"lull", "external-api"} {
		out := convert(t, File{"x.json", []byte(text)}, Lull, Options{Base: base})
		if p := find(t, out, "a"); p.Attempts != 1 || entry(out.Report, Lost, "resources[0].virtual_hosts[0].routes[0].route", "let no retry pass") == nil {
			t.Errorf("%s: %+v\n%s", base, p, out.Report)
		}
	}
	const rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: a, trafficPolicy: {connectionPool: {http: {maxRetries: 7}}}}"
	check.Equal(t, one(t, rule, Options{Base: "lull"}).Budget.Stock, 7, "maxRetries with a base")
}

// Virtual hosts have domains that differ by more than case.
func TestDomainsOfVirtualHosts(t *testing.T) {
	out := convert(t, File{"p.yaml", []byte("dependencies: {api: {attempts: 1}, API: {attempts: 1}, Api-2: {attempts: 1}}")}, Envoy, Options{})
	docs := must.Have(parse("", out.Data))
	seen := map[string]bool{}
	for _, host := range docs[0].Get("resources").Items[0].Get("virtual_hosts").Items {
		domain := strings.ToLower(host.Get("domains").Items[0].Text)
		if seen[domain] {
			t.Errorf("%s twice:\n%s", domain, out.Data)
		}
		seen[domain] = true
	}
	noted(t, out.Report, Changed, "dependencies.API", "case")
}

const meta = "apiVersion: networking.istio.io/v1\nmetadata: {name: %s, namespace: %s}\nkind: %s\nspec: %s\n---\n"

// Short names are those of a namespace; rules are for full names, and for the rest of them.
func TestHostsOfIstio(t *testing.T) {
	rule := func(namespace, host string, limit int) string {
		return fmt.Sprintf(meta, "r", namespace, "DestinationRule", fmt.Sprintf("{host: %q, trafficPolicy: {connectionPool: {http: {http2MaxRequests: %d}}}}", host, limit))
	}
	service := func(namespace, host string) string {
		return fmt.Sprintf(meta, "s", namespace, "VirtualService", fmt.Sprintf("{hosts: [x], http: [{route: [{destination: {host: %q}}]}]}", host))
	}
	for _, c := range []struct {
		text string
		want int
	}{
		{service("shop", "a") + rule("shop", "a", 7), 7},
		{service("shop", "a") + rule("other", "a", 9) + rule("shop", "a", 7), 7},
		{service("shop", "a") + rule("x", "a.shop.svc.cluster.local", 7), 7},
		{service("shop", "a.shop.svc.cluster.local") + rule("shop", "a", 7), 7},
		{service("shop", "a") + rule("x", "*.shop.svc.cluster.local", 7) + rule("x", "*.local", 8) + rule("x", "*", 9), 7},
		{service("shop", "a") + rule("x", "*", 9) + rule("x", "*.local", 8) + rule("x", "*.shop.svc.cluster.local", 7), 7},
		{service("shop", "a") + rule("x", "*.other.svc.cluster.local", 9) + rule("x", "*", 7), 7},
		{service("shop", "a") + rule("shop", "a", 7) + rule("shop", "*", 9), 7},
		{service("", "a") + rule("shop", "a", 7), 7},
		{service("shop", "a") + rule("", "a", 7), 7},
		{service("shop", "a") + rule("other", "a", 9), 0},
		{service("", "a.com") + rule("", "b.com", 9), 0},
	} {
		out := convert(t, File{"x.yaml", []byte(c.text)}, Lull, Options{})
		name := "a"
		for _, d := range policies(t, out.Data) {
			if strings.HasPrefix(d.Name, "a.") {
				name = d.Name
			}
		}
		if p := policies(t, out.Data)[0]; !strings.HasPrefix(p.Name, "a") || p.Policy.Limit.InFlight != c.want {
			t.Errorf("%s has a limit of %d, want %d:\n%s", name, p.Policy.Limit.InFlight, c.want, c.text)
		}
	}
}

// Several rules for a host are put together as Istio does it.
func TestSeveralRulesForAHost(t *testing.T) {
	text := fmt.Sprintf(meta, "one", "shop", "DestinationRule", "{host: a, subsets: [{name: x, trafficPolicy: {connectionPool: {http: {http2MaxRequests: 7}}}}]}") +
		fmt.Sprintf(meta, "two", "shop", "DestinationRule", "{host: a, trafficPolicy: {connectionPool: {http: {http2MaxRequests: 8}}, retryBudget: {percent: 5}}, subsets: [{name: x, trafficPolicy: {}}, {name: y, trafficPolicy: {connectionPool: {http: {maxRetries: 4}}}}]}") +
		fmt.Sprintf(meta, "three", "shop", "DestinationRule", "{host: a, trafficPolicy: {connectionPool: {http: {http2MaxRequests: 9}}}}")
	out := convert(t, File{"x.yaml", []byte(text)}, Lull, Options{})
	check.Slices(t, names(policies(t, out.Data)), []string{"a", "a/x", "a/y"}, "names(policies(t, out.Data))")
	for name, limit := range map[string]int{"a": 8, "a/x": 7, "a/y": 0} {
		if p := find(t, out, name); p.Limit.InFlight != limit || p.Budget.Ratio != 0.05 || p.Attempts != 3 || p.HintLimit != engine.DefaultHintLimit {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for _, path := range []string{"spec.trafficPolicy", "spec.subsets[0]", "spec.subsets[1].trafficPolicy.connectionPool.http.maxRetries"} {
		noted(t, out.Report, Lost, path, "takes")
	}
}

// A rule for a host without a route counts like a route without settings, if it sets anything of
// how calls are made, and connections are not all that leads there.
func TestRulesWithoutRoutes(t *testing.T) {
	const (
		head  = "---\napiVersion: networking.istio.io/v1\nkind: "
		ruled = head + "DestinationRule\nmetadata: {namespace: shop}\nspec: {host: a, "
		route = head + "VirtualService\nmetadata: {namespace: shop}\nspec: {http: [{route: [{destination: {host: a}}]}]}\n"
		tcp   = head + "VirtualService\nmetadata: {namespace: shop}\nspec: {tcp: [{route: [{destination: {host: a.shop.svc.cluster.local}}]}]}\n"
		sni   = head + "VirtualService\nmetadata: {namespace: shop}\nspec: {tls: [{match: [{sniHosts: [a]}], route: [{destination: {host: a, subset: v1}}]}]}\n"
	)
	for text, called := range map[string]bool{
		"trafficPolicy: {}}\n":                                                                         false,
		"trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}\n":                                                false,
		"trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}\n":                                      false,
		"trafficPolicy: {connectionPool: {tcp: {maxConnections: 50}}}}\n":                              false,
		"trafficPolicy: {portLevelSettings: [{port: {number: 1}}]}}\n":                                 false,
		"subsets: [{name: v1, labels: {version: v1}}]}\n":                                              false,
		"subsets: [{name: v1, trafficPolicy: {tls: {mode: DISABLE}}}]}\n":                              false,
		"trafficPolicy: {outlierDetection: {}}}\n":                                                     true,
		"trafficPolicy: {connectionPool: {http: {maxRetries: 7}}}}\n":                                  true,
		"trafficPolicy: {connectionPool: {http: {http2MaxRequests: 7}}}}\n":                            true,
		"trafficPolicy: {retryBudget: {percent: 10}}}\n":                                               true,
		"subsets: [{name: v1, trafficPolicy: {outlierDetection: {}}}]}\n":                              true,
		"trafficPolicy: {outlierDetection: {}}}\n" + tcp:                                               false,
		"trafficPolicy: {connectionPool: {tcp: {maxConnections: 50}, http: {maxRetries: 7}}}}\n" + tcp: false,
		"subsets: [{name: v1, trafficPolicy: {outlierDetection: {}}}]}\n" + sni:                        false,
		"trafficPolicy: {outlierDetection: {}}}\n" + tcp + route:                                       true,
		"trafficPolicy: {tls: {mode: DISABLE}}}\n" + route:                                             true,
	} {
		for _, to := range []Format{Lull, Istio} {
			out, err := Convert([]File{{Name: "x.yaml", Data: []byte(ruled + text)}}, to, Options{})
			if called && err != nil || !called && !errors.Is(err, ErrNothing) {
				t.Errorf("%s: %v", text, err)
			}
			for _, field := range []string{"outlierDetection", "connectionPool"} {
				if !called && strings.Contains(text, field) && !strings.Contains(out.Report.String(), "lost: spec.") {
					t.Errorf("%s: %s is not told: %s", text, field, out.Report)
				}
			}
		}
	}
	limit := "trafficPolicy: {connectionPool: {http: {http2MaxRequests: 7}}}}\n"
	check.Equal(t, one(t, ruled+limit, Options{}), one(t, ruled+limit+route, Options{}), "with a route")
	out := convert(t, File{"x.yaml", []byte(ruled + limit)}, Lull, Options{})
	noted(t, out.Report, Assumed, "spec", "without retries Istio makes two")
}

// The settings of a route that delegates are the defaults of the routes to which it delegates.
func TestDelegates(t *testing.T) {
	text := fmt.Sprintf(meta, "root", "shop", "VirtualService", `{hosts: [x], http: [
		{delegate: {name: api, namespace: api}, timeout: 3s, retries: {attempts: 4, perTryTimeout: 5s, retryOn: 5xx}},
		{delegate: {name: gone}, timeout: 1s},
		{delegate: {name: api, namespace: api}, timeout: 4s},
		{redirect: {uri: /new}, retries: {attempts: 2}}]}`) +
		fmt.Sprintf(meta, "api", "api", "VirtualService", `{http: [
		{route: [{destination: {host: a}}]},
		{timeout: 20s, route: [{destination: {host: b}}]},
		{retries: {attempts: 0}, route: [{destination: {host: c}}]},
		{delegate: {name: root, namespace: shop}, timeout: 1s}]}`)
	out := convert(t, File{"x.yaml", []byte(text)}, Lull, Options{})
	check.Slices(t, names(policies(t, out.Data)), []string{"a", "b", "c", "a/http[0]", "b/http[1]", "c/http[2]"}, "names(policies(t, out.Data))")
	for name, want := range map[string]struct {
		attempts      int
		deadline, try time.Duration
	}{
		"a": {5, 3 * time.Second, lull.NoTimeout}, "b": {5, 20 * time.Second, 5 * time.Second}, "c": {1, 3 * time.Second, lull.NoTimeout},
		"a/http[0]": {3, 4 * time.Second, lull.NoTimeout}, "b/http[1]": {3, 20 * time.Second, lull.NoTimeout}, "c/http[2]": {1, 4 * time.Second, lull.NoTimeout},
	} {
		if p := find(t, out, name); p.Attempts != want.attempts || p.Deadline != want.deadline || p.AttemptTimeout != want.try {
			t.Errorf("%s: %+v, want %+v", name, p, want)
		}
	}
	for path, why := range map[string]string{
		"spec.http[1].delegate": `"shop/gone" is not in these files`, "spec.http[1].timeout": `"shop/gone" is not in these files`,
		"spec.http[3].retries": "leads to no destination", "spec.http[3].delegate": "one delegate", "spec.http[3].timeout": "one delegate",
	} {
		noted(t, out.Report, Lost, path, why)
	}
	noted(t, out.Report, Changed, "spec.http[0].retries.perTryTimeout", "no effect")
}

// Objects that are not read are reported if they are about how calls are made.
func TestWhatIsNotRead(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nspec: {configPatches: [{match: {a: 1}, patch: {value: {route: {retry_policy: {num_retries: 9}}}}}]}":   "spec.configPatches[0].patch.value.route.retry_policy",
		"apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec: {meshConfig: {defaultHttpRetryPolicy: {attempts: 0}}}":                                            "spec.meshConfig.defaultHttpRetryPolicy",
		"apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: ClientTrafficPolicy\nspec: {timeout: {http: {requestReceivedTimeout: 1s}}}":                                       "spec.timeout",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nspec: {rules: [{timeouts: {request: 1s}}]}":                                                              "spec.rules[0].timeouts",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {retry.linkerd.io/limit: 2}}":                                                                       "metadata.annotations[\"retry.linkerd.io/limit\"]",
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {annotations: {nginx.ingress.kubernetes.io/proxy-read-timeout: 5}}":                                      "metadata.annotations[\"nginx.ingress.kubernetes.io/proxy-read-timeout\"]",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {template: {livenessProbe: {timeoutSeconds: 1}}, retries: 4}":                                                          "",
		"apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nspec: {hosts: [a]}":                                                                                         "",
		"apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{headers: {request: {set: {x-envoy-upstream-rq-timeout-ms: '5'}}}}]}":                       "spec.http[0].headers.request.set.x-envoy-upstream-rq-timeout-ms",
		"apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{match: [{headers: {x-retry: {exact: a}}}]}]}":                                              "",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {rules: [{filters: [{set: [{name: x-envoy-max-retries, value: a}, {name: x-retry, value: b}]}]}]}": "spec.rules[0].filters[0].set[0].name",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {annotations: {timeout.linkerd.io/request: 1s}}":                                               "metadata.annotations[\"timeout.linkerd.io/request\"]",
	} {
		out, err := Convert([]File{{"x.yaml", []byte(text)}, {"p.yaml", []byte("dependencies: {a: {attempts: 1}}")}}, Lull, Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var lost []string
		for _, e := range out.Report {
			if e.Kind == Lost {
				lost = append(lost, e.Path)
			}
		}
		check.Equal(t, strings.Join(lost, " "), want, "%s: lost", text)
	}
}

// An unknown version is read, and reported.
func TestUnknownVersions(t *testing.T) {
	for version, said := range map[string]bool{
		"networking.istio.io/v1alpha3": false, "networking.istio.io/v1beta1": false, "networking.istio.io/v1": false, "networking.istio.io/v7": true,
		"gateway.networking.k8s.io/v1": false, "gateway.networking.k8s.io/v9": true, "gateway.networking.x-k8s.io/v1alpha1": false, "gateway.networking.x-k8s.io/v1": true,
	} {
		out := must.Have(Convert([]File{{"x.yaml", []byte("apiVersion: " + version + "\nkind: VirtualService\nspec: {}")}, {"p.yaml", []byte("dependencies: {a: {attempts: 1}}")}}, Lull, Options{}))
		if e := entry(out.Report, Assumed, "apiVersion", "is not known here"); (e != nil) != said || e != nil && e.Value != fmt.Sprintf("%q", version) {
			t.Errorf("%s: %v", version, out.Report)
		}
	}
}

// Of the choices that gRPC finds in DNS, the one for all clients in Go is read.
func TestChoicesOfServiceConfigs(t *testing.T) {
	config := func(timeout string) string {
		return `"serviceConfig": {"methodConfig": [{"name": [{}], "timeout": "` + timeout + `"}]}`
	}
	for _, c := range []struct {
		choices string
		want    time.Duration
		changed bool
		lost    int
	}{
		{`{` + config("1s") + `}`, time.Second, false, 0},
		{`{"clientLanguage": ["java"], ` + config("1s") + `}, {"clientLanguage": ["cpp", "GO"], ` + config("2s") + `}, {` + config("3s") + `}`, 2 * time.Second, false, 2},
		{`{"percentage": 10, ` + config("1s") + `}, {` + config("2s") + `}`, 2 * time.Second, false, 1},
		{`{"percentage": 10, ` + config("1s") + `}, {"clientHostname": ["a"], ` + config("2s") + `}`, time.Second, true, 1},
		{`{"percentage": 0, ` + config("1s") + `}, {"clientHostname": ["a"], ` + config("2s") + `}`, 2 * time.Second, true, 1},
		{`{"percentage": 0, ` + config("1s") + `}, {"percentage": 100, ` + config("2s") + `}`, 2 * time.Second, false, 1},
	} {
		for _, text := range []string{"[" + c.choices + "]", "\ufeff grpc_config=[" + c.choices + "]\n"} {
			out := convert(t, File{"dns.txt", []byte(text)}, Lull, Options{})
			lost, changed := 0, false
			for _, e := range out.Report {
				if strings.HasSuffix(e.Path, "].serviceConfig") {
					lost, changed = lost+len(Report{e}.Losses()), changed || e.Kind == Changed
				}
			}
			if changed {
				lost--
			}
			if p := find(t, out, "/"); p.Deadline != c.want || changed != c.changed || lost != c.lost {
				t.Errorf("%s: %v, lost %d\n%s", text, p.Deadline, lost, out.Report)
			}
		}
	}
	for text, want := range map[string]string{
		`[{"clientLanguage": ["java"], ` + config("1s") + `}]`:                 "nothing that says how calls are made",
		`[{"percentage": 200, ` + config("1s") + `}]`:                          "x:1:17: [0].percentage is 200: want a whole number from 0 to 100",
		"grpc_config=[{" + `"clientLanguage": 5, ` + config("1s") + `}]`:       "x:1:33: [0].clientLanguage is 5: want a list",
		`[{"serviceConfig": {"methodConfig": [{"name": [{"method": "m"}]}]}}]`: "[0].serviceConfig.methodConfig[0].name[0].service is missing",
	} {
		refused(t, File{"x", []byte(text)}, Options{}, want)
	}
}

// Outlier detection is part of the load balancing of gRPC.
func TestOutlierDetectionOfGRPC(t *testing.T) {
	const text = `{"loadBalancingConfig": [{"outlier_detection_experimental": {"interval": "10s"}}], "methodConfig": [{"name": [{}]}]}`
	out := convert(t, File{"x.json", []byte(text)}, Lull, Options{})
	noted(t, out.Report, Lost, "loadBalancingConfig[0].outlier_detection_experimental", "load balancing")
}

// The other systems repeat what is not safe to repeat. lull does not, and reports that.
func TestWhatIsNotSafeToRepeat(t *testing.T) {
	const safe = "is safe to repeat or not"
	texts := map[Format]string{
		Istio:   "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{route: [{destination: {host: a}}], retries: {attempts: %d}}]}",
		Envoy:   "retry_on: 5xx\nnum_retries: %d",
		Gateway: "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {rules: [{retry: {attempts: %d}, backendRefs: [{name: a}]}]}",
		GRPC:    `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 1%d, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1, "retryableStatusCodes": [14]}}]}`,
	}
	for from, text := range texts {
		for _, to := range Targets() {
			out := convert(t, File{"x", []byte(fmt.Sprintf(text, 2))}, to, Options{})
			said := slices.ContainsFunc(out.Report, func(e Entry) bool { return e.Kind == Changed && strings.Contains(e.Why, safe) })
			check.Equal(t, said, (to == Lull), "%v to %v: said\n%s", from, to, out.Report)
		}
	}
	guarded := string(safeRequests().Compact())
	for text, want := range map[string]bool{fmt.Sprintf(texts[Envoy], 0): false, fmt.Sprintf(texts[Envoy], 2) + "\nretriable_request_headers: " + guarded: false, fmt.Sprintf(texts[Istio], 0): false} {
		check.Equal(t, strings.Contains(convert(t, File{"x", []byte(text)}, Lull, Options{}).Report.String(), safe), want, "%s", text)
	}
	if out := convert(t, File{"x", []byte(`{"methodConfig": [{"name": [{}]}]}`)}, Lull, Options{Base: "lull"}); strings.Contains(out.Report.String(), safe) {
		t.Errorf("retries of the base: %s", out.Report)
	}
}

// Where a retry goes is handed on from one proxy to the other.
func TestHostsOfRetries(t *testing.T) {
	const istio = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{route: [{destination: {host: a}}], retries: {attempts: 2, retryRemoteLocalities: true, retryIgnorePreviousHosts: %v}}]}"
	for _, others := range []bool{true, false} {
		in := File{"x.yaml", []byte(fmt.Sprintf(istio, others))}
		envoy := convert(t, in, Envoy, Options{JSON: true})
		back := convert(t, File{"e.json", envoy.Data}, Istio, Options{JSON: true})
		again := convert(t, in, Istio, Options{JSON: true})
		for _, out := range []Output{back, again} {
			if strings.Contains(string(out.Data), `"retryIgnorePreviousHosts": false`) == others || !strings.Contains(string(out.Data), `"retryRemoteLocalities": true`) {
				t.Errorf("%v:\n%s", others, out.Data)
			}
			if strings.Contains(out.Report.String(), "host") && strings.Contains(out.Report.String(), hostsWhy) {
				t.Errorf("%v:\n%s", others, out.Report)
			}
		}
		if out := convert(t, in, Lull, Options{}); entry(out.Report, Lost, "spec.http[0].retries.retryRemoteLocalities", "") == nil ||
			(entry(out.Report, Lost, "spec.http[0].retries.retryIgnorePreviousHosts", "") == nil) != others {
			t.Errorf("%v:\n%s", others, out.Report)
		}
	}
	const envoy = `{"retry_on": "5xx", "retry_host_predicate": [{"name": "envoy.retry_host_predicates.previous_hosts"}], "host_selection_retry_max_attempts": 3, "retry_priority": {"name": "envoy.retry_priorities.previous_priorities", "typed_config": {"update_frequency": 4}}}`
	out := convert(t, File{"x.json", []byte(envoy)}, Istio, Options{})
	for _, why := range []string{"not tried 5 times, not 3", "after 2 retries, not 4"} {
		noted(t, out.Report, Changed, "dependencies.x", why)
	}
	const own = `{"retry_on": "5xx", "retry_host_predicate": [{"name": "mine"}], "retry_priority": {"name": "mine"}}`
	out = convert(t, File{"x.json", []byte(own)}, Envoy, Options{})
	for _, path := range []string{"retry_host_predicate[0]", "retry_priority"} {
		noted(t, out.Report, Lost, path, "")
	}
}

// How many endpoints must be left is handed on as well.
func TestPanicOfProxies(t *testing.T) {
	const cluster = `{"name": "a", "outlier_detection": {}%s}`
	for lb, want := range map[string]string{"": `"minHealthPercent": 50`, `, "common_lb_config": {"healthy_panic_threshold": {"value": 20}}`: `"minHealthPercent": 20`, `, "common_lb_config": {"healthy_panic_threshold": {"value": 0}}`: ""} {
		out := convert(t, File{"x.json", []byte(fmt.Sprintf(cluster, lb))}, Istio, Options{JSON: true})
		if !strings.Contains(string(out.Data), want) || want == "" && strings.Contains(string(out.Data), "minHealthPercent") {
			t.Errorf("%s:\n%s", lb, out.Data)
		}
	}
	const rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: a, trafficPolicy: {outlierDetection: {minHealthPercent: 30}}}"
	out := convert(t, File{"x.yaml", []byte(rule)}, Envoy, Options{})
	if !strings.Contains(string(out.Data), "healthy_panic_threshold: {value: 30}") || strings.Contains(out.Report.String(), "minHealthPercent") {
		t.Errorf("%s%s", out.Data, out.Report)
	}
	if out := convert(t, File{"x.yaml", []byte(rule)}, Lull, Options{}); entry(out.Report, Lost, "spec.trafficPolicy.outlierDetection.minHealthPercent", "") == nil {
		t.Errorf("%s", out.Report)
	}
}

// Names are cut to the length that a dependency can have, and remain different.
func TestLongNamesThatAreTaken(t *testing.T) {
	long := strings.Repeat("x", 150)
	var routes []string
	for i := range 12 {
		routes = append(routes, fmt.Sprintf(`{"match": {"prefix": "/"}, "route": {"cluster": %q, "timeout": "%ds"}}`, long, i+1))
	}
	text := `{"name": "v", "domains": ["*"], "routes": [` + strings.Join(routes, ",") + `, ` + routes[3] + `]}`
	got := names(policies(t, convert(t, File{"x.json", []byte(text)}, Lull, Options{}).Data))
	if len(got) != 12 || got[0] != long[:100] || !slices.Contains(got, "v/routes[1]") {
		t.Errorf("%q", got)
	}
	same := strings.ReplaceAll(text, `{"match"`, `{"name": "`+long+`", "match"`)
	same = strings.ReplaceAll(same, `"name": "v"`, `"name": "`+long+`"`)
	got = names(policies(t, convert(t, File{"x.json", []byte(same)}, Lull, Options{}).Data))
	if len(got) != 12 || !strings.HasSuffix(got[1], "x (2)") || !strings.HasSuffix(got[11], "x (12)") || len(got[11]) != 100 {
		t.Errorf("%q", got)
	}
}

// With Only, the report is about one dependency.
func TestTheReportOfOneDependency(t *testing.T) {
	const text = `{"resources": [
	{"@type": "x.RouteConfiguration", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [
		{"match": {"prefix": "/"}, "per_request_buffer_limit_bytes": 1, "route": {"cluster": "a", "idle_timeout": "1s"}}, {"match": {"prefix": "/"}, "route": {"cluster": "b", "idle_timeout": "1s"}}]}]},
	{"@type": "x.Cluster", "name": "a", "connect_timeout": "1s"}, {"@type": "x.Cluster", "name": "b", "connect_timeout": "1s"}]}`
	parts := map[source]bool{{file: "f", path: "a.route"}: true}
	for path, want := range map[string]bool{"a.route": true, "a.route.x": true, "a.route[0]": true, "a.routes": false, "a": false, "x.a.route": false} {
		if partOf(parts, Entry{Position: config.Position{File: "f"}, Path: path}) != want || partOf(parts, Entry{Position: config.Position{File: "g"}, Path: path}) {
			t.Errorf("%s", path)
		}
	}
	out := convert(t, File{"x.json", []byte(text)}, Lull, Options{Only: "b"})
	var paths []string
	for _, e := range out.Report.Losses() {
		paths = append(paths, e.Path)
	}
	check.Slices(t, paths, []string{"resources[0].virtual_hosts[0].routes[1].route.idle_timeout", "resources[2].connect_timeout"}, "paths")
}

// An entry has the value, as a line of text and as JSON.
func TestEntriesHaveValues(t *testing.T) {
	out := convert(t, File{"x.yaml", []byte("retryOn: 5xx\nnumRetries: 2000\nperTryIdleTimeout: 3s\nretryHostPredicate: [{name: mine}]")}, Lull, Options{})
	for _, want := range []string{
		"x.yaml:2:1: changed: numRetries is 2000: a policy makes at most 1000 attempts\n",
		`x.yaml:3:1: lost: perTryIdleTimeout is "3s": `,
		"x.yaml:4:22: lost: retryHostPredicate[0] (1 value): which host",
	} {
		if !strings.Contains(out.Report.String(), want) {
			t.Errorf("no %q in\n%s", want, out.Report)
		}
	}
	there := convert(t, File{"p.yaml", []byte("dependencies:\n  a:\n    attempt_timeout: 2s\n    backoff: {floor: 1ms}\n    p99: 1s\n")}, GRPC, Options{})
	for path, value := range map[string]string{"attempt_timeout": "2s", "backoff.floor": "1ms", "p99": "1s", "nested": "never", "timeouts": "when-answered", "hint_limit": "30s", "breaker": "", "backoff.jitter": ""} {
		i := slices.IndexFunc(there.Report, func(e Entry) bool { return e.Path == "dependencies.a."+path })
		if i < 0 || there.Report[i].Value != value {
			t.Errorf("%s is not %q: %s", path, value, there.Report)
		}
	}
	text, err := json.Marshal(entry(out.Report, Changed, "numRetries", ""))
	if err != nil || !strings.Contains(string(text), `"path":"numRetries","value":"2000"`) {
		t.Errorf("%s, %v", text, err)
	}
}
